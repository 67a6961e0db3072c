//! A TCP relay whose traffic can be held: connections stand, and nothing comes through.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// A relay to one address, for as long as this lives.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    held: watch::Sender<bool>,
    _serving: AbortOnDropHandle<()>,
}

impl Relay {
    pub(crate) async fn start(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (held, is_held) = watch::channel(false);
        let serving = TaskTracker::new().spawn(async move {
            let mut lines = Vec::new();
            while let Ok((near, _)) = listener.accept().await {
                let Ok(far) = TcpStream::connect(to).await else {
                    continue;
                };
                let (near, far) = (near.into_split(), far.into_split());
                for (from, to) in [(near.0, far.1), (far.0, near.1)] {
                    let line = TaskTracker::new().spawn(pass_on(from, to, is_held.clone()));
                    lines.push(AbortOnDropHandle::new(line));
                }
            }
        });
        Self {
            address,
            held,
            _serving: AbortOnDropHandle::new(serving),
        }
    }

    /// From now on nothing comes through, in either direction.
    pub(crate) fn hold(&self) {
        self.held.send_replace(true);
    }

    /// What was held comes through, and what follows it.
    pub(crate) fn release(&self) {
        self.held.send_replace(false);
    }
}

async fn pass_on(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut held: watch::Receiver<bool>) {
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        if held.wait_for(|is_held| !is_held).await.is_err() {
            return;
        }
        if to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}
