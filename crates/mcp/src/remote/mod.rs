//! Connects to servers over HTTP: streamable HTTP, and the older HTTP with SSE.

mod authorizer;
mod events;
mod exchange;
mod failure;
mod legacy;
mod lifecycle;
mod refusal;

pub use self::authorizer::{Authorizer, Refused, RefusedRequest};
pub(super) use self::failure::{Error as HttpError, Failure};
pub(super) use self::lifecycle::{Lifecycle, lifecycle};

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{ErrorCode, ProtocolVersion};
use rmcp::service::ClientInitializeError;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::common::http_header::{HEADER_LAST_EVENT_ID, HEADER_SESSION_ID};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use self::authorizer::Sending;
use self::exchange::Exchange;
use self::legacy::Legacy;
use super::authorization::AuthorizationError;
use super::error::Error;
use super::wire::pending::Pending;
use sepal_core::domain::Fault;
use sepal_net as net;
use sepal_net::below;

/// The number of times that a broken answer stream is resumed, after pauses of 1, 2 and 4 s or as the server
/// says. After that the call is lost, sooner than at its time limit.
const RESUMES: usize = 3;

/// The most characters that are quoted of a server's answer.
const MAX_QUOTED: usize = 200;

/// Headers that the exchange itself writes.
const OWN_HEADERS: [&str; 3] = ["accept", HEADER_LAST_EVENT_ID, HEADER_SESSION_ID];

/// The address of a remote server, and what every request to it carries.
#[derive(Clone)]
pub struct Remote {
    pub url: String,
    /// The headers; their values are secrets.
    pub headers: BTreeMap<String, String>,
    /// The source of tokens; `None` if the headers hold all credentials.
    pub authorizer: Option<Arc<dyn Authorizer>>,
}

/// Creates a transport for the streamable HTTP of 2025-03-26 and later.
pub(super) fn transport(
    server: &str,
    client: reqwest::Client,
    remote: &Remote,
) -> Result<StreamableHttpClientTransport<Exchange>, Error> {
    // The owner of the connection renews a session that the server has ended. A renewal here would give the
    // calls of the old session answers that look like the server's own.
    let mut config = StreamableHttpClientTransportConfig::with_uri(remote.url.as_str())
        .custom_headers(headers(server, remote)?)
        .reinit_on_expired_session(false);
    let mut resuming = ExponentialBackoff::default();
    resuming.max_times = Some(RESUMES);
    config.retry_config = Arc::new(resuming);
    let client = Exchange {
        client,
        sending: Sending(remote.authorizer.clone()),
        pending: Pending::default(),
    };
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// Opens a transport for the HTTP with SSE of 2024-11-05: an open stream, and the address for posts.
pub(super) async fn legacy_transport(
    server: &str,
    client: reqwest::Client,
    remote: &Remote,
) -> Result<Legacy, Error> {
    let headers = headers(server, remote)?;
    let sending = Sending(remote.authorizer.clone());
    let opened = Legacy::open(client, sending, &remote.url, headers).await;
    opened.map_err(|error| not_opened(server, &error))
}

/// Builds the headers of each request. Headers that the protocol writes are refused.
fn headers(server: &str, remote: &Remote) -> Result<HashMap<HeaderName, HeaderValue>, Error> {
    let wrong = |reason: String| Error::Handshake {
        server: server.to_owned(),
        reason,
    };
    let mut headers = HashMap::new();
    for (name, value) in &remote.headers {
        if OWN_HEADERS.iter().any(|own| own.eq_ignore_ascii_case(name)) {
            return Err(wrong(format!(
                "the header `{name}` is written by the protocol; remove it"
            )));
        }
        let parsed = HeaderName::from_bytes(name.as_bytes())
            .ok()
            .zip(HeaderValue::from_str(value).ok());
        let Some((name, mut value)) = parsed else {
            return Err(wrong(format!(
                "the header `{name}` has an impossible name or value"
            )));
        };
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Converts the error of a failed handshake. An unreachable server may be tried again. Addresses are left
/// out: a query may hold a key.
pub(super) fn handshake_error(server: &str, error: &ClientInitializeError) -> Error {
    if is_unknown(error) {
        let server = server.to_owned();
        return Error::NoHandshake { server };
    }
    match http_error(error) {
        None => Error::Handshake {
            server: server.to_owned(),
            reason: handshake_words(error),
        },
        Some(error) => not_opened(server, error),
    }
}

/// Says for people why a handshake failed.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the error type of rmcp may grow; what is not known is quoted"
)]
fn handshake_words(error: &ClientInitializeError) -> String {
    const NO_ANSWER: &str = "it ended before it answered";
    match error {
        ClientInitializeError::ConnectionClosed(_)
        | ClientInitializeError::ExpectedInitResponse(None)
        | ClientInitializeError::ExpectedInitResult(None) => NO_ANSWER.to_owned(),
        ClientInitializeError::ExpectedInitResponse(Some(_))
        | ClientInitializeError::ConflictInitResponseId(..)
        | ClientInitializeError::UncorrelatedErrorResponse { .. } => {
            "it answered with something else than the answer to `initialize`".to_owned()
        }
        ClientInitializeError::ExpectedInitResult(Some(said)) => {
            let said = serde_json::to_string(said).unwrap_or_default();
            let said: String = said.chars().take(MAX_QUOTED).collect();
            format!("its answer to `initialize` describes no MCP server: {said}")
        }
        ClientInitializeError::JsonRpcError(said) => {
            format!("it refused `initialize`: {}", said.message)
        }
        ClientInitializeError::NoCompatibleProtocolVersion {
            server_supported, ..
        } => {
            let said: Vec<&str> = server_supported
                .iter()
                .map(ProtocolVersion::as_str)
                .collect();
            let said = said.join(", ");
            format!("it speaks only revisions of MCP that Sepal does not speak: {said}")
        }
        ClientInitializeError::TransportError { error, .. } => {
            format!("`initialize` could not be sent: {error}")
        }
        other => other.to_string(),
    }
}

/// Returns true if the server says that it does not know the way in which the connection began.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "every other error is one of a server that knows it, whatever rmcp adds"
)]
fn is_unknown(error: &ClientInitializeError) -> bool {
    match error {
        ClientInitializeError::JsonRpcError(said) => [
            ErrorCode::METHOD_NOT_FOUND,
            ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
        ]
        .contains(&said.code),
        _ => false,
    }
}

fn not_opened(server: &str, error: &HttpError) -> Error {
    let server = server.to_owned();
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "every other error comes from the server's answer, whatever rmcp adds"
    )]
    let reason = match error {
        HttpError::Client(Failure::NeedsPerson(scopes)) => {
            let scopes = scopes.clone();
            return Error::Unauthorized { server, scopes };
        }
        HttpError::Client(Failure::Token(error)) => return without_token(server, error),
        HttpError::Client(Failure::Refused(refusal)) => refusal.to_string(),
        HttpError::Client(failure @ Failure::Moved(_)) => failure.to_string(),
        HttpError::UnexpectedContentType(Some(kind)) => {
            format!("it answered with `{kind}`, which holds no message of MCP; check the address")
        }
        HttpError::UnexpectedContentType(None) => {
            "it answered without a message of MCP; check the address".to_owned()
        }
        HttpError::UnexpectedServerResponse(text) => text.to_string(),
        HttpError::Client(Failure::Client(error)) => match net::blocked(error) {
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
        error => error.to_string(),
    };
    Error::Handshake { server, reason }
}

/// Converts the failure to obtain a token; the request was not sent.
pub(super) fn without_token(server: String, error: &AuthorizationError) -> Error {
    let reason = error.to_string();
    match error.fault() {
        Fault::Transient => Error::Unreachable { server, reason },
        Fault::Validation | Fault::External | Fault::Internal => Error::NotTaken { server, reason },
    }
}

/// Returns the HTTP client's own error, which rmcp does not expose as the source.
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
