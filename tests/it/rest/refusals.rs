//! Requests that cannot be right, from whomever.

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{Answer, Client};
use crate::support::{DEADLINE, TestApp};

#[tokio::test]
async fn an_unknown_address_and_a_wrong_method_are_problems_too() {
    let app = TestApp::start().await;
    let nobody = Client::nobody(&app);
    for path in [
        "/api",
        "/api/",
        "/api/nothing",
        "/api/sessions/x/y/z",
        "/api/../api/x",
    ] {
        nobody.get(path).await.problem(404, "not_found");
        nobody.post(path, json!({})).await.problem(404, "not_found");
    }
    let refused = nobody.send(Method::PUT, "/api/sessions", None).await;
    refused.problem(405, "method_not_allowed");
    let allowed = refused.header("allow");
    assert!(
        allowed.contains("GET") && allowed.contains("POST"),
        "{allowed}"
    );
    nobody
        .post("/welcome", json!({}))
        .await
        .problem(405, "method_not_allowed");
}

#[tokio::test]
async fn a_body_that_cannot_be_read_says_why() {
    let app =
        TestApp::start_with(&[("SPL_SANDBOX", "none"), ("SPL_LIMIT_FRAME_BYTES", "4096")]).await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    let post = async |kind: &str, body: String| {
        let request = client.request(Method::POST, "/api/sessions");
        let request = request.header("content-type", kind).body(body);
        Answer::of(request.send().await.unwrap()).await
    };
    let json = "application/json; charset=utf-8";
    post(json, "{}".into()).await.ok(201);
    for (kind, body, status, code, field) in [
        (
            "text/plain",
            "{}".to_owned(),
            415,
            "invalid_arguments",
            Some("Content-Type"),
        ),
        (
            "application/x-www-form-urlencoded",
            "title=x".into(),
            415,
            "invalid_arguments",
            Some("Content-Type"),
        ),
        (json, "{".into(), 400, "invalid_arguments", None),
        (json, String::new(), 400, "invalid_arguments", None),
        (json, "[]x".into(), 400, "invalid_arguments", None),
        (json, "{} {}".into(), 400, "invalid_arguments", None),
        (
            json,
            r#"{"title": {"a": 1}}"#.into(),
            400,
            "invalid_arguments",
            Some("title"),
        ),
        (
            json,
            format!(r#"{{"title": "{}"}}"#, "x".repeat(5_000)),
            413,
            "too_large",
            None,
        ),
        (json, "[".repeat(2_000), 400, "invalid_arguments", None),
    ] {
        let problem = post(kind, body.clone()).await.problem(status, code);
        let found = problem["errors"]
            .as_array()
            .unwrap()
            .first()
            .map(|error| &error["field"]);
        assert_eq!(
            found.and_then(|field| field.as_str()),
            field,
            "{kind} {body} {problem}"
        );
    }
}

const ALLOWED: [(&str, &str); 2] = [
    ("SPL_SANDBOX", "none"),
    ("SPL_ALLOWED_ORIGINS", "https://app.example"),
];

#[tokio::test]
async fn a_foreign_page_changes_nothing() {
    let app = TestApp::start_with(&ALLOWED).await;
    let ana = app.person("acme").await;
    let client = || Client::with_key(&app, &ana.key);
    for (name, value) in [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("origin", "http://localhost:1"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ] {
        let foreign = client().and(name, value);
        let problem = foreign.post("/api/sessions", json!({})).await;
        let problem = problem.problem(403, "host_refused");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("SPL_ALLOWED_ORIGINS"), "{detail}");
        let read = foreign.get("/api/sessions").await;
        assert!(!read.headers.contains_key("access-control-allow-origin"));
        let preflight = foreign.send(Method::OPTIONS, "/api/sessions", None).await;
        preflight.problem(403, "host_refused");
    }
    let own = client().and("origin", format!("http://{}", app.address));
    own.post("/api/sessions", json!({})).await.ok(201);
}

#[tokio::test]
async fn a_page_of_an_allowed_origin_may_ask_with_a_key() {
    let app = TestApp::start_with(&ALLOWED).await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key)
        .and("origin", "https://app.example")
        .and("sec-fetch-site", "cross-site");
    let answer = client.post("/api/sessions", json!({})).await;
    answer.ok(201);
    let origin = answer.header("access-control-allow-origin");
    assert_eq!(origin, "https://app.example");
    let credentials = "access-control-allow-credentials";
    assert!(!answer.headers.contains_key(credentials));
    let asked = client.and("access-control-request-method", "PATCH");
    let preflight = asked.send(Method::OPTIONS, "/api/sessions/x", None).await;
    assert_eq!(preflight.status, 200);
    let methods = preflight.header("access-control-allow-methods");
    assert!(methods.contains("PATCH"), "{methods}");
}

/// A connection that is closed with half of the body unread is reset, and its client, which still
/// sends, would not read why it was refused.
#[tokio::test]
async fn who_sends_too_much_reads_why_and_goes_on_over_the_same_connection() {
    const SIZE: usize = 24 << 20;
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none")]).await;
    let mut connection = BufReader::new(TcpStream::connect(app.address).await.unwrap());
    let body = vec![b' '; SIZE];
    for path in ["/api/sessions", "/api/nothing"] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {SIZE}\r\n\r\n"
        );
        let said = async {
            connection.write_all(head.as_bytes()).await.unwrap();
            connection.write_all(&body).await.unwrap();
            let mut status = String::new();
            connection.read_line(&mut status).await.unwrap();
            let (mut line, mut length) = (String::new(), 0);
            while line != "\r\n" {
                line.clear();
                connection.read_line(&mut line).await.unwrap();
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
            }
            let mut text = vec![0; length];
            connection.read_exact(&mut text).await.unwrap();
            (status, serde_json::from_slice::<Value>(&text).unwrap())
        };
        let (status, problem) = timeout(DEADLINE, said).await.unwrap();
        let expected = if path == "/api/nothing" { "404" } else { "401" };
        assert!(status.contains(expected), "{status} {problem}");
        assert!(problem["code"].is_string(), "{problem}");
    }
}
