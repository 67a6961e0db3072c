//! Drains the rest of a request's body when nobody reads it: a request may be refused because of its head
//! alone, or because of the first half of its body.
//!
//! Closing a connection with unread bytes resets it, and its client, which is still sending, may never read
//! the reason for the refusal. So the rest is read and discarded within limits, which are those of nginx's
//! `lingering_time` and `lingering_timeout`.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::EXPECT;
use axum::middleware::Next;
use axum::response::Response;
use futures::StreamExt as _;
use hyper::body::{Body as _, Frame, SizeHint};
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

/// The maximum time of draining a body.
const TIME: Duration = Duration::from_secs(30);
/// The maximum pause between two pieces of the body.
const PAUSE: Duration = Duration::from_secs(5);

/// A body that is drained if it is dropped before its end.
struct Unread {
    body: Body,
    is_over: bool,
    readers: TaskTracker,
}

/// Ensures that the request's body is read to its end, regardless of which layer answers the request.
pub(super) async fn read_to_the_end(
    State(readers): State<TaskTracker>,
    request: Request,
    next: Next,
) -> Response {
    // A client that waits for `100 Continue` does not send the body of a refused request.
    if request.body().is_end_stream() || request.headers().contains_key(EXPECT) {
        return next.run(request).await;
    }
    let whole = |body| {
        Body::new(Unread {
            body,
            is_over: false,
            readers,
        })
    };
    next.run(request.map(whole)).await
}

impl hyper::body::Body for Unread {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(None | Some(Err(_))) = frame {
            self.is_over = true;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        if self.is_over || self.body.is_end_stream() {
            return;
        }
        // Without a runtime there is no connection either.
        if let Ok(runtime) = Handle::try_current() {
            let rest = std::mem::take(&mut self.body);
            self.readers.spawn_on(forget(rest), &runtime);
        }
    }
}

/// Reads and discards a body until its end or a time limit.
async fn forget(body: Body) {
    let mut pieces = body.into_data_stream();
    let read = async { while let Ok(Some(Ok(_))) = timeout(PAUSE, pieces.next()).await {} };
    if timeout(TIME, read).await.is_err() {
        tracing::debug!("The rest of a refused request's body was not waited for");
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use axum::Router;
    use axum::body::{Body, Bytes};
    use axum::http::{HeaderName, Request};
    use axum::middleware::from_fn_with_state;
    use axum::routing::post;
    use futures::StreamExt as _;
    use tokio::time::Instant;
    use tokio_util::task::TaskTracker;
    use tower::ServiceExt as _;

    use super::read_to_the_end;

    const HEADER: HeaderName = HeaderName::from_static("expect");

    /// Sends `most` pieces with a pause of `pause` ms before each to a handler that reads none of them, and
    /// returns the number of pieces taken and the elapsed seconds.
    async fn taken(most: u64, pause: u64, header: HeaderName) -> (u64, u64) {
        let (readers, (told, taken)) = (TaskTracker::new(), tokio::sync::watch::channel(0));
        let router = Router::new()
            .route("/", post(async || "refused"))
            .layer(from_fn_with_state(readers.clone(), read_to_the_end));
        let body = futures::stream::iter(0..most).then(move |_| {
            let told = told.clone();
            async move {
                tokio::time::sleep(Duration::from_millis(pause)).await;
                told.send_modify(|count| *count += 1);
                Ok::<_, Infallible>(Bytes::from_static(b"x"))
            }
        });
        let request = Request::post("/").header(header, "100-continue");
        let request = request.body(Body::from_stream(body)).unwrap();
        let began = Instant::now();
        let response = router.oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        readers.close();
        readers.wait().await;
        let count = *taken.borrow();
        (count, began.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_reads_is_read_within_limits() {
        let other = HeaderName::from_static("x-other");
        assert_eq!(taken(100, 100, other.clone()).await, (100, 10));
        // An endless body, and one that stalls.
        assert_eq!(taken(u64::MAX, 1_100, other.clone()).await, (27, 30));
        assert_eq!(taken(10, 60_000, other).await, (0, 5));
        assert_eq!(taken(10, 100, HEADER).await, (0, 0));
    }
}
