//! Sends the requests of the protocol by the workspace's own HTTP client.

use std::time::Duration;

use openidconnect::{HttpRequest, HttpResponse};
use reqwest::{Client, Request};
use url::Url;

use crate::is_protected;

/// The time that one request may take, with its body.
const LIMIT: Duration = Duration::from_secs(10);

/// The largest body of a response, in bytes.
const MAX_BODY: usize = 1024 * 1024;

/// The reason a request got no response.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    /// The address is not https, and not on this machine.
    #[error("`{0}` is not an https address")]
    NotProtected(String),
    #[error("there is no response within 10 s")]
    Late,
    #[error("the response is larger than 1 MiB")]
    TooLarge,
    #[error("the request failed: {0}")]
    Failed(String),
    #[error("the response cannot be read: {0}")]
    Unreadable(String),
}

/// Sends a request. Follows no redirect.
pub(super) async fn call(client: Client, request: HttpRequest) -> Result<HttpResponse, CallError> {
    let address = request.uri().to_string();
    let url = Url::parse(&address).ok();
    if !url.is_some_and(|url| is_protected(&url)) {
        return Err(CallError::NotProtected(address));
    }
    let asked = tokio::time::timeout(LIMIT, send(client, request));
    asked.await.map_err(|_| CallError::Late)?
}

async fn send(client: Client, request: HttpRequest) -> Result<HttpResponse, CallError> {
    let failed = |error: &reqwest::Error| CallError::Failed(sepal_net::below(error));
    let request = Request::try_from(request).map_err(|error| failed(&error))?;
    let mut response = client
        .execute(request)
        .await
        .map_err(|error| failed(&error))?;
    let mut built = openidconnect::http::Response::builder().status(response.status());
    for (name, value) in response.headers() {
        built = built.header(name, value);
    }
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await.map_err(|error| failed(&error))? {
        if body.len().saturating_add(part.len()) > MAX_BODY {
            return Err(CallError::TooLarge);
        }
        body.extend_from_slice(&part);
    }
    built
        .body(body)
        .map_err(|error| CallError::Unreadable(error.to_string()))
}
