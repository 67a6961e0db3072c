//! Logs the messages to and from a provider at the level TRACE (S3.21): without headers, which hold the key,
//! and with secrets redacted, the key of the request among them.

use std::sync::Arc;

use reqwest::header::{AUTHORIZATION, HeaderMap};
use reqwest::{RequestBuilder, Response, StatusCode};
use tracing::Level;

use super::key_mask::without_key;
use sepal_telemetry::{redact, redact_json};

/// The most characters of a message that are logged; a request that fills a window is longer.
const MOST: usize = 1_000_000;

/// The keys that a request sent in its headers: its response may repeat them. Empty unless messages are logged.
#[derive(Debug, Clone, Default)]
pub(crate) struct SentKeys(Arc<[String]>);

impl SentKeys {
    fn of(headers: &HeaderMap) -> Self {
        let names = [AUTHORIZATION.as_str(), "x-api-key", "x-goog-api-key"];
        let values = names.iter().flat_map(|name| headers.get_all(*name));
        let keys = values.filter_map(|value| {
            let value = value.to_str().ok()?;
            Some(value.strip_prefix("Bearer ").unwrap_or(value).to_owned())
        });
        Self(keys.collect())
    }

    /// The keys that a response knows: those of its request.
    pub(crate) fn of_response(response: &Response) -> Self {
        response.extensions().get().cloned().unwrap_or_default()
    }

    fn hide(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for key in &*self.0 {
            text = without_key(&text, key);
        }
        redact_json(&text, MOST)
    }
}

/// Logs a request before it is sent. Returns its keys, for the log of its response.
pub(super) fn request(provider: &str, request: &RequestBuilder) -> SentKeys {
    if !tracing::enabled!(Level::TRACE) {
        return SentKeys::default();
    }
    let built = request.try_clone().and_then(|it| it.build().ok());
    let Some(request) = built else {
        return SentKeys::default();
    };
    let body = request.body().and_then(reqwest::Body::as_bytes);
    let body = body.map(String::from_utf8_lossy).unwrap_or_default();
    tracing::trace!(
        llm.provider = provider,
        "Request {} {}: {}",
        request.method(),
        redact(request.url().as_str()),
        redact_json(&body, MOST)
    );
    SentKeys::of(request.headers())
}

/// Logs the head of a response.
pub(super) fn head(provider: &str, response: &Response) {
    let status = response.status().as_u16();
    tracing::trace!(llm.provider = provider, status, "The provider answers");
}

/// Logs one event of an answer, or a complete document.
pub(super) fn payload(provider: &str, text: &str, keys: &SentKeys) {
    if tracing::enabled!(Level::TRACE) {
        tracing::trace!(llm.provider = provider, "Answer: {}", keys.hide(text));
    }
}

/// Logs the body of an error response.
pub(super) fn refusal(provider: &str, status: StatusCode, body: &str, keys: &SentKeys) {
    if tracing::enabled!(Level::TRACE) {
        let status = status.as_u16();
        tracing::trace!(
            llm.provider = provider,
            status,
            "Refusal: {}",
            keys.hide(body)
        );
    }
}
