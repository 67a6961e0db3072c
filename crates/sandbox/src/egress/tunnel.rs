//! Runs the multiplexer of a tunnel, and serves its streams.

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

use sepal_net::Proxy;

/// The first bytes that the other end sends.
const GREETING: &[u8] = b"sepal-tunnel 1\n";
/// The most streams at once, including those that are ending; beyond that the multiplexer closes the whole
/// tunnel.
const MAX_STREAMS: usize = 512;
/// Bytes that one stream may send before they are read; the protocol's own default.
const WINDOW_BYTES: usize = 256 << 10;
/// The most connections that are served at once. The other end opens half as many, and counts as ended some
/// whose end has not arrived here yet.
const MAX_CONNECTIONS: usize = 128;

type Output = Box<dyn AsyncRead + Send + Unpin>;
type Input = Box<dyn AsyncWrite + Send + Unpin>;
type Socket = Compat<Join<Output, Input>>;
/// The owner's ends: the bytes for the program, and the bytes from it.
type Owner = Join<DuplexStream, DuplexStream>;

/// The tunnel to one program.
pub(super) struct Tunnel {
    connection: Connection<Socket>,
    proxy: Proxy,
    tasks: TaskTracker,
}

impl Tunnel {
    /// Creates a tunnel over the stdout and stdin of a sandbox.
    pub(super) fn over(stdout: Output, stdin: Input, proxy: Proxy, tasks: TaskTracker) -> Self {
        let mut config = Config::default();
        // No stream gets more than the protocol's own window, so memory is bounded.
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
            // The tunnel ended before it began; the program's last output and exit tell why.
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

    /// Returns the next stream; `None` at the end of the tunnel. The tunnel makes progress only while this is
    /// polled.
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

/// Forwards the program's stdin and stdout, once the other end has sent the greeting.
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
            // The owner has closed stdin; the program's output is still read. An error here means that the
            // program has ended, which the other direction reports.
            _ = &mut up => down.await?,
        }
    }
    // The other end waits for this before it exits: all output of the program has arrived.
    hears.shutdown().await
}
