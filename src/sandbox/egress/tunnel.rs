//! The multiplexer, and what becomes of its streams.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;

use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, Join, copy,
};
use tokio::sync::Semaphore;
use tokio_util::compat::{Compat, FuturesAsyncReadCompatExt as _, TokioAsyncReadCompatExt as _};
use tokio_util::task::TaskTracker;
use yamux::{Config, Connection, Mode, Stream};

use crate::net::Proxy;

/// What the other end says first.
const GREETING: &[u8] = b"sepal-tunnel 1\n";
/// Streams at once, with room for those that end; the multiplexer gives the whole tunnel up beyond.
const MAX_STREAMS: usize = 512;
/// What one stream may send before it is read; the protocol's own figure.
const WINDOW_BYTES: usize = 256 << 10;
/// Connections that are served at once. The other end opens half as many, and counts those as ended
/// that this end has not seen the end of.
const MAX_CONNECTIONS: usize = 128;

type Output = Box<dyn AsyncRead + Send + Unpin>;
type Input = Box<dyn AsyncWrite + Send + Unpin>;
type Socket = Compat<Join<Output, Input>>;
/// What its owner says, and what the owner hears.
type Owner = Join<DuplexStream, DuplexStream>;

/// The tunnel to one program.
pub(super) struct Tunnel {
    connection: Connection<Socket>,
    proxy: Proxy,
    tasks: TaskTracker,
}

impl Tunnel {
    /// Over what a sandbox says and hears.
    pub(super) fn over((stdout, stdin): (Output, Input), proxy: Proxy, tasks: TaskTracker) -> Self {
        let mut config = Config::default();
        // No stream gets more than the protocol's own window, so memory has a bound.
        config.set_max_num_streams(MAX_STREAMS);
        config.set_max_connection_receive_window(Some(MAX_STREAMS * WINDOW_BYTES));
        let socket = tokio::io::join(stdout, stdin).compat();
        Self {
            connection: Connection::new(socket, config, Mode::Server),
            proxy,
            tasks,
        }
    }

    /// Serves the tunnel until its other end is gone.
    pub(super) async fn run(mut self, owner: Owner) {
        let Some(first) = self.next().await else {
            // It has ended before it began; why, its last words and its end tell.
            return;
        };
        self.tasks.spawn(async move {
            if let Err(error) = pass_on(owner, first).await {
                tracing::debug!(%error, "A sandboxed program left in the middle");
            }
        });
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        while let Some(stream) = self.next().await {
            match Arc::clone(&places).try_acquire_owned() {
                Ok(place) => {
                    let proxy = self.proxy.clone();
                    self.tasks.spawn(async move {
                        proxy.serve(stream.compat()).await;
                        drop(place);
                    });
                }
                Err(_) => self.proxy.refuse_crowd(),
            }
        }
    }

    /// The next stream; `None` at the end of the tunnel. Nothing moves but while somebody waits here.
    async fn next(&mut self) -> Option<Stream> {
        match poll_fn(|context| self.connection.poll_next_inbound(context)).await? {
            Ok(stream) => Some(stream),
            Err(error) => {
                tracing::debug!(%error, "The tunnel of a sandboxed program broke");
                None
            }
        }
    }
}

/// Moves what the program hears and says, once the other end has said who it is.
async fn pass_on(owner: Owner, first: Stream) -> io::Result<()> {
    let mut program = first.compat();
    let mut greeting = vec![0; GREETING.len()];
    program.read_exact(&mut greeting).await?;
    if greeting != GREETING {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the tunnel is of another version",
        ));
    }
    let (mut asked, mut told) = owner.into_inner();
    let (mut said, mut hears) = tokio::io::split(program);
    {
        let up = async {
            copy(&mut asked, &mut hears).await?;
            hears.shutdown().await
        };
        let down = async {
            copy(&mut said, &mut told).await?;
            told.shutdown().await
        };
        let (mut up, mut down) = (pin!(up), pin!(down));
        tokio::select! {
            ended = &mut down => ended?,
            // Its owner has asked all; what the program says is waited for. An error here means that the
            // program has left, which the other direction tells.
            _ = &mut up => down.await?,
        }
    }
    // The other end waits for this before it leaves: all that the program said is here.
    hears.shutdown().await
}
