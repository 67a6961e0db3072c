//! Sends requests to authorisation servers: bounded answers, no redirects, no secrets in error messages.

use std::time::Duration;

use futures::StreamExt as _;
use reqwest::header::ACCEPT;
use reqwest::{Client, RequestBuilder, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use url::Url;

use super::error::AuthorizationError;
use crate::wire::lenient;
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
        serde_json::from_value(lenient::parse(&self.body).ok()?).ok()
    }

    /// Reads the answer of a token endpoint; some send a form instead of JSON.
    pub(super) fn json_or_form(&self) -> Option<Value> {
        if let Ok(value) = lenient::parse(&self.body) {
            return Some(value);
        }
        let members = url::form_urlencoded::parse(&self.body);
        let members: Map<String, Value> = members
            .map(|(name, value)| (name.into_owned(), value.into_owned().into()))
            .collect();
        let is_form = members.contains_key("access_token") || members.contains_key("error");
        is_form.then_some(Value::Object(members))
    }

    /// Returns the error in the answer; `None` if it has none, or has a token beside it.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        let said = self.json_or_form()?;
        let error = said.get("error").filter(|error| !error.is_null())?;
        if said.get("access_token").is_some_and(Value::is_string) {
            return None;
        }
        let code = error.as_str().or_else(|| error.get("code")?.as_str());
        let description = said.get("error_description").and_then(lenient::words);
        Some(Refusal {
            code: code.unwrap_or_default().to_owned(),
            words: match (code, description.or_else(|| lenient::words(error))) {
                (Some(code), Some(words)) if words != code => self::words(code, Some(&words)),
                (Some(code), _) => self::words(code, None),
                (None, words) => self::words(&words.unwrap_or_else(|| error.to_string()), None),
            },
        })
    }
}

/// The error that an authorisation server sends instead of a token (RFC 6749, 5.2).
pub(super) struct Refusal {
    pub(super) code: String,
    /// The server's own words.
    pub(super) words: String,
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

/// Reads a metadata document; `None` if the server has none. A page instead of JSON is none: many servers answer
/// every address with one.
pub(super) async fn document<T: DeserializeOwned>(
    client: &Client,
    url: &Url,
) -> Result<Option<T>, AuthorizationError> {
    let answer = answered(client, url).await?;
    Ok(answer.and_then(|answer| answer.json()))
}

/// Reads a metadata document like [`document`]; one that is there and cannot be read is an error.
pub(super) async fn readable<T: DeserializeOwned>(
    client: &Client,
    url: &Url,
) -> Result<Option<T>, AuthorizationError> {
    let is_json = |answer: &Answer| answer.body.trim_ascii_start().first() == Some(&b'{');
    let answer = answered(client, url).await?;
    let Some(answer) = answer.filter(is_json) else {
        return Ok(None);
    };
    let found = answer.json();
    found.map(Some).ok_or_else(|| {
        let text = format!("`{url}` holds no metadata that can be read");
        AuthorizationError::Metadata(text)
    })
}

/// Requests a document; `None` if the server has none.
async fn answered(client: &Client, url: &Url) -> Result<Option<Answer>, AuthorizationError> {
    let answer = send(client.get(url.clone()), url).await?;
    if answer.status.is_server_error() {
        let status = answer.status.as_u16();
        return Err(unreachable(
            url,
            format!("it answered with status {status}"),
        ));
    }
    Ok((answer.status == StatusCode::OK).then_some(answer))
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

/// Returns the error for a refusal, with the server's words if it has any.
pub(super) fn refused(answer: &Answer) -> AuthorizationError {
    let said = answer.refusal().map(|refusal| refusal.words);
    let status = || format!("status {}", answer.status.as_u16());
    AuthorizationError::Refused(said.unwrap_or_else(status))
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
