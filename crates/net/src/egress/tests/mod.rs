//! The proxy over a plain stream, tested with a site on loopback.

mod edge;

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::traffic::{CountedStream, Traffic};
use super::{Egress, IDLE_LIMIT, Proxy, Reach};
use crate::Guard;
use sepal_core::domain::AllowedHosts;

const DEADLINE: Duration = Duration::from_secs(30);

/// A site that returns one request as the body of its response.
async fn site() -> (u16, impl Future<Output = ()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = async move {
        let (mut visitor, _) = listener.accept().await.unwrap();
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") {
            asked.push(visitor.read_u8().await.unwrap());
        }
        let head = b"HTTP/1.1 200 OK\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\n\r\n";
        visitor.write_all(head).await.unwrap();
        visitor.write_all(&asked).await.unwrap();
        visitor.shutdown().await.unwrap();
    };
    (port, serving)
}

fn egress(hosts: &[String]) -> Egress {
    let hosts = AllowedHosts::parse(hosts).unwrap();
    Egress::new(hosts, Reach::Private, Guard::default())
}

/// Sends a text to the proxy; returns what the program reads, and the lines of the server's log.
async fn ask(egress: Egress, said: String) -> (String, Vec<String>) {
    let (lines, mut told) = mpsc::channel(8);
    let (mut program, stream) = duplex(64 << 10);
    let proxy = Proxy::new(egress, "test", lines);
    let asking = async move {
        // A program that is refused midway cannot send the rest.
        let _ = program.write_all(said.as_bytes()).await;
        let mut read = String::new();
        program.read_to_string(&mut read).await.unwrap();
        read
    };
    let both = async { tokio::join!(asking, proxy.serve(stream)).0 };
    let read = tokio::time::timeout(DEADLINE, both).await.unwrap();
    proxy.tasks.close();
    proxy.tasks.wait().await;
    drop(proxy);
    let mut log = Vec::new();
    while let Some(line) = told.recv().await {
        log.push(line);
    }
    (read, log)
}

#[tokio::test]
async fn a_host_hears_what_is_meant_for_it_and_nothing_of_the_proxy() {
    let (port, serving) = site().await;
    let host = format!("localhost:{port}");
    let said = format!(
        "GET http://user:hush@{host}/a?b=c HTTP/1.1\r\nHost: other.example\r\n\
         Proxy-Authorization: Basic eA==\r\nProxy-Connection: keep-alive\r\n\
         Connection: close, X-Own\r\nX-Own: 1\r\nX-Kept: 2\r\nTE: trailers\r\n\r\n"
    );
    let asking = ask(egress(std::slice::from_ref(&host)), said);
    let ((read, log), ()) = tokio::join!(asking, serving);
    let (answer, asked) = read.split_once("\r\n\r\n").unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(!answer.to_lowercase().contains("x-hop"), "{answer}");
    let heard = asked.to_lowercase();
    assert!(heard.contains("get /a?b=c http/1.1\r\n"), "{heard}");
    assert!(heard.contains(&format!("host: {host}\r\n")), "{heard}");
    assert!(heard.contains("x-kept: 2"), "{heard}");
    for gone in ["proxy-", "x-own", "te: ", "hush", "other.example"] {
        assert!(!heard.contains(gone), "{gone}: {heard}");
    }
    assert_eq!(log.len(), 1, "{log:?}");
    assert!(
        log[0].starts_with(&format!("sepal: reached {host} at ")),
        "{log:?}"
    );
}

#[tokio::test]
async fn a_tunnel_passes_bytes_as_they_are_and_counts_them() {
    let (port, serving) = site().await;
    let host = format!("localhost:{port}");
    // Bytes that follow the head directly belong to the host.
    let said = format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\nraw\r\n\r\n");
    let raw = egress(&[format!("tcp://{host}")]);
    let ((read, log), ()) = tokio::join!(ask(raw, said), serving);
    assert!(read.starts_with("HTTP/1.1 200 OK\r\n"), "{read}");
    assert!(read.ends_with("X-Hop: 1\r\n\r\nraw\r\n\r\n"), "{read}");
    assert!(log[0].contains(": 7 bytes sent, "), "{log:?}");
}

/// Allowing a host allows only that host, not the others at its address.
#[tokio::test]
async fn a_tunnel_for_one_host_carries_nothing_for_another() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = format!("localhost:{}", listener.local_addr().unwrap().port());
    for (words, told) in [
        (
            "GET / HTTP/1.1\r\nHost: other.example\r\n\r\n",
            "neither TLS nor plain HTTP",
        ),
        ("SSH-2.0-OpenSSH_9.6\r\n", "neither TLS nor plain HTTP"),
    ] {
        let said = format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n{words}");
        let hearing = async {
            let (mut visitor, _) = listener.accept().await.unwrap();
            let mut heard = Vec::new();
            visitor.read_to_end(&mut heard).await.unwrap();
            heard
        };
        let asking = ask(egress(std::slice::from_ref(&host)), said);
        let ((read, log), heard) = tokio::join!(asking, hearing);
        assert!(read.starts_with("HTTP/1.1 200 OK\r\n"), "{read}");
        assert_eq!(heard, b"", "{words}");
        assert!(log.iter().any(|line| line.contains(told)), "{log:?}");
    }
}

#[tokio::test]
async fn what_is_not_allowed_or_no_request_is_answered_and_reaches_nothing() {
    let check = async |said: &str, status: &str, word: &str| {
        let egress = egress(&["api.example.com".to_owned()]);
        let (read, log) = ask(egress, said.to_owned()).await;
        assert!(
            read.starts_with(&format!("HTTP/1.1 {status}")),
            "{said}: {read}"
        );
        assert!(read.contains(word), "{said}: {read}");
        assert!(
            log.iter().all(|line| line.starts_with("sepal: refused ")),
            "{log:?}"
        );
    };
    for (first, status, word) in [
        ("CONNECT evil.example:443", "403", "add `evil.example` to"),
        ("CONNECT api.example.com:22", "403", "`api.example.com:22`"),
        ("CONNECT 10.0.0.1:443", "403", "it is an address"),
        ("CONNECT [::1]:443", "403", "it is an address"),
        ("GET http://169.254.169.254/", "403", "it is an address"),
        ("GET https://api.example.com/", "400", "CONNECT host:port"),
        ("GET /", "400", "CONNECT host:port"),
    ] {
        let said = format!("{first} HTTP/1.1\r\nConnection: close\r\n\r\n");
        check(&said, status, word).await;
    }
    check("nonsense\r\n\r\n", "400", "").await;
    let long = "a".repeat(64 << 10);
    let said = format!("GET http://a.example/ HTTP/1.1\r\nX: {long}\r\n\r\n");
    check(&said, "431", "").await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_says_nothing_is_idle_and_one_that_talks_is_not() {
    let traffic = Traffic::default();
    let (mut host, stream) = duplex(8);
    let mut counted = CountedStream {
        stream,
        traffic: traffic.clone(),
    };
    let talking = async {
        for _ in 0..3 {
            tokio::time::sleep(IDLE_LIMIT / 2).await;
            counted.write_all(b"x").await.unwrap();
            host.read_u8().await.unwrap();
        }
    };
    let since = tokio::time::Instant::now();
    tokio::join!(traffic.until_idle(IDLE_LIMIT), talking);
    assert!(since.elapsed() >= IDLE_LIMIT * 2);
    assert_eq!(traffic.bytes(), (3, 0));
}
