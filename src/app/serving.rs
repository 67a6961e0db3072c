//! Connections of HTTP. A stranger who says nothing, or says it one byte at a time, may not hold one.

use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use axum::extract::ConnectInfo;
use axum::serve::Listener;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Layer as _;

/// How long the head of a request may take, counted from the moment the connection waits for one: as
/// long as proxies keep idle connections (two minutes by default), and more, because one that ends
/// under a request is an error for somebody.
pub(super) const HEAD_LIMIT: Duration = Duration::from_mins(3);

/// Serves until `farewell` is over; then requests that run are seen through.
pub(super) async fn serve(
    mut listener: TcpListener,
    router: Router,
    head_limit: Duration,
    farewell: impl Future<Output = ()>,
) {
    let (connections, stop) = (TaskTracker::new(), CancellationToken::new());
    let mut farewell = pin!(farewell);
    loop {
        // Where no connection can be taken, as without file handles, it waits and says so.
        let (stream, peer) = tokio::select! {
            biased;
            () = &mut farewell => break,
            taken = Listener::accept(&mut listener) => taken,
        };
        // Without it the second small frame of a burst waits about 40 ms.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY was not set");
        }
        let router = router.clone();
        connections.spawn(converse(stream, peer, router, head_limit, stop.clone()));
    }
    drop(listener);
    stop.cancel();
    connections.close();
    connections.wait().await;
}

/// Answers the requests of one connection, until it becomes a websocket's.
async fn converse(
    stream: TcpStream,
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

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Duration;

    use axum::extract::ConnectInfo;
    use axum::{Router, routing::get};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::timeout;
    use tokio_util::sync::CancellationToken;
    use tokio_util::task::TaskTracker;

    use super::serve;

    const DEADLINE: Duration = Duration::from_secs(20);
    const HEAD_LIMIT: Duration = Duration::from_millis(300);

    async fn start() -> (SocketAddr, CancellationToken, TaskTracker) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let peer = |ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { peer.to_string() };
        let router = Router::new().route("/peer", get(peer));
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(serve(
            listener,
            router,
            HEAD_LIMIT,
            stop.clone().cancelled_owned(),
        ));
        tasks.close();
        (address, stop, tasks)
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
