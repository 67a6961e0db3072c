//! Limits the time in which the body of a request must arrive. Otherwise a client that sends one byte a
//! minute could hold a connection, and the work that its handler has begun, for as long as it likes.
//!
//! Each received KiB extends the limit by one second, so that a large allowed body also arrives over a slow
//! line.

use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::CONNECTION;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use hyper::body::{Body as _, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

use super::error::ApiError;
use crate::domain::Code;

/// The number of received bytes that extend the limit by one second.
const BYTES_PER_SECOND: u64 = 1024;

/// The body took too long.
#[derive(Debug, thiserror::Error)]
#[error("the body came too slowly")]
struct TooSlow;

/// A body with a time limit, which starts when the body is first polled.
struct TimedBody {
    body: Body,
    limit: Duration,
    received: u64,
    /// The time of the first poll, and the timer of the deadline.
    times: Option<(Instant, Pin<Box<Sleep>>)>,
    is_late: Arc<AtomicBool>,
}

/// Limits the time of the request's body; `None` means no limit.
pub(super) async fn in_time(
    State(limit): State<Option<Duration>>,
    request: Request,
    next: Next,
) -> Response {
    let Some(limit) = limit.filter(|_| !request.body().is_end_stream()) else {
        return next.run(request).await;
    };
    let is_late = Arc::new(AtomicBool::new(false));
    let timed = |body| {
        Body::new(TimedBody {
            body,
            limit,
            received: 0,
            times: None,
            is_late: Arc::clone(&is_late),
        })
    };
    let response = next.run(request.map(timed)).await;
    if !is_late.load(Ordering::Relaxed) {
        return response;
    }
    // Replaces the response that the handler built from the partial body.
    let text = format!(
        "the body came too slowly: it has {} s, and one more for each KiB",
        limit.as_secs_f64()
    );
    let mut refused = ApiError::new(Code::RequestTimeout, text).into_response();
    let close = HeaderValue::from_static("close");
    refused.headers_mut().insert(CONNECTION, close);
    refused
}

impl hyper::body::Body for TimedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        let (began, over) = this.times.get_or_insert_with(|| {
            let began = Instant::now();
            (began, Box::pin(sleep_until(began + this.limit)))
        });
        match Pin::new(&mut this.body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                let length = frame.data_ref().map_or(0, Bytes::len);
                this.received += u64::try_from(length).unwrap_or(0);
                let bought = Duration::from_secs(this.received / BYTES_PER_SECOND);
                over.as_mut().reset(*began + this.limit + bought);
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Pending if over.as_mut().poll(cx).is_ready() => {
                this.is_late.store(true, Ordering::Relaxed);
                Poll::Ready(Some(Err(axum::Error::new(TooSlow))))
            }
            other @ (Poll::Ready(_) | Poll::Pending) => other,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use axum::Router;
    use axum::body::{Body, Bytes};
    use axum::http::{Request, StatusCode};
    use axum::middleware::from_fn_with_state;
    use axum::routing::post;
    use futures::StreamExt as _;
    use tower::ServiceExt as _;

    use super::in_time;

    /// Sends `pieces` pieces of `size` bytes, with `pause` seconds before each, and returns the status and
    /// the number of bytes that the handler read.
    async fn send(limit: u64, pieces: usize, size: usize, pause: u64) -> (StatusCode, usize) {
        let limit = Some(Duration::from_secs(limit)).filter(|limit| !limit.is_zero());
        let count = async |body: Bytes| body.len().to_string();
        let router = Router::new()
            .route("/", post(count))
            .layer(from_fn_with_state(limit, in_time));
        let body = futures::stream::iter(0..pieces).then(move |_| async move {
            tokio::time::sleep(Duration::from_secs(pause)).await;
            Ok::<_, Infallible>(Bytes::from(vec![b'x'; size]))
        });
        let request = Request::post("/").body(Body::from_stream(body)).unwrap();
        let response = router.oneshot(request).await.unwrap();
        let status = response.status();
        let read = axum::body::to_bytes(response.into_body(), 1 << 20).await;
        let text = String::from_utf8(read.unwrap().to_vec()).unwrap();
        (status, text.parse().unwrap_or_default())
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_of_one_byte_a_second_ends_and_one_over_a_slow_line_does_not() {
        let late = StatusCode::REQUEST_TIMEOUT;
        assert_eq!(send(60, 100_000, 1, 1).await, (late, 0));
        assert_eq!(send(60, 2, 1, 61).await, (late, 0));
        // 256 KiB at 2 KiB per second, and one large piece just before the deadline.
        let slow = send(60, 128, 2048, 1).await;
        assert_eq!(slow, (StatusCode::OK, 128 * 2048));
        assert_eq!(send(60, 1, 1 << 18, 59).await, (StatusCode::OK, 1 << 18));
        // Too slow on average, although the first pieces arrive in time.
        assert_eq!(send(60, 100, 1024, 3).await, (late, 0));
        assert_eq!(send(0, 10, 1, 1_000).await, (StatusCode::OK, 10));
    }
}
