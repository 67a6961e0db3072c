//! Requests that cannot be right, from whomever.

use reqwest::Method;
use serde_json::json;

use super::{Answer, Client};
use crate::support::TestApp;

#[tokio::test]
async fn an_unknown_address_and_a_wrong_method_are_problems_too() {
    let app = TestApp::start().await;
    let nobody = Client::nobody(&app);
    for path in ["/api", "/api/", "/api/nothing", "/api/sessions/x/y/z", "/api/../api/x"] {
        nobody.get(path).await.problem(404, "not_found");
        nobody.post(path, json!({})).await.problem(404, "not_found");
    }
    let refused = nobody.send(Method::PUT, "/api/sessions", None).await;
    refused.problem(405, "method_not_allowed");
    let allowed = refused.header("allow");
    assert!(allowed.contains("GET") && allowed.contains("POST"), "{allowed}");
    nobody.post("/welcome", json!({})).await.problem(405, "method_not_allowed");
}

#[tokio::test]
async fn a_body_that_cannot_be_read_says_why() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none"), ("SPL_LIMIT_FRAME_BYTES", "4096")]).await;
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
        ("text/plain", "{}".to_owned(), 415, "invalid_arguments", Some("Content-Type")),
        ("application/x-www-form-urlencoded", "title=x".into(), 415, "invalid_arguments", Some("Content-Type")),
        (json, "{".into(), 400, "invalid_arguments", None),
        (json, String::new(), 400, "invalid_arguments", None),
        (json, "[]x".into(), 400, "invalid_arguments", None),
        (json, "{} {}".into(), 400, "invalid_arguments", None),
        (json, r#"{"title": {"a": 1}}"#.into(), 400, "invalid_arguments", Some("title")),
        (json, format!(r#"{{"title": "{}"}}"#, "x".repeat(5_000)), 413, "too_large", None),
        (json, "[".repeat(2_000), 400, "invalid_arguments", None),
    ] {
        let problem = post(kind, body.clone()).await.problem(status, code);
        let found = problem["errors"].as_array().unwrap().first().map(|error| &error["field"]);
        assert_eq!(found.and_then(|field| field.as_str()), field, "{kind} {body} {problem}");
    }
}

#[tokio::test]
async fn a_foreign_page_changes_nothing_and_an_allowed_one_may_ask() {
    let env = [("SPL_SANDBOX", "none"), ("SPL_ALLOWED_ORIGINS", "https://app.example")];
    let app = TestApp::start_with(&env).await;
    let ana = app.person("acme").await;
    let client = || Client::with_key(&app, &ana.key);
    for (name, value) in [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("origin", "http://localhost:1"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ] {
        let problem = client().and(name, value).post("/api/sessions", json!({})).await;
        let problem = problem.problem(403, "host_refused");
        assert!(problem["detail"].as_str().unwrap().contains("SPL_ALLOWED_ORIGINS"), "{problem}");
    }
    let own = format!("http://{}", app.address);
    client().and("origin", own).post("/api/sessions", json!({})).await.ok(201);

    let other = || client().and("origin", "https://app.example").and("sec-fetch-site", "cross-site");
    let answer = other().post("/api/sessions", json!({})).await;
    answer.ok(201);
    assert_eq!(answer.header("access-control-allow-origin"), "https://app.example");
    assert!(!answer.headers.contains_key("access-control-allow-credentials"));
    let asked = other().and("access-control-request-method", "PATCH");
    let preflight = asked.send(Method::OPTIONS, "/api/sessions/x", None).await;
    assert_eq!(preflight.status, 200);
    assert!(preflight.header("access-control-allow-methods").contains("PATCH"));
    let evil = client().and("origin", "https://evil.example");
    evil.send(Method::OPTIONS, "/api/sessions", None).await.problem(403, "host_refused");
    assert!(!evil.get("/api/sessions").await.headers.contains_key("access-control-allow-origin"));
}
