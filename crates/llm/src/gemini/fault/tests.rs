//! Tables for this file.

use std::time::Duration;

use reqwest::StatusCode;

use super::{in_stream, refused};
use crate::Error;
use crate::transport::Refused;
use crate::transport::endpoint::Origin;
use crate::transport::verdict::Verdict;

const ORIGIN: Origin<'_> = Origin {
    provider: "p",
    key: Some("AIza-secret"),
};

fn answer(status: u16, body: &str, retry_after: Option<u64>) -> Error {
    let refusal = Refused {
        status: StatusCode::from_u16(status).unwrap(),
        retry_after: retry_after.map(Duration::from_secs),
        body: body.to_owned(),
    };
    refused(ORIGIN, &refusal)
}

fn check(status: u16, body: &str, expected: &str, said: &str) {
    let error = answer(status, body, None);
    assert_eq!(Verdict::word(&error), expected, "{status} {body}");
    assert!(error.to_string().contains(said), "{error}");
}

fn body(code: u16, status: &str, message: &str) -> String {
    format!(r#"{{"error":{{"code":{code},"message":"{message}","status":"{status}"}}}}"#)
}

#[test]
fn a_refusal_is_known_by_its_status() {
    for (code, status, expected) in [
        (429, "RESOURCE_EXHAUSTED", "limited"),
        (503, "UNAVAILABLE", "unavailable"),
        (500, "INTERNAL", "unavailable"),
        (504, "DEADLINE_EXCEEDED", "unavailable"),
        (401, "UNAUTHENTICATED", "key"),
        (403, "PERMISSION_DENIED", "key"),
        (404, "NOT_FOUND", "address"),
        (400, "INVALID_ARGUMENT", "request"),
        (400, "FAILED_PRECONDITION", "request"),
    ] {
        let body = body(code, status, "the words of AIza-secret");
        check(code, &body, expected, "the words of [key]");
        check(code, &format!("[{body}]"), expected, "the words of [key]");
    }
}

#[test]
fn a_wrong_key_comes_as_a_bad_request_with_a_reason() {
    let body = r#"{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[
        {"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com","metadata":{"service":"x"}}]}}"#;
    check(400, body, "key", "API key not valid.");
}

#[test]
fn a_full_window_is_known_by_its_words() {
    let words =
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).";
    check(
        400,
        &body(400, "INVALID_ARGUMENT", words),
        "overflow",
        "1200000",
    );
    check(429, &body(429, "RESOURCE_EXHAUSTED", words), "limited", "");
}

#[test]
fn when_to_ask_again_stands_in_a_header_or_among_the_details() {
    let body = r#"{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED","details":[
        {"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"x"}]},
        {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}"#;
    let wait = |header| answer(429, body, header).retry_after();
    assert_eq!(wait(None), Some(Duration::from_millis(34_500)));
    assert_eq!(wait(Some(3)), Some(Duration::from_secs(3)));
}

#[test]
fn without_a_status_of_its_own_that_of_http_decides() {
    check(
        502,
        "<html>Bad Gateway</html>",
        "unavailable",
        "Bad Gateway",
    );
    check(429, "", "limited", "HTTP 429");
    check(403, r#"{"error":"forbidden"}"#, "key", "forbidden");
    check(404, "[]", "address", "[]");
    check(413, "", "overflow", "HTTP 413");
    check(418, "7", "request", "7");
}

#[test]
fn an_error_in_a_stream_is_known_by_its_status() {
    fn check(json: &str, expected: &str) {
        assert_eq!(Verdict::word(&in_stream(ORIGIN, json)), expected, "{json}");
    }
    check(
        r#"{"code":503,"message":"x","status":"UNAVAILABLE"}"#,
        "unavailable",
    );
    check(r#"{"code":429,"message":"x"}"#, "limited");
    check(
        r#"{"code":400,"message":"x","status":"INVALID_ARGUMENT"}"#,
        "request",
    );
    check(r#"{"message":null}"#, "unavailable");
    check(r#""plain words""#, "unavailable");
    check("7", "unavailable");
}
