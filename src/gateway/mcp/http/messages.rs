//! Reads what clients post to `/mcp`, and answers older and simple clients in the form that they understand. The
//! library behind it speaks the newest revisions to the letter.

use std::sync::Arc;

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures::StreamExt as _;
use rmcp::model::{ClientJsonRpcMessage, ProtocolVersion};
use rmcp::transport::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use serde::Deserialize as _;
use serde_json::{Value, json};
use sse_stream::SseByteStream;

use super::SESSION;
use crate::domain::mend_surrogates;
use crate::gateway::mcp::approval::HearsOnlyAnswers;
use crate::gateway::mcp::logged::LoggedServer;

/// The most messages of one batch.
const MAX_BATCH: usize = 64;
/// The header of the revision that was agreed on.
const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The value of `Accept` that the library wants.
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: &str = "text/event-stream";

/// JSON-RPC: the body is no JSON.
const PARSE_ERROR: i32 = -32_700;
/// JSON-RPC: the JSON is no request.
const INVALID_REQUEST: i32 = -32_600;

pub(super) type McpService = StreamableHttpService<LoggedServer, LocalSessionManager>;

/// The connections of clients, by the kind of their revision.
#[derive(Clone, Default)]
pub(in crate::gateway::mcp) struct Managers {
    /// Revision 2025-11-25 and later.
    pub(super) current: Arc<LocalSessionManager>,
    /// Earlier revisions, whose clients do not understand events without data.
    pub(super) older: Arc<LocalSessionManager>,
}

impl Managers {
    pub(super) fn new() -> Self {
        let mut older = LocalSessionManager::default();
        older.session_config.sse_retry = None;
        Self {
            current: Arc::default(),
            older: Arc::new(older),
        }
    }

    /// Returns true if the connection is open.
    pub(in crate::gateway::mcp) async fn has_session(&self, id: &str) -> bool {
        let id = id.into();
        let is_current = self.current.has_session(&id).await;
        is_current.unwrap_or(true) || self.older.has_session(&id).await.unwrap_or(true)
    }
}

/// The services behind `/mcp`.
pub(super) struct McpDoor {
    pub(super) current: McpService,
    pub(super) older: McpService,
    pub(super) managers: Managers,
    /// The most bytes of a body.
    pub(super) body_limit: usize,
}

/// The forms of an answer that a client accepts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Accepted {
    json: bool,
    events: bool,
}

impl Accepted {
    /// Reads `Accept` (RFC 9110, 12.5.1). A client without the header accepts everything.
    fn of(headers: &HeaderMap) -> Self {
        let mut accepted = Self::default();
        let values = headers.get_all(ACCEPT).iter();
        let values: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
        if values.is_empty() {
            return Self {
                json: true,
                events: true,
            };
        }
        for range in values.iter().flat_map(|value| value.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let essence = parts.next().unwrap_or_default().to_ascii_lowercase();
            let is_refused = parts.any(|parameter| {
                let quality = parameter
                    .split_once('=')
                    .map(|(name, it)| (name.trim(), it));
                let is_zero = |it: &str| it.trim().parse().is_ok_and(|it: f32| it <= 0.0);
                quality.is_some_and(|(name, it)| name.eq_ignore_ascii_case("q") && is_zero(it))
            });
            if is_refused {
                continue;
            }
            accepted.json |= matches!(&*essence, "*/*" | "application/*" | "application/json");
            accepted.events |= matches!(&*essence, "*/*" | "text/*" | EVENTS);
        }
        accepted
    }
}

/// The body of a client's POST.
#[derive(Debug, PartialEq)]
enum Posted {
    One(Value),
    /// A batch, as revision 2025-03-26 has them.
    Batch(Vec<Value>),
    /// The error that answers it.
    Refused(Value),
}

impl Posted {
    fn read(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let text = text.trim_start_matches('\u{feff}');
        let read = serde_json::from_str(text).or_else(|error| {
            let mended = mend_surrogates(text).ok_or(error)?;
            serde_json::from_str(&mended)
        });
        match read {
            Ok(Value::Array(messages)) if messages.is_empty() => {
                Self::Refused(error(None, INVALID_REQUEST, "an empty batch"))
            }
            Ok(Value::Array(messages)) if messages.len() > MAX_BATCH => {
                let text = format!("a batch has at most {MAX_BATCH} messages");
                Self::Refused(error(None, INVALID_REQUEST, &text))
            }
            Ok(Value::Array(messages)) => Self::Batch(messages),
            Ok(message) => match problem_with(&message) {
                None => Self::One(message),
                Some(problem) => Self::Refused(problem),
            },
            Err(problem) => {
                let text = format!("the body is not valid JSON: {problem}");
                Self::Refused(error(None, PARSE_ERROR, &text))
            }
        }
    }
}

/// The error that answers a message that is no JSON-RPC; `None` if it is one.
fn problem_with(message: &Value) -> Option<Value> {
    let id = message.get("id").filter(|id| id.is_string() || id.is_i64());
    if message.get("method").is_some() && message.get("id").is_some() && id.is_none() {
        let text = "the id of a request is a text or a whole number";
        return Some(error(None, INVALID_REQUEST, text));
    }
    let read = ClientJsonRpcMessage::deserialize(message);
    let problem = read.err()?;
    let text = format!("the message is no JSON-RPC message: {problem}");
    Some(error(id, INVALID_REQUEST, &text))
}

fn error(id: Option<&Value>, code: i32, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

/// Returns the id of a request; `None` for notifications and answers.
fn id_of(message: &Value) -> Option<&Value> {
    message.get("method")?;
    message.get("id")
}

fn is_initialize(message: &Value) -> bool {
    message.get("method").and_then(Value::as_str) == Some("initialize")
}

/// Returns true if the revision is one whose clients do not understand events without data.
fn is_older(revision: &str) -> bool {
    revision < ProtocolVersion::V_2025_11_25.as_str()
}

/// Handles `/mcp`.
pub(super) async fn serve(State(door): State<Arc<McpDoor>>, request: Request) -> Response {
    let accepted = Accepted::of(request.headers());
    let (mut parts, body) = request.into_parts();
    if accepted.json || accepted.events {
        parts.headers.insert(ACCEPT, BOTH);
    }
    let is_json = is_json(&parts.headers);
    if parts.method != Method::POST || !is_json || !(accepted.json || accepted.events) {
        let service = door.service_of(&parts.headers).await;
        let ends = parts.method == Method::DELETE;
        let mut response = answered(service, Request::from_parts(parts, body)).await;
        if ends && response.status() == StatusCode::ACCEPTED {
            // The connection has ended; some clients complain of a 202.
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        return response;
    }
    let Ok(body) = to_bytes(body, door.body_limit).await else {
        let text = format!(
            "the body has more than {} bytes, or broke off",
            door.body_limit
        );
        return (StatusCode::PAYLOAD_TOO_LARGE, text).into_response();
    };
    parts.headers.remove(CONTENT_LENGTH);
    let posted = Posted::read(&body);
    if !accepted.events || matches!(posted, Posted::Batch(_)) {
        parts.extensions.insert(HearsOnlyAnswers);
    }
    match posted {
        Posted::One(message) => {
            let response = door.ask(&parts, &message).await;
            match id_of(&message) {
                // The client takes no events.
                Some(id) if !accepted.events => as_json(id, response).await,
                Some(_) | None => response,
            }
        }
        Posted::Batch(messages) => door.ask_all(&parts, &messages, accepted).await,
        Posted::Refused(error) => (StatusCode::BAD_REQUEST, Json(error)).into_response(),
    }
}

impl McpDoor {
    /// Returns the service that has the client's connection.
    async fn service_of(&self, headers: &HeaderMap) -> &McpService {
        let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let is_older = match text(&SESSION) {
            Some(id) => {
                let is_there = self.managers.older.has_session(&id.into()).await;
                is_there.unwrap_or(false)
            }
            None => text(&REVISION).is_some_and(is_older),
        };
        if is_older { &self.older } else { &self.current }
    }

    /// Sends a message to its service.
    async fn ask(&self, parts: &Parts, message: &Value) -> Response {
        let revision = message
            .pointer("/params/protocolVersion")
            .and_then(Value::as_str);
        let service = match revision.filter(|_| is_initialize(message)) {
            Some(revision) if is_older(revision) => &self.older,
            Some(_) => &self.current,
            None => self.service_of(&parts.headers).await,
        };
        let body = Body::from(message.to_string());
        answered(service, Request::from_parts(parts.clone(), body)).await
    }

    /// Answers a batch, one message after the other. What is no message is answered in its place.
    async fn ask_all(&self, parts: &Parts, messages: &[Value], accepted: Accepted) -> Response {
        let mut answers = Vec::with_capacity(messages.len());
        for message in messages {
            if let Some(problem) = problem_with(message) {
                answers.push(problem);
                continue;
            }
            let id = id_of(message);
            if is_initialize(message) {
                let text = "`initialize` stands alone, not in a batch";
                answers.push(error(id, INVALID_REQUEST, text));
                continue;
            }
            let response = self.ask(parts, message).await;
            let Some(id) = id else { continue };
            match answer_of(id, response).await {
                Ok(answer) => answers.push(answer),
                // The whole batch fails: for example, there is no such connection.
                Err(response) => return response,
            }
        }
        if answers.is_empty() {
            return StatusCode::ACCEPTED.into_response();
        }
        if accepted.json {
            return Json(answers).into_response();
        }
        let text = format!("event: message\ndata: {}\n\n", Value::Array(answers));
        ([(CONTENT_TYPE, EVENTS)], text).into_response()
    }
}

async fn answered(service: &McpService, request: Request) -> Response {
    service.handle(request).await.map(Body::new)
}

fn is_json(headers: &HeaderMap) -> bool {
    media_type(headers).eq_ignore_ascii_case("application/json")
}

fn media_type(headers: &HeaderMap) -> &str {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    value
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
}

/// Turns an answer among events into plain JSON.
async fn as_json(id: &Value, response: Response) -> Response {
    let headers = response.headers().clone();
    if !media_type(&headers).eq_ignore_ascii_case(EVENTS) {
        return response;
    }
    match answer_of(id, response).await {
        Ok(answer) => {
            let mut response = Json(answer).into_response();
            let session = headers.get(&SESSION);
            if let Some(session) = session {
                response.headers_mut().insert(SESSION, session.clone());
            }
            response.headers_mut().insert(CONTENT_TYPE, JSON);
            response
        }
        Err(response) => response,
    }
}

/// Returns the answer to a request, from JSON or from events; the response itself if it has none.
async fn answer_of(id: &Value, response: Response) -> Result<Value, Response> {
    let (parts, body) = response.into_parts();
    if is_json(&parts.headers) {
        let read = to_bytes(body, usize::MAX).await.unwrap_or_default();
        let answer = serde_json::from_slice(&read);
        return answer.map_err(|_| Response::from_parts(parts, Body::from(read)));
    }
    if !media_type(&parts.headers).eq_ignore_ascii_case(EVENTS) {
        return Err(Response::from_parts(parts, body));
    }
    let mut events = SseByteStream::new(body.into_data_stream());
    while let Some(Ok(event)) = events.next().await {
        let message = event
            .data
            .and_then(|data| serde_json::from_str::<Value>(&data).ok());
        let answer = message
            .filter(|message| message.get("id") == Some(id) && message.get("method").is_none());
        if let Some(answer) = answer {
            return Ok(answer);
        }
    }
    let text = "the agent's answer broke off";
    Err((StatusCode::BAD_GATEWAY, text).into_response())
}

#[cfg(test)]
mod tests {
    use axum::http::header::ACCEPT;
    use axum::http::{HeaderMap, HeaderValue};
    use serde_json::{Value, json};

    use super::{Accepted, Posted, is_older};

    #[test]
    fn a_client_accepts_what_rfc_9110_says_that_it_does() {
        for (values, json, events) in [
            (&[][..], true, true),
            (&["*/*"], true, true),
            (&["application/json, text/event-stream"], true, true),
            (&["application/json", "text/event-stream"], true, true),
            (&["Application/JSON, Text/Event-Stream"], true, true),
            (&["application/*, text/*"], true, true),
            (&["application/json, text/event-stream;q=0.5"], true, true),
            (&["text/html, */*;q=0.1"], true, true),
            (&["application/json"], true, false),
            (&["application/*"], true, false),
            (&["application/json; charset=utf-8"], true, false),
            (&["application/json, text/event-stream;q=0"], true, false),
            (&["text/event-stream"], false, true),
            (&["text/*"], false, true),
            (&["text/html"], false, false),
            (&["*/*;q=0.0"], false, false),
            (&[""], false, false),
        ] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(ACCEPT, HeaderValue::from_static(value));
            }
            assert_eq!(
                Accepted::of(&headers),
                Accepted { json, events },
                "{values:?}"
            );
        }
    }

    #[test]
    fn what_is_no_message_is_answered_as_json_rpc_says() {
        for (body, code, id) in [
            ("nonsense", -32_700, json!(null)),
            ("", -32_700, json!(null)),
            ("{", -32_700, json!(null)),
            ("[]", -32_600, json!(null)),
            ("3", -32_600, json!(null)),
            ("null", -32_600, json!(null)),
            ("{}", -32_600, json!(null)),
            (
                r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
                -32_600,
                json!(null),
            ),
            (
                r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#,
                -32_600,
                json!(null),
            ),
            (
                r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
                -32_600,
                json!(null),
            ),
            (r#"{"jsonrpc":"2.0","id":"a"}"#, -32_600, json!("a")),
            (r#"{"jsonrpc":"2.0","id":7,"method":3}"#, -32_600, json!(7)),
        ] {
            let Posted::Refused(error) = Posted::read(body.as_bytes()) else {
                panic!("{body} was read");
            };
            assert_eq!(
                (&error["error"]["code"], &error["id"]),
                (&json!(code), &id),
                "{body}"
            );
            assert_eq!(error["jsonrpc"], "2.0");
        }
        let many = Value::Array(vec![json!({}); 65]).to_string();
        assert!(matches!(Posted::read(many.as_bytes()), Posted::Refused(_)));
    }

    #[test]
    fn messages_and_batches_are_read_as_they_are() {
        let ping = json!({ "jsonrpc": "2.0", "id": "00123", "method": "ping" });
        let one = Posted::read(ping.to_string().as_bytes());
        assert_eq!(one, Posted::One(ping.clone()));
        let marked = format!("\u{feff}{ping}");
        assert_eq!(Posted::read(marked.as_bytes()), Posted::One(ping.clone()));
        let batch = json!([ping, { "odd": true }]);
        let read = Posted::read(batch.to_string().as_bytes());
        assert_eq!(read, Posted::Batch(vec![ping, json!({ "odd": true })]));
        let half = r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"a":"\ud83d"}}}"#;
        assert!(matches!(Posted::read(half.as_bytes()), Posted::One(_)));
    }

    #[test]
    fn only_clients_of_2025_11_25_and_later_are_sent_events_without_data() {
        for (revision, expected) in [
            ("2024-11-05", true),
            ("2025-03-26", true),
            ("2025-06-18", true),
            ("2025-11-25", false),
            ("2026-07-28", false),
        ] {
            assert_eq!(is_older(revision), expected, "{revision}");
        }
    }
}
