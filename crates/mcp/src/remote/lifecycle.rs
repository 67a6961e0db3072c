//! Finds out which lifecycle a server over HTTP speaks: `initialize` until 2025-11-25, `server/discover` from
//! 2026-07-28 on.
//!
//! The server is asked, as the revision of 2026-07-28 requires of clients that know both. A server that knows
//! both is used with `initialize`, because then it announces changes of its tools by itself. A server without
//! a usable answer counts as an older one too.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{
    ClientCapabilities, ClientJsonRpcMessage, ClientRequest, DiscoverRequest,
    DiscoverRequestParams, ErrorCode, GetExtensions as _, Implementation, JsonRpcMessage,
    ProtocolVersion, RequestId, RequestMetaObject, ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient as _, StreamableHttpPostResponse,
};
use url::Url;

use super::authorizer::Sending;
use super::exchange::{Exchange, Headers};
use super::failure::{Error, Failure};
use super::{Remote, headers, not_opened};
use crate::error;
use crate::wire::pending::Pending;
use sepal_net as net;

/// The time limit for the answer: many older servers do not answer an unknown request.
const LIMIT: Duration = Duration::from_secs(10);

/// The most redirects that are followed.
pub(super) const MAX_REDIRECTS: usize = 5;

/// The way a connection begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifecycle {
    /// With a handshake.
    Initialize,
    /// With `server/discover`; then each request carries the information of a handshake.
    Discover,
}

/// Asks the server at `remote` which lifecycle it speaks, and at which address: a redirect is followed within
/// its origin, because the headers hold the keys of this server. Fails if the server cannot be reached or
/// wants a person first; any other refusal counts as that of a server that does not know the request.
pub(crate) async fn lifecycle(
    server: &str,
    client: &reqwest::Client,
    remote: &Remote,
) -> Result<(Lifecycle, String), error::Error> {
    let exchange = Exchange {
        client: client.clone(),
        sending: Sending(remote.authorizer.clone()),
        pending: Pending::default(),
    };
    let mut headers = headers(server, remote)?;
    for (name, value) in [
        ("mcp-method", "server/discover"),
        (
            "mcp-protocol-version",
            ProtocolVersion::V_2026_07_28.as_str(),
        ),
    ] {
        let value = HeaderValue::from_str(value);
        headers.extend(value.map(|value| (HeaderName::from_static(name), value)));
    }
    let mut url = remote.url.clone();
    for _ in 0..=MAX_REDIRECTS {
        let asked = ask(&exchange, &url, headers.clone());
        match tokio::time::timeout(LIMIT, asked).await {
            Ok(Ok(Some(said))) => return Ok((read(&said), url)),
            Ok(Err(Error::Client(Failure::Moved(to)))) if has_origin(&url, &to) => url = to,
            Ok(Err(error)) if is_final(&error) => return Err(not_opened(server, &error)),
            Ok(Ok(None) | Err(_)) | Err(_) => return Ok((Lifecycle::Initialize, url)),
        }
    }
    Err(error::Error::Handshake {
        server: server.to_owned(),
        reason: format!("it was redirected more than {MAX_REDIRECTS} times"),
    })
}

async fn ask(
    exchange: &Exchange,
    url: &str,
    headers: Headers,
) -> Result<Option<ServerJsonRpcMessage>, Error> {
    let answer = exchange
        .post_message(Arc::from(url), question(), None, None, headers)
        .await?;
    Ok(
        if let StreamableHttpPostResponse::Json(message, _) = answer {
            Some(message)
        } else if let StreamableHttpPostResponse::Sse(events, _) = answer {
            first_answer(events).await
        } else {
            None
        },
    )
}

/// Returns true if both addresses have the same scheme, host and port.
pub(super) fn has_origin(one: &str, other: &str) -> bool {
    let origin = |url: &str| Url::parse(url).ok().map(|url| url.origin());
    origin(one).is_some() && origin(one) == origin(other)
}

fn question() -> ClientJsonRpcMessage {
    let us = Implementation::new("sepal", env!("CARGO_PKG_VERSION"));
    let meta = RequestMetaObject::with_client_context(
        ProtocolVersion::V_2026_07_28,
        us,
        ClientCapabilities::default(),
    );
    let mut request = DiscoverRequest::new(DiscoverRequestParams {});
    request.extensions_mut().insert(meta);
    ClientJsonRpcMessage::request(
        ClientRequest::DiscoverRequest(request),
        RequestId::Number(0),
    )
}

/// Returns the first answer among the server's events.
async fn first_answer(mut events: BoxedSseResponse) -> Option<ServerJsonRpcMessage> {
    while let Some(Ok(event)) = events.next().await {
        let said = event.data.and_then(|data| serde_json::from_str(&data).ok());
        if let Some(said @ (JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_))) = said {
            return Some(said);
        }
    }
    None
}

/// Returns true if a handshake would fail with the same error.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "every other error comes from the server's answer, whatever rmcp adds"
)]
fn is_final(error: &Error) -> bool {
    match error {
        Error::Client(Failure::Client(error)) => {
            net::blocked(error).is_some() || error.is_connect()
        }
        Error::Client(Failure::NeedsPerson(_) | Failure::Token(_) | Failure::Moved(_)) => true,
        _ => false,
    }
}

/// Returns the lifecycle that the answer implies.
fn read(said: &ServerJsonRpcMessage) -> Lifecycle {
    match said {
        JsonRpcMessage::Response(response) => {
            let ServerResult::DiscoverResult(found) = &response.result else {
                return Lifecycle::Initialize;
            };
            of_versions(&found.supported_versions)
        }
        JsonRpcMessage::Error(error) => match error.error.code {
            ErrorCode::UNSUPPORTED_PROTOCOL_VERSION => {
                let data = error.error.data.as_ref();
                let supported = data.and_then(|data| data.get("supported")).cloned();
                let supported = supported.and_then(|it| serde_json::from_value(it).ok());
                of_versions(&supported.unwrap_or_else(|| vec![ProtocolVersion::V_2026_07_28]))
            }
            ErrorCode::HEADER_MISMATCH | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY => {
                Lifecycle::Discover
            }
            _ => Lifecycle::Initialize,
        },
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => Lifecycle::Initialize,
    }
}

fn of_versions(supported: &[ProtocolVersion]) -> Lifecycle {
    let has_handshake = supported.iter().any(ProtocolVersion::has_initialize);
    if has_handshake || supported.is_empty() {
        return Lifecycle::Initialize;
    }
    Lifecycle::Discover
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Lifecycle, has_origin, question, read};
    use crate::wire::message;
    use crate::wire::pending::Pending;

    #[test]
    fn the_question_says_who_asks_in_which_revision() {
        let said = serde_json::to_value(question()).unwrap();
        assert_eq!(said["method"], "server/discover");
        let meta = &said["params"]["_meta"];
        assert_eq!(
            meta["io.modelcontextprotocol/protocolVersion"],
            "2026-07-28"
        );
        assert_eq!(
            meta["io.modelcontextprotocol/clientCapabilities"],
            json!({})
        );
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "sepal");
    }

    #[test]
    fn a_redirect_stays_within_its_origin() {
        for (to, expected) in [
            ("https://e.test/mcp/", true),
            ("https://e.test:443/other", true),
            ("http://e.test/mcp", false),
            ("https://e.test:8443/mcp", false),
            ("https://evil.test/mcp", false),
            ("/mcp/", false),
        ] {
            assert_eq!(has_origin("https://e.test/mcp", to), expected, "{to}");
        }
    }

    #[test]
    fn the_lifecycle_is_what_the_server_says_and_the_handshake_where_both_are_known() {
        let check = |said: Value, expected: Lifecycle| {
            let mut said = said;
            said["jsonrpc"] = "2.0".into();
            said["id"] = 0.into();
            let message = message::read(said.to_string().as_bytes(), &Pending::default(), None);
            let message = message.unwrap();
            assert_eq!(read(&message), expected, "{said}");
        };
        let found = |versions: Value| {
            json!({"result": {
                "resultType": "complete", "supportedVersions": versions, "capabilities": {},
                "ttlMs": 0, "cacheScope": "private",
            }})
        };
        let error = |code: i32, data: Value| json!({"error": {"code": code, "message": "no", "data": data}});
        check(found(json!(["2026-07-28"])), Lifecycle::Discover);
        check(
            found(json!(["2026-07-28", "2025-11-25"])),
            Lifecycle::Initialize,
        );
        check(found(json!([])), Lifecycle::Initialize);
        // Later revisions have no handshake either.
        check(
            error(-32_022, json!({"supported": ["2027-01-01"]})),
            Lifecycle::Discover,
        );
        check(
            error(-32_022, json!({"supported": ["2025-06-18"]})),
            Lifecycle::Initialize,
        );
        check(error(-32_022, Value::Null), Lifecycle::Discover);
        check(error(-32_020, Value::Null), Lifecycle::Discover);
        check(error(-32_601, Value::Null), Lifecycle::Initialize);
        check(error(-32_000, Value::Null), Lifecycle::Initialize);
        check(json!({"result": {}}), Lifecycle::Initialize);
    }
}
