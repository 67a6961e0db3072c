//! A reader that tells when the other side has closed.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::CancellationToken;

/// Passes bytes on and cancels `ended` at the end of the stream.
///
/// rmcp waits for running tool calls when its input ends; a command that still runs must hear of it
/// at once, because nobody is left to read its result.
pub(crate) struct UntilEof<R> {
    inner: R,
    ended: CancellationToken,
}

impl<R> UntilEof<R> {
    pub(crate) fn new(inner: R, ended: CancellationToken) -> Self {
        Self { inner, ended }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for UntilEof<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let result = ready!(Pin::new(&mut this.inner).poll_read(context, buffer));
        if result.is_err() || buffer.filled().len() == before {
            this.ended.cancel();
        }
        Poll::Ready(result)
    }
}
