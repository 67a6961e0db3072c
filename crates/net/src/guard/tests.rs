//! Which addresses are public, and that a guarded client connects to no others.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::dns::Resolve as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

use super::{BlockedHost, Guard, Resolver, blocked, is_public};
use crate::{Settings, guarded_client, install_tls};

#[test]
fn only_public_addresses_are_public() {
    fn check(expected: bool, addresses: &[&str]) {
        for address in addresses {
            assert_eq!(is_public(address.parse().unwrap()), expected, "{address}");
        }
    }
    check(
        true,
        &[
            "1.1.1.1",
            "8.8.8.8",
            "100.63.0.1",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "168.63.129.17",
            "2606:4700:4700::1111",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2002:808:808::1",
        ],
    );
    check(
        false,
        &[
            "0.0.0.0",
            "10.1.2.3",
            "127.0.0.1",
            "127.255.0.1",
            "100.100.100.200",
            "169.254.169.254",
            "168.63.129.16",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "192.0.0.8",
            "192.0.2.1",
            "198.19.0.1",
            "203.0.113.9",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "fe80::1",
            "fd00:ec2::254",
            "fec0::1",
            "ff02::1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::8.8.8.8",
            "2002:7f00:1::1",
            "2001:0:4136:e378::1",
            "2001:db8::1",
            "3fff::1",
        ],
    );
}

fn guard(allow: &str) -> Guard {
    Guard::new(vec![allow.parse().unwrap()])
}

#[test]
fn an_exception_of_the_operator_is_reached() {
    fn check(allow: &str, address: &str, expected: bool) {
        let judged = guard(allow).judge("a", address.parse().unwrap());
        assert_eq!(judged.is_ok(), expected, "{allow} {address}");
    }
    check("10.0.0.0/8", "10.2.3.4", true);
    check("10.0.0.0/8", "::ffff:10.2.3.4", true);
    check("10.0.0.0/8", "192.168.0.1", false);
    check("127.0.0.1/32", "127.0.0.2", false);
    check("fd00::/8", "fd12::1", true);
}

#[tokio::test]
async fn an_address_is_judged_when_it_is_named() {
    let check = async |url: &str, is_allowed: bool| {
        let url = url.parse().unwrap();
        let judged = Guard::default().check(&url).await;
        assert_eq!(judged.is_ok(), is_allowed, "{url}");
    };
    check("http://127.0.0.1:1/v1", false).await;
    check("http://0x7f.1/v1", false).await;
    check("http://2130706433/v1", false).await;
    check("http://[::1]/v1", false).await;
    check("http://[::ffff:10.0.0.1]/v1", false).await;
    check("http://169.254.169.254/latest/meta-data", false).await;
    check("http://localhost:8080/", false).await;
    check("https://1.1.1.1/", true).await;
    check("https://no-such-name.invalid/", true).await;
}

/// A server that counts its connections and greets each client.
async fn server() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let visits = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&visits);
    TaskTracker::new().spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            seen.fetch_add(1, Ordering::Relaxed);
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await;
            let answer = "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\n\
                          Content-Length: 2\r\nConnection: close\r\n\r\nhi";
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (address, visits)
}

#[tokio::test]
async fn a_guarded_client_connects_to_nothing_private() {
    install_tls();
    let (address, visits) = server().await;
    let port = address.port();
    let guarded = guarded_client(&Settings::default(), &Guard::default()).unwrap();
    for host in ["127.0.0.1", "localhost", "0.0.0.0", "[::ffff:127.0.0.1]"] {
        for scheme in ["http", "https"] {
            let url = format!("{scheme}://{host}:{port}/");
            let error = guarded.get(&url).send().await.unwrap_err();
            let blocked = blocked(&error).unwrap_or_else(|| panic!("{url}: {error:?}"));
            let host = host.trim_matches(['[', ']']);
            assert_eq!(blocked.host, host);
        }
    }
    assert_eq!(visits.load(Ordering::Relaxed), 0);

    let allowed = guarded_client(&Settings::default(), &guard("127.0.0.0/8")).unwrap();
    let answer = allowed.get(format!("http://127.0.0.1:{port}/"));
    // A redirect is returned to the caller, never followed.
    assert_eq!(answer.send().await.unwrap().status(), 302);
    assert_eq!(visits.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn what_was_judged_is_what_is_connected_to() {
    let asked = AtomicUsize::new(0);
    let rebinding = Resolver {
        guard: Guard::default(),
        look_up: Box::new(move |_| {
            let first = asked.fetch_add(1, Ordering::Relaxed) == 0;
            let address = if first { "8.8.8.8:0" } else { "127.0.0.1:0" };
            let found: io::Result<Vec<SocketAddr>> = Ok(vec![address.parse().unwrap()]);
            Box::pin(std::future::ready(found))
        }),
    };
    let name = || "rebind.example".parse().unwrap();
    let first: Vec<SocketAddr> = rebinding.resolve(name()).await.unwrap().collect();
    assert_eq!(first, ["8.8.8.8:0".parse().unwrap()]);
    let second = rebinding.resolve(name()).await.err().unwrap();
    assert_eq!(
        second.downcast_ref(),
        Some(&BlockedHost {
            host: "rebind.example".into()
        })
    );

    let mixed = Resolver {
        guard: Guard::default(),
        look_up: Box::new(|_| {
            let both = ["8.8.8.8:0", "169.254.169.254:0"].map(|text| text.parse().unwrap());
            Box::pin(std::future::ready(Ok(both.to_vec())))
        }),
    };
    assert!(
        mixed.resolve(name()).await.is_err(),
        "one bad one is enough"
    );
}
