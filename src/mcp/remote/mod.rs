//! Servers that are reached over streamable HTTP.

mod events;
mod exchange;
mod refusal;

pub(super) use self::exchange::{Error as HttpError, Failure};

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::service::ClientInitializeError;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::common::http_header::{HEADER_LAST_EVENT_ID, HEADER_SESSION_ID};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use self::exchange::Exchange;
use super::error::Error;
use crate::net;

/// How often an answer whose stream broke is asked for again, after pauses of 1, 2 and 4 s or as the
/// server says. After that the call is lost, which is not to take as long as its time limit.
const RESUMES: usize = 3;

/// Headers that the exchange itself writes.
const OWN_HEADERS: [&str; 3] = ["accept", HEADER_LAST_EVENT_ID, HEADER_SESSION_ID];

/// Where a remote server is, and what it is sent with every request.
#[derive(Clone)]
pub struct Remote {
    pub url: String,
    /// The headers; their values are secrets.
    pub headers: BTreeMap<String, String>,
}

pub(super) fn transport(
    server: &str,
    client: reqwest::Client,
    remote: &Remote,
) -> Result<StreamableHttpClientTransport<Exchange>, Error> {
    let mut headers = HashMap::new();
    for (name, value) in &remote.headers {
        if OWN_HEADERS.iter().any(|own| own.eq_ignore_ascii_case(name)) {
            return Err(Error::Handshake {
                server: server.to_owned(),
                reason: format!("the header `{name}` is written by the protocol; remove it"),
            });
        }
        let parsed = HeaderName::from_bytes(name.as_bytes())
            .ok()
            .zip(HeaderValue::from_str(value).ok());
        let Some((name, mut value)) = parsed else {
            return Err(Error::Handshake {
                server: server.to_owned(),
                reason: format!("the header `{name}` has an impossible name or value"),
            });
        };
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    // A session that the server has ended is begun again by whoever owns the connection: here the
    // calls that still ran in it would get an answer that looks like the server's own.
    let mut config = StreamableHttpClientTransportConfig::with_uri(remote.url.as_str())
        .custom_headers(headers)
        .reinit_on_expired_session(false);
    let mut resuming = ExponentialBackoff::default();
    resuming.max_times = Some(RESUMES);
    config.retry_config = Arc::new(resuming);
    let client = Exchange(client);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// Why a handshake did not come about. Whoever cannot be reached may be tried again. Addresses are
/// not told: a query may hold a key.
pub(super) fn handshake_error(server: &str, error: &ClientInitializeError) -> Error {
    let server = server.to_owned();
    let reason = match http_error(error) {
        None => error.to_string(),
        Some(HttpError::Client(Failure::Refused(refusal))) => refusal.to_string(),
        Some(HttpError::Client(Failure::Client(error))) => match net::blocked(error) {
            Some(blocked) => blocked.to_string(),
            None if error.is_connect() || error.is_timeout() => {
                let reason = below(error);
                return Error::Unreachable { server, reason };
            }
            None => match error.status() {
                Some(status) => format!("it answered with status {status}"),
                None => below(error),
            },
        },
        Some(error) => error.to_string(),
    };
    Error::Handshake { server, reason }
}

/// The HTTP client's own error; rmcp does not name it as the source.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "every other error comes from the server's answer, whatever rmcp adds"
)]
fn http_error(error: &ClientInitializeError) -> Option<&HttpError> {
    match error {
        ClientInitializeError::TransportError { error, .. } => error.error.downcast_ref(),
        _ => None,
    }
}

/// What lies below an error of the HTTP client, outermost first; what repeats the one above is
/// left out.
pub(super) fn below(error: &reqwest::Error) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut next = std::error::Error::source(error);
    while let Some(error) = next {
        let said = error.to_string();
        if texts.last().is_none_or(|last| !last.contains(&said)) {
            texts.push(said);
        }
        next = error.source();
    }
    if texts.is_empty() {
        return "no connection".to_owned();
    }
    texts.join(": ")
}
