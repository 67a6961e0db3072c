//! Sends requests to authorisation servers: bounded answers, no redirects, no secrets in error messages.

use std::time::Duration;

use futures::StreamExt as _;
use reqwest::header::ACCEPT;
use reqwest::{Client, RequestBuilder, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::Url;

use super::error::AuthorizationError;
use sepal_net as net;
use sepal_net::below;

/// The time limit for one answer of an authorisation server.
pub(super) const LIMIT: Duration = Duration::from_secs(20);
/// Most bytes of one answer.
const MAX_BYTES: usize = 256 * 1024;
/// The most characters quoted of a server's own words.
const MAX_WORDS: usize = 300;

/// An answer's status and body.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn json<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&self.body).ok()
    }
}

/// The error that an authorisation server sends instead of a token (RFC 6749, 5.2).
#[derive(Deserialize)]
pub(super) struct Refusal {
    pub(super) error: String,
    #[serde(default)]
    error_description: Option<String>,
}

impl Refusal {
    /// Returns the server's own words.
    pub(super) fn words(&self) -> String {
        words(&self.error, self.error_description.as_deref())
    }
}

/// Formats an error code and its description, shortened and on one line.
pub(super) fn words(error: &str, description: Option<&str>) -> String {
    let said = match description {
        Some(description) => format!("{error}: {description}"),
        None => error.to_owned(),
    };
    let one_line = said.chars().map(|c| if c.is_control() { ' ' } else { c });
    one_line.take(MAX_WORDS).collect()
}

/// Reads a metadata document; `None` if the server has none.
pub(super) async fn document<T: DeserializeOwned>(
    client: &Client,
    url: &Url,
) -> Result<Option<T>, AuthorizationError> {
    let answer = send(client.get(url.clone()), url).await?;
    if answer.status.is_server_error() {
        return Err(unreachable(
            url,
            format!("it answered with status {}", answer.status.as_u16()),
        ));
    }
    Ok((answer.status == StatusCode::OK)
        .then(|| answer.json())
        .flatten())
}

/// Sends a request and reads the answer.
pub(super) async fn send(request: RequestBuilder, url: &Url) -> Result<Answer, AuthorizationError> {
    let request = request.header(ACCEPT, "application/json").timeout(LIMIT);
    let response = request.send().await.map_err(|error| failed(url, &error))?;
    let status = response.status();
    let mut body = Vec::new();
    let mut pieces = response.bytes_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| failed(url, &error))?;
        if body.len() + piece.len() > MAX_BYTES {
            let text = format!("`{}` answers with more than {MAX_BYTES} bytes", host(url));
            return Err(AuthorizationError::Metadata(text));
        }
        body.extend_from_slice(&piece);
    }
    Ok(Answer { status, body })
}

/// Returns the error of a request without an answer; names the network guard's refusal if it caused the
/// failure.
pub(super) fn failed(url: &Url, error: &reqwest::Error) -> AuthorizationError {
    let reason = net::blocked(error).map(ToString::to_string);
    unreachable(url, reason.unwrap_or_else(|| below(error)))
}

/// Parses an endpoint that the metadata name; endpoints were checked when the metadata were found.
pub(super) fn endpoint(text: &str) -> Result<Url, AuthorizationError> {
    Url::parse(text).map_err(|_| AuthorizationError::Metadata(format!("`{text}` is no address")))
}

fn unreachable(url: &Url, reason: String) -> AuthorizationError {
    let host = host(url);
    AuthorizationError::Unreachable { host, reason }
}

fn host(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_owned()
}
