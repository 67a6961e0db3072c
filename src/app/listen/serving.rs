//! Serves HTTP connections. A client that sends nothing, or only one byte at a time, cannot hold one, and
//! neither can one that takes nothing of its answer.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::extract::ConnectInfo;
use axum::serve::Listener;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Sleep, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Layer as _;

use crate::gateway::{
    AccessRules, AddressShare, Addresses, Crowd, explain_unreadable_head, turn_away,
};
use crate::telemetry::instruments;

/// The time limit for the head of a request, counted from the moment the connection waits for one: longer
/// than proxies keep idle connections (two minutes by default), because a connection that is closed under a
/// request causes an error.
pub(in crate::app) const HEAD_LIMIT: Duration = Duration::from_mins(3);

/// The time in which a client has to take something of what is sent to it.
const TAKE_LIMIT: Duration = Duration::from_mins(3);

/// The time limit for turning a client away.
const REFUSAL_LIMIT: Duration = Duration::from_secs(5);
/// The most connections that are refused with an answer at the same time; others are closed without one.
const REFUSALS: usize = 100;
/// The interval at which refused connections are logged.
const TOLD_EVERY: Duration = Duration::from_mins(1);

/// The settings and state of accepting connections.
pub(in crate::app) struct Connections {
    /// The time limit for the head of a request.
    pub(in crate::app) head_limit: Duration,
    /// The open connections, with their limits.
    pub(in crate::app) open: Arc<Addresses>,
    /// Decides which peer addresses identify the client of a connection; `None` = none of them.
    pub(in crate::app) access: Option<Arc<AccessRules>>,
}

impl Connections {
    /// Makes connections without limits, for a listener that only the operator reaches.
    pub(in crate::app) fn unlimited() -> Self {
        Self {
            head_limit: HEAD_LIMIT,
            open: Addresses::new(None, None),
            access: None,
        }
    }

    /// Returns the address against which a connection counts.
    fn address(&self, peer: SocketAddr) -> Option<IpAddr> {
        let access = self.access.as_ref()?;
        Some(peer.ip()).filter(|address| access.is_telling(*address))
    }
}

/// Serves until `farewell` is over; then running requests are completed.
pub(in crate::app) async fn serve(
    mut listener: TcpListener,
    router: Router,
    taken: Connections,
    farewell: impl Future<Output = ()>,
) {
    let mut refusals = Refusals::default();
    let (connections, stop) = (TaskTracker::new(), CancellationToken::new());
    let mut farewell = pin!(farewell);
    loop {
        // If no connection can be accepted, for example without file handles, this waits and logs the error.
        let (stream, peer) = tokio::select! {
            biased;
            () = &mut farewell => break,
            taken = Listener::accept(&mut listener) => taken,
        };
        // Without this option the second small frame of a burst waits about 40 ms.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY was not set");
        }
        match taken.open.take(taken.address(peer)) {
            Ok(share) => {
                let stream = CountedConnection {
                    stream,
                    explained: None,
                    take_limit: TAKE_LIMIT.min(taken.head_limit),
                    stalled: None,
                    _share: share,
                };
                let (router, stop) = (router.clone(), stop.clone());
                connections.spawn(converse(stream, peer, router, taken.head_limit, stop));
            }
            Err(crowd) => {
                if let Some(refusal) = refusals.refuse(stream, peer, crowd) {
                    connections.spawn(refusal);
                }
            }
        }
    }
    drop(listener);
    stop.cancel();
    connections.close();
    connections.wait().await;
}

/// Answers the requests of one connection, until it becomes a websocket.
async fn converse(
    stream: CountedConnection,
    peer: SocketAddr,
    router: Router,
    head_limit: Duration,
    stop: CancellationToken,
) {
    let service = Extension(ConnectInfo(peer)).layer(router);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head_limit)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service))
        .with_upgrades();
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "A client's connection broke");
    }
}

/// Refuses connections, with an answer as long as that is cheap.
struct Refusals {
    at_once: Arc<Semaphore>,
    told: Option<Instant>,
}

impl Default for Refusals {
    fn default() -> Self {
        Self {
            at_once: Arc::new(Semaphore::new(REFUSALS)),
            told: None,
        }
    }
}

impl Refusals {
    /// Returns the work to do, if any.
    fn refuse(
        &mut self,
        stream: TcpStream,
        peer: SocketAddr,
        crowd: Crowd,
    ) -> Option<impl Future<Output = ()> + Send + use<>> {
        instruments().limit_reached("connections", crowd.as_str());
        if self.told.is_none_or(|told| told.elapsed() >= TOLD_EVERY) {
            self.told = Some(Instant::now());
            let text = crowd.refusal_of_connection();
            tracing::warn!(peer = %peer.ip(), "Connections are turned away: {text}");
        }
        let turn = Arc::clone(&self.at_once).try_acquire_owned().ok()?;
        Some(async move {
            let _turn = turn;
            let service = TowerToHyperService::new(turn_away(crowd));
            let connection = http1::Builder::new()
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service);
            // A client that does not read gets no answer.
            drop(tokio::time::timeout(REFUSAL_LIMIT, connection).await);
        })
    }
}

/// A connection that counts until it ends, also as a websocket.
struct CountedConnection {
    stream: TcpStream,
    /// A problem document that is written in place of the library's empty answer.
    explained: Option<Box<ExplainedStart>>,
    take_limit: Duration,
    /// The end of the client's time, while it takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
    _share: AddressShare,
}

struct ExplainedStart {
    bytes: Vec<u8>,
    written: usize,
}

impl CountedConnection {
    /// Writes the problem document if the library's answer has no body; the whole of that answer counts as
    /// written once the document is.
    fn poll_explain(
        &mut self,
        cx: &mut Context<'_>,
        answer: &[u8],
    ) -> Option<Poll<io::Result<usize>>> {
        if self.explained.is_none() {
            let bytes = explain_unreadable_head(answer)?;
            self.explained = Some(Box::new(ExplainedStart { bytes, written: 0 }));
        }
        let explained = self.explained.as_mut()?;
        while let Some(rest) = explained.bytes.get(explained.written..)
            && !rest.is_empty()
        {
            match Pin::new(&mut self.stream).poll_write(cx, rest) {
                Poll::Ready(Ok(count)) if count > 0 => explained.written += count,
                Poll::Ready(Ok(_)) => {
                    return Some(Poll::Ready(Err(io::ErrorKind::WriteZero.into())));
                }
                Poll::Ready(Err(error)) => return Some(Poll::Ready(Err(error))),
                Poll::Pending => return Some(Poll::Pending),
            }
        }
        self.explained = None;
        Some(Poll::Ready(Ok(answer.len())))
    }
}

impl CountedConnection {
    /// Ends the connection of a client that has taken nothing for too long.
    fn poll_stalled(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let limit = self.take_limit;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(limit)));
        match stalled.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for CountedConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for CountedConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Some(explained) = self.poll_explain(cx, buffer) {
            return explained;
        }
        let written = Pin::new(&mut self.stream).poll_write(cx, buffer);
        self.poll_stalled(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let [answer] = buffers
            && let Some(explained) = self.poll_explain(cx, answer)
        {
            return explained;
        }
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, buffers);
        self.poll_stalled(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::net::SocketAddr;
    use std::sync::{Arc, LazyLock};
    use std::time::Duration;

    use axum::extract::ConnectInfo;
    use axum::{Router, routing::get};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::timeout;
    use tokio_util::sync::CancellationToken;
    use tokio_util::task::TaskTracker;

    use super::{Connections, serve};
    use crate::config;
    use crate::gateway::{AccessRules, Addresses};

    const DEADLINE: Duration = Duration::from_secs(20);
    const HEAD_LIMIT: Duration = Duration::from_millis(300);
    /// Cancelled when the endless answer is dropped.
    static ENDED: LazyLock<CancellationToken> = LazyLock::new(CancellationToken::new);

    async fn start() -> (SocketAddr, CancellationToken, TaskTracker) {
        start_with(Addresses::new(None, None), HEAD_LIMIT).await
    }

    async fn start_with(
        open: Arc<Addresses>,
        head_limit: Duration,
    ) -> (SocketAddr, CancellationToken, TaskTracker) {
        let settings = config::Access {
            public_url: None,
            allowed_origins: Vec::new(),
            trusted_proxies: Vec::new(),
        };
        let taken = Connections {
            head_limit,
            open,
            access: Some(Arc::new(AccessRules::new(&settings, "localhost"))),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let peer = |ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { peer.to_string() };
        let endless = || async {
            let ended = ENDED.clone().drop_guard();
            let bytes = axum::body::Bytes::from(vec![b'x'; 65_536]);
            let stream = futures::stream::repeat_with(move || {
                let _ = &ended;
                Ok::<_, Infallible>(bytes.clone())
            });
            axum::body::Body::from_stream(stream)
        };
        let router = Router::new()
            .route("/peer", get(peer))
            .route("/endless", get(endless));
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(serve(
            listener,
            router,
            taken,
            stop.clone().cancelled_owned(),
        ));
        tasks.close();
        (address, stop, tasks)
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_of_its_answer_is_cut_off() {
        let (address, stop, _tasks) = start().await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        let asked = b"GET /endless HTTP/1.1\r\nhost: localhost\r\n\r\n";
        stream.write_all(asked).await.unwrap();
        let ended = timeout(DEADLINE, ENDED.cancelled()).await;
        assert!(ended.is_ok(), "the answer is given up");
        stop.cancel();
    }

    async fn rest_of(stream: &mut TcpStream) -> String {
        let mut rest = Vec::new();
        let read = timeout(DEADLINE, stream.read_to_end(&mut rest)).await;
        drop(read.expect("the connection ends"));
        String::from_utf8(rest).unwrap()
    }

    #[tokio::test]
    async fn who_says_nothing_or_half_a_head_does_not_hold_a_connection() {
        let (address, ..) = start().await;
        for said in ["", "GET /peer HTTP/1.1\r\nHost: x\r\nX-Slow"] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(said.as_bytes()).await.unwrap();
            let rest = rest_of(&mut stream).await;
            assert!(!rest.contains("200 OK"), "{rest}");
        }
    }

    #[tokio::test]
    async fn a_head_that_cannot_be_read_is_answered_with_a_problem_document() {
        let (address, ..) = start().await;
        let long = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "x".repeat(70_000));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X-Y: z\r\n".repeat(200));
        for (head, status, words) in [
            (long.as_str(), "414", "the address is too long"),
            (
                many.as_str(),
                "431",
                "the headers are too many or too large",
            ),
            (
                "no request\r\n\r\n",
                "400",
                "the request is not valid HTTP/1.1",
            ),
        ] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(head.as_bytes()).await.unwrap();
            let told = rest_of(&mut stream).await;
            assert!(told.starts_with(&format!("HTTP/1.1 {status} ")), "{told}");
            assert!(
                told.contains("application/problem+json") && told.contains(words),
                "{told}"
            );
        }
    }

    #[tokio::test]
    async fn one_connection_too_many_is_told_so_and_the_place_of_one_that_ends_is_free() {
        let (address, ..) = start_with(Addresses::new(Some(2), Some(1)), DEADLINE).await;
        let asked = b"GET /peer HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        let ask = async || {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(asked).await.unwrap();
            rest_of(&mut stream).await
        };
        // Loopback has no limit of its own, only the total limit.
        let mut first = TcpStream::connect(address).await.unwrap();
        let second = TcpStream::connect(address).await.unwrap();
        let refused = ask().await;
        assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
        assert!(refused.contains("too_many_requests"), "{refused}");
        assert!(
            refused.contains("`runtime.limits.connections`"),
            "{refused}"
        );
        drop(second);
        let again = async { while !ask().await.contains("200 OK") {} };
        timeout(DEADLINE, again).await.unwrap();
        first.write_all(asked).await.unwrap();
        assert!(rest_of(&mut first).await.contains("200 OK"));
    }

    #[tokio::test]
    async fn the_peer_is_known_and_a_stop_ends_what_waits() {
        let (address, stop, tasks) = start().await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        let asked = b"GET /peer HTTP/1.1\r\nHost: x\r\n\r\n";
        stream.write_all(asked).await.unwrap();
        let mut told = vec![0; 1024];
        let length = timeout(DEADLINE, stream.read(&mut told)).await.unwrap();
        let told = String::from_utf8_lossy(&told[..length.unwrap()]).into_owned();
        let own = stream.local_addr().unwrap().to_string();
        assert!(told.contains("200 OK") && told.ends_with(&own), "{told}");
        stop.cancel();
        assert_eq!(rest_of(&mut stream).await, "");
        timeout(DEADLINE, tasks.wait()).await.unwrap();
        assert!(TcpStream::connect(address).await.is_err());
    }
}
