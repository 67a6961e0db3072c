//! Tables of requests and the decisions about them.

use std::net::SocketAddr;

use axum::extract::ConnectInfo;
use axum::http::request::Parts;
use axum::http::{Method, Request};

use super::{AccessError, AccessRules, RequestOrigin};
use crate::config;

fn rules(public_url: &str, bind: &str) -> AccessRules {
    let settings = config::Access {
        public_url: (!public_url.is_empty()).then(|| public_url.parse().unwrap()),
        allowed_origins: vec!["https://app.example".into()],
        trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()],
    };
    AccessRules::new(&settings, bind)
}

#[test]
fn only_known_hosts_are_answered() {
    fn check(host: Option<&str>, expected: bool) {
        let rules = rules("https://Sepal.example/agents", "192.0.2.7");
        let asked = RequestOrigin {
            host,
            ..RequestOrigin::default()
        };
        assert_eq!(rules.check(asked).is_ok(), expected, "{host:?}");
    }
    for good in [
        "localhost",
        "LOCALHOST:3000",
        "localhost.",
        "127.0.0.1:3000",
        "[::1]:3000",
        "[::1]",
        "sepal.example",
        "sepal.example:8443",
        "192.0.2.7:3000",
    ] {
        check(Some(good), true);
    }
    for bad in [
        "evil.example",
        "localhost.evil.example",
        "evil-localhost",
        "localhost@evil.example",
        "sepal.example.evil",
        "192.0.2.8",
        "0.0.0.0",
        "[::]",
        "",
        ":3000",
        "127.0.0.2",
        "a b",
        "app.example",
    ] {
        check(Some(bad), false);
    }
    check(None, false);
}

#[test]
fn a_wildcard_address_is_no_name() {
    for bind in ["0.0.0.0", "::", "[::]"] {
        let rules = rules("", bind);
        let asked = |host| RequestOrigin {
            host: Some(host),
            ..RequestOrigin::default()
        };
        assert_eq!(
            rules.check(asked("192.0.2.7")),
            Err(AccessError::Host("192.0.2.7".into())),
            "{bind}"
        );
        assert_eq!(rules.check(asked("localhost")), Ok(()), "{bind}");
    }
    let v6 = rules("", "fd00::1");
    assert!(
        v6.check(RequestOrigin {
            host: Some("[fd00::1]:3000"),
            ..RequestOrigin::default()
        })
        .is_ok()
    );
}

#[test]
fn foreign_pages_change_nothing() {
    fn check(host: &str, origin: &str, site: &str, expected: bool) {
        let rules = rules("https://sepal.example:8443/agents", "localhost");
        let some = |text: &'static str| Some(text).filter(|text| !text.is_empty());
        let (origin, site) = (origin.to_owned().leak(), site.to_owned().leak());
        let asked = RequestOrigin {
            host: Some(host),
            origin: some(origin),
            site: some(site),
            is_guarded: true,
        };
        assert_eq!(
            rules.check(asked).is_ok(),
            expected,
            "{host} {origin} {site}"
        );
        // Unguarded reads depend on the host alone.
        assert!(
            rules
                .check(RequestOrigin {
                    is_guarded: false,
                    ..asked
                })
                .is_ok()
        );
    }
    let host = "localhost:3000";
    check(host, "", "", true);
    check(host, "http://localhost:3000", "same-origin", true);
    check(host, "http://localhost:3000", "", true);
    check(host, "HTTP://LOCALHOST:3000", "", true);
    check(host, "", "same-origin", true);
    check(host, "", "none", true);
    check(host, "", "same-site", false);
    check(host, "", "cross-site", false);
    check(host, "", "new-value", false);
    check(host, "null", "", false);
    check(host, "http://localhost:5173", "same-site", false);
    check(host, "http://127.0.0.1:3000", "cross-site", false);
    check(host, "http://evil.example", "cross-site", false);
    check(host, "ftp://localhost:3000", "", false);
    check(host, "http://localhost", "", false);
    check(host, "unreadable", "", false);
    check(host, "https://app.example", "cross-site", true);
    check(host, "https://app.example:444", "cross-site", false);
    check("localhost", "http://localhost", "", true);
    check("localhost", "http://localhost:80", "", true);
    check("localhost", "https://localhost", "", true);
    // A proxy may remove the port from `Host`; the public address still identifies the page's origin.
    check("sepal.example", "https://sepal.example:8443", "", true);
    check("sepal.example", "https://sepal.example", "", true);
    check("sepal.example:8443", "https://sepal.example:8443", "", true);
    check("sepal.example:8443", "http://sepal.example", "", false);
}

fn request(peer: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::builder().method(Method::GET).uri("/");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (mut parts, ()) = request.body(()).unwrap().into_parts();
    let peer: SocketAddr = peer.parse().unwrap();
    parts.extensions.insert(ConnectInfo(peer));
    parts
}

#[test]
fn a_client_is_local_only_without_a_proxy() {
    fn check(peer: &str, headers: &[(&str, &str)], expected: bool) {
        let found = rules("", "localhost").peer(&request(peer, headers));
        assert_eq!(found.is_local, expected, "{peer} {headers:?}");
    }
    check("127.0.0.1:9", &[], true);
    check("[::1]:9", &[], true);
    check("[::ffff:127.0.0.1]:9", &[], true);
    check("192.0.2.1:9", &[], false);
    for name in [
        "Forwarded",
        "X-Forwarded-For",
        "X-Forwarded-Host",
        "X-Forwarded-Proto",
        "X-Forwarded-Port",
        "X-Real-IP",
    ] {
        check("127.0.0.1:9", &[(name, "127.0.0.1")], false);
    }
    let (mut unknown, ()) = Request::new(()).into_parts();
    unknown.extensions.clear();
    assert!(!rules("", "localhost").peer(&unknown).is_local);
}

#[test]
fn only_a_trusted_proxy_names_the_client() {
    fn check(peer: &str, forwarded: &str, expected: &str) {
        let found = rules("", "localhost").peer(&request(peer, &[("X-Forwarded-For", forwarded)]));
        assert_eq!(found.address.to_string(), expected, "{peer} {forwarded}");
    }
    check("192.0.2.1:9", "198.51.100.1", "192.0.2.1");
    check("10.0.0.1:9", "198.51.100.1", "198.51.100.1");
    check("10.0.0.1:9", "203.0.113.9, 198.51.100.1", "198.51.100.1");
    check("10.0.0.1:9", "198.51.100.1, 10.0.0.2", "198.51.100.1");
    check("10.0.0.1:9", "nonsense", "10.0.0.1");
    check("10.0.0.1:9", "", "10.0.0.1");
}

#[test]
fn encryption_is_the_proxys_word_or_the_operators() {
    fn check(peer: &str, headers: &[(&str, &str)], expected: bool) {
        let found = rules("https://sepal.example/", "localhost").peer(&request(peer, headers));
        assert_eq!(found.is_encrypted, expected, "{peer} {headers:?}");
    }
    check("10.0.0.1:9", &[("X-Forwarded-Proto", "https")], true);
    check(
        "10.0.0.1:9",
        &[("X-Forwarded-Proto", "http"), ("Host", "sepal.example")],
        false,
    );
    check("192.0.2.1:9", &[("X-Forwarded-Proto", "https")], false);
    // Chained proxies: the scheme by which the client reached the first trusted one counts.
    let chained = |schemes, addresses| {
        [
            ("X-Forwarded-Proto", schemes),
            ("X-Forwarded-For", addresses),
        ]
    };
    let two = "198.51.100.1, 10.0.0.2";
    check("10.0.0.1:9", &chained("https, http", two), true);
    check("10.0.0.1:9", &chained("http,https", two), false);
    check("10.0.0.1:9", &chained("HTTPS", two), true);
    // What the client or an unknown proxy wrote in front of that does not.
    check("10.0.0.1:9", &chained("https, http, http", two), false);
    check("10.0.0.1:9", &chained("https, http", "198.51.100.1"), false);
    check("10.0.0.1:9", &[("X-Forwarded-Proto", "https, http")], false);
    check("10.0.0.1:9", &[("X-Forwarded-Proto", "http, https")], true);
    check("192.0.2.1:9", &[("Host", "sepal.example")], true);
    check("192.0.2.1:9", &[("Host", "localhost:3000")], false);
}

#[test]
fn the_base_path_has_a_slash_at_both_ends() {
    for (url, expected) in [
        ("", "/"),
        ("https://sepal.example", "/"),
        ("https://sepal.example/sepal", "/sepal/"),
        ("https://sepal.example/a/b/", "/a/b/"),
    ] {
        assert_eq!(rules(url, "localhost").base_path(), expected, "{url}");
    }
}
