//! Limits the silence of a provider in the middle of an answer.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{Stream, StreamExt as _};
use tokio::time::{Instant, Sleep};

/// A stream of bytes with an idle timeout. The timer is reset only when it fires; the HTTP library's timer is
/// recreated for every chunk.
pub(crate) struct IdleTimeout<S> {
    bytes: S,
    silence: Duration,
    heard: Instant,
    timer: Option<Pin<Box<Sleep>>>,
}

/// The reason why no more bytes arrive.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StreamError<E: std::error::Error + 'static> {
    #[error(transparent)]
    /// The connection broke.
    Broken(E),
    #[error("nothing came for {} s", .0.as_secs())]
    /// Nothing arrived for this long.
    Silent(Duration),
}

/// Returns true if the HTTP library's stream ended by the idle timeout.
pub(crate) fn is_silence(error: &(dyn std::error::Error + 'static)) -> bool {
    let of_http = error.downcast_ref::<StreamError<reqwest::Error>>();
    matches!(of_http, Some(StreamError::Silent(_)))
}

impl<S> IdleTimeout<S> {
    pub(crate) fn new(bytes: S, silence: Duration) -> Self {
        Self {
            bytes,
            silence,
            heard: Instant::now(),
            timer: None,
        }
    }

    /// Ready once the stream was silent for too long.
    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let end = self.heard + self.silence;
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(end)));
        while timer.as_mut().poll(cx).is_ready() {
            if timer.deadline() >= end {
                return Poll::Ready(());
            }
            timer.as_mut().reset(end);
        }
        Poll::Pending
    }
}

impl<S, E> Stream for IdleTimeout<S>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
    E: std::error::Error + 'static,
{
    type Item = Result<Bytes, StreamError<E>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Poll::Ready(came) = self.bytes.poll_next_unpin(cx) {
            self.heard = Instant::now();
            return Poll::Ready(came.map(|came| came.map_err(StreamError::Broken)));
        }
        ready!(self.poll_silence(cx));
        Poll::Ready(Some(Err(StreamError::Silent(self.silence))))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use bytes::Bytes;
    use futures::stream::StreamExt as _;

    use super::{IdleTimeout, StreamError};

    #[tokio::test(start_paused = true)]
    async fn only_a_peer_that_is_silent_for_too_long_is_given_up() {
        const SILENCE: Duration = Duration::from_secs(10);
        const NEARLY: Duration = Duration::from_secs(9);
        let (said, heard) = futures::channel::mpsc::unbounded();
        let mut bytes = IdleTimeout::new(heard.map(Ok::<_, Infallible>), SILENCE);
        let began = tokio::time::Instant::now();
        let speak = async {
            for _ in 0..3 {
                tokio::time::sleep(NEARLY).await;
                said.unbounded_send(Bytes::from_static(b"x")).unwrap();
            }
            std::future::pending::<()>().await;
        };
        let listen = async {
            for _ in 0..3 {
                assert!(matches!(bytes.next().await, Some(Ok(_))));
            }
            assert!(matches!(
                bytes.next().await,
                Some(Err(StreamError::Silent(SILENCE)))
            ));
        };
        tokio::select! {
            () = speak => unreachable!("it never ends"),
            () = listen => {}
        }
        let took = began.elapsed();
        let expected = 3 * NEARLY + SILENCE;
        assert!(took >= expected, "{took:?}");
        assert!(took < expected + Duration::from_secs(1), "{took:?}");
    }
}
