//! Counts the bytes of a connection, and ends connections that are idle.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The traffic of a connection. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub(super) struct Traffic {
    /// Bytes from the program to the host.
    sent: Arc<AtomicU64>,
    /// Bytes from the host to the program.
    received: Arc<AtomicU64>,
}

impl Traffic {
    /// Bytes sent to the host and received from it.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&self.sent), read(&self.received))
    }

    /// Returns when nothing was transferred for at least `limit`, and at most twice that time.
    pub(super) async fn until_idle(&self, limit: Duration) {
        let mut before = self.bytes();
        loop {
            tokio::time::sleep(limit).await;
            let now = self.bytes();
            if now == before {
                return;
            }
            before = now;
        }
    }
}

/// A connection to a host whose bytes are counted.
#[derive(Debug)]
pub(super) struct CountedStream<S> {
    pub(super) stream: S,
    pub(super) traffic: Traffic,
}

impl<S: AsyncRead + Unpin> AsyncRead for CountedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
        let read = buffer.filled().len().saturating_sub(before);
        let received = &this.traffic.received;
        received.fetch_add(read as u64, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CountedStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = ready!(Pin::new(&mut this.stream).poll_write(context, bytes))?;
        let sent = &this.traffic.sent;
        sent.fetch_add(written as u64, Ordering::Relaxed);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
