//! Logs the messages to and from a provider at the level TRACE (S3.21): without headers, which hold the key,
//! and with secrets redacted.

use reqwest::{RequestBuilder, Response, StatusCode};
use tracing::Level;

use sepal_telemetry::{redact, redact_json};

/// The most characters of a message that are logged; a request that fills a window is longer.
const MOST: usize = 1_000_000;

/// Logs a request before it is sent.
pub(super) fn request(provider: &str, request: &RequestBuilder) {
    if !tracing::enabled!(Level::TRACE) {
        return;
    }
    let built = request.try_clone().and_then(|it| it.build().ok());
    let Some(request) = built else { return };
    let body = request.body().and_then(reqwest::Body::as_bytes);
    let body = body.map(String::from_utf8_lossy).unwrap_or_default();
    tracing::trace!(
        llm.provider = provider,
        "Request {} {}: {}",
        request.method(),
        redact(request.url().as_str()),
        redact_json(&body, MOST)
    );
}

/// Logs the head of a response.
pub(super) fn head(provider: &str, response: &Response) {
    let status = response.status().as_u16();
    tracing::trace!(llm.provider = provider, status, "The provider answers");
}

/// Logs one event of an answer, or a complete document.
pub(super) fn payload(provider: &str, text: &str) {
    if tracing::enabled!(Level::TRACE) {
        tracing::trace!(
            llm.provider = provider,
            "Answer: {}",
            redact_json(text, MOST)
        );
    }
}

/// Logs the body of an error response.
pub(super) fn refusal(provider: &str, status: StatusCode, body: &str) {
    if tracing::enabled!(Level::TRACE) {
        let status = status.as_u16();
        tracing::trace!(
            llm.provider = provider,
            status,
            "Refusal: {}",
            redact_json(body, MOST)
        );
    }
}
