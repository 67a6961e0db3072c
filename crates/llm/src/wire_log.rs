//! What goes to a provider and comes from it, in the log at its finest level (S3.21): without headers,
//! where the key is, and without what looks like a secret in what is said.

use reqwest::{RequestBuilder, Response, StatusCode};
use tracing::Level;

use sepal_telemetry::{redact, redact_json};

/// Characters of a message that are logged: a request that fills a window is longer.
const MOST: usize = 1_000_000;

/// A request that is about to be sent.
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

/// The head of what came back.
pub(super) fn head(provider: &str, response: &Response) {
    let status = response.status().as_u16();
    tracing::trace!(llm.provider = provider, status, "The provider answers");
}

/// One event of an answer, or the whole of one that is no stream.
pub(super) fn payload(provider: &str, text: &str) {
    if tracing::enabled!(Level::TRACE) {
        tracing::trace!(
            llm.provider = provider,
            "Answer: {}",
            redact_json(text, MOST)
        );
    }
}

/// What came with a status that is no success.
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
