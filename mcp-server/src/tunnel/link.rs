//! The multiplexer: one task moves all frames, and everybody else asks it for streams.

use std::{
    future::poll_fn,
    io,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{mpsc, oneshot},
};
use tokio_util::{
    compat::{Compat, FuturesAsyncReadCompatExt as _, TokioAsyncReadCompatExt as _},
    sync::CancellationToken,
};
use yamux::{Config, Connection, Mode, Stream};

/// Streams at once, with room for those that end.
const MAX_STREAMS: usize = 256;
/// What one stream may send before the other side has read it; the protocol's own figure.
const WINDOW_BYTES: usize = 256 << 10;
/// Connections that wait for their stream.
const WAITING: usize = 8;

type Input = Box<dyn AsyncRead + Send + Unpin>;
type Output = Box<dyn AsyncWrite + Send + Unpin>;
type Socket = Compat<tokio::io::Join<Input, Output>>;
/// A stream as tokio has them.
pub(super) type OpenStream = Compat<Stream>;

/// This end of the tunnel.
pub(super) struct Link {
    connection: Connection<Socket>,
    asked: mpsc::Receiver<oneshot::Sender<Stream>>,
    closed: CancellationToken,
}

/// Asks for streams.
#[derive(Clone)]
pub(super) struct Opener {
    asks: mpsc::Sender<oneshot::Sender<Stream>>,
    closes: CancellationToken,
}

impl Link {
    pub(super) fn over((input, output): (Input, Output)) -> (Self, Opener) {
        let mut config = Config::default();
        // No stream gets more than the protocol's own window, so memory has a bound.
        config.set_max_num_streams(MAX_STREAMS);
        config.set_max_connection_receive_window(Some(MAX_STREAMS * WINDOW_BYTES));
        let socket = tokio::io::join(input, output).compat();
        let (asks, asked) = mpsc::channel(WAITING);
        let closed = CancellationToken::new();
        let link = Self {
            connection: Connection::new(socket, config, Mode::Client),
            asked,
            closed: closed.clone(),
        };
        (
            link,
            Opener {
                asks,
                closes: closed,
            },
        )
    }

    /// Moves frames until the other side has closed, or this one does.
    pub(super) async fn run(mut self) {
        let closed = self.closed.clone();
        let moving = poll_fn(|context| self.step(context));
        tokio::select! {
            // What is said before the end goes out first: closing drains all streams.
            biased;
            () = moving => return,
            () = closed.cancelled() => {}
        }
        let _ = poll_fn(|context| self.connection.poll_close(context)).await;
    }

    /// Ready at the end of the connection.
    fn step(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while let Poll::Ready(Some(asker)) = self.asked.poll_recv(context) {
            match self.connection.poll_new_outbound(context) {
                Poll::Ready(Ok(stream)) => {
                    // Whoever asked may be gone, and the stream with it.
                    let _ = asker.send(stream);
                }
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                // Only with hundreds that the gateway has not seen yet; the asker sees a refusal.
                Poll::Pending => drop(asker),
            }
        }
        loop {
            match self.connection.poll_next_inbound(context) {
                // The gateway opens none.
                Poll::Ready(Some(Ok(stream))) => drop(stream),
                Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl Opener {
    /// A stream to the gateway, which hears of it with the first byte.
    pub(super) async fn open(&self) -> io::Result<OpenStream> {
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        let (asker, answer) = oneshot::channel();
        self.asks.send(asker).await.map_err(|_| gone())?;
        Ok(answer.await.map_err(|_| gone())?.compat())
    }

    /// Ends the link once all that was written has gone out.
    pub(super) fn close(&self) {
        self.closes.cancel();
    }
}
