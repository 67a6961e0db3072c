//! Serves the HTTP with SSE of old clients (S0.49, D10): `GET /sse` opens a stream whose first event names
//! the address for posts, `POST /message?sessionId=` accepts requests, and their answers arrive on the
//! stream.
//!
//! With `result=text` in the address, tool results have the form of S0.51, a bare text (D11). A post without
//! `sessionId` is answered immediately, for clients that make a single call.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use axum::extract::{Query, State};
use axum::http::{StatusCode, request};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use futures::channel::mpsc;
use futures::{SinkExt as _, Stream, StreamExt as _};
use rmcp::ServiceExt as _;
use rmcp::model::{CallToolResult, ClientJsonRpcMessage, GetExtensions as _, ServerJsonRpcMessage};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::context::{ClientId, McpContext};
use crate::domain::{Caller, Code};
use crate::gateway::error::ApiError;
use crate::gateway::mcp::approval::DoorReply;
use crate::gateway::mcp::logged::{self, LoggedServer};
use crate::gateway::mcp::question::{Door, News};
use crate::session::Call;

/// The maximum number of messages that wait for one client.
const WAITING: usize = 64;
/// The interval of keep-alive comments on a silent stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// An open stream.
struct LegacyStream {
    owner: ClientId,
    requests: mpsc::Sender<ClientJsonRpcMessage>,
}

/// The open streams by id. The lock is never held across an await.
type Connections = Arc<Mutex<HashMap<String, LegacyStream>>>;

#[derive(Clone)]
struct Legacy {
    context: McpContext,
    connections: Connections,
}

impl Legacy {
    fn find(&self, id: &str, caller: &Caller) -> Option<mpsc::Sender<ClientJsonRpcMessage>> {
        let connections = self
            .connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let connection = connections.get(id);
        let own = connection.filter(|connection| connection.owner == ClientId::of(caller));
        own.map(|connection| connection.requests.clone())
    }
}

/// The form of tool results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Shape {
    /// The form of MCP.
    #[default]
    Spec,
    /// The form of S0.51.
    Text,
}

#[derive(Deserialize)]
struct StreamQuery {
    #[serde(default)]
    result: Shape,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageQuery {
    session_id: Option<String>,
    #[serde(default)]
    result: Shape,
}

/// Removes the connection and stops its server when its stream is dropped.
struct Ending {
    id: String,
    connections: Connections,
    _stops: DropGuard,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let mut connections = self
            .connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        connections.remove(&self.id);
    }
}

pub(in crate::gateway::mcp) fn routes(context: &McpContext) -> Router {
    let legacy = Legacy {
        context: context.clone(),
        connections: Connections::default(),
    };
    Router::new()
        .route("/sse", get(open))
        .route("/message", post(take))
        .with_state(legacy)
}

/// Handles `GET /sse`.
async fn open(
    State(legacy): State<Legacy>,
    Extension(caller): Extension<Caller>,
    Query(query): Query<StreamQuery>,
) -> Response {
    let id = format!("{:032x}", rand::random::<u128>());
    let (requests, incoming) = mpsc::channel(WAITING);
    let (outgoing, answers) = mpsc::channel::<ServerJsonRpcMessage>(WAITING);
    let stop = legacy.context.life.stop.child_token();
    let connection = LegacyStream {
        owner: ClientId::of(&caller),
        requests,
    };
    legacy
        .connections
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(id.clone(), connection);
    let serving = serve(legacy.context.clone(), (outgoing, incoming), stop.clone());
    legacy.context.life.tasks.spawn(serving);
    let base = legacy.context.gateway.access.base_path();
    let shape = match query.result {
        Shape::Spec => "",
        Shape::Text => "&result=text",
    };
    let endpoint = format!("{base}message?sessionId={id}{shape}");
    let ending = Ending {
        id,
        connections: Arc::clone(&legacy.connections),
        _stops: stop.clone().drop_guard(),
    };
    let stream = stream(endpoint, answers, query.result, ending, stop);
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    Sse::new(stream).keep_alive(keep_alive).into_response()
}

async fn serve(
    context: McpContext,
    transport: (
        mpsc::Sender<ServerJsonRpcMessage>,
        mpsc::Receiver<ClientJsonRpcMessage>,
    ),
    stop: CancellationToken,
) {
    let server = LoggedServer::at("/sse", context.server());
    match server.serve_with_ct(transport, stop).await {
        Ok(running) => {
            if let Err(error) = running.waiting().await {
                tracing::error!(%error, "A client's server broke off");
            }
        }
        Err(error) => tracing::info!(%error, "A client did not introduce itself"),
    }
}

fn stream(
    endpoint: String,
    answers: mpsc::Receiver<ServerJsonRpcMessage>,
    shape: Shape,
    ending: Ending,
    stop: CancellationToken,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let first = Event::default().event("endpoint").data(endpoint);
    let messages = answers.filter_map(move |answer| {
        // The closure owns `ending`, so the connection ends with the stream.
        let _ = &ending;
        let text = serde_json::to_value(&answer).map(|answer| shaped(answer, shape).to_string());
        let event = text.map(|text| Event::default().event("message").data(text));
        std::future::ready(event.ok().map(Ok))
    });
    futures::stream::iter([Ok(first)])
        .chain(messages)
        .take_until(async move { stop.cancelled().await })
}

/// Handles `POST /message`.
async fn take(
    State(legacy): State<Legacy>,
    Extension(caller): Extension<Caller>,
    Query(query): Query<MessageQuery>,
    parts: request::Parts,
    Json(message): Json<Value>,
) -> Response {
    let Some(id) = &query.session_id else {
        return answer_now(&legacy.context, caller, message, query.result).await;
    };
    let Some(mut requests) = legacy.find(id, &caller) else {
        let text = "there is no such connection; open one with `GET /sse`";
        return ApiError::new(Code::SessionNotFound, text).into_response();
    };
    let mut message: ClientJsonRpcMessage = match serde_json::from_value(message) {
        Ok(message) => message,
        Err(error) => {
            let text = format!("the body is no JSON-RPC message: {error}");
            return ApiError::new(Code::InvalidArguments, text).into_response();
        }
    };
    if let ClientJsonRpcMessage::Request(request) = &mut message {
        request.request.extensions_mut().insert(parts);
    }
    if requests.send(message).await.is_err() {
        let text = "the connection has ended; open one with `GET /sse`";
        return ApiError::new(Code::SessionNotFound, text).into_response();
    }
    (StatusCode::ACCEPTED, "Accepted").into_response()
}

/// The door of a single call without a stream: nobody can be asked, and no progress is sent.
struct NobodyThere;

#[async_trait]
impl Door for NobodyThere {
    async fn decide(&self, _: &Call) -> DoorReply {
        DoorReply::Nobody
    }

    async fn report(&self, _: News<'_>) {}
}

#[derive(Deserialize)]
struct SingleCall {
    #[serde(default)]
    id: Value,
    method: String,
    params: SingleParams,
}

#[derive(Deserialize)]
struct SingleParams {
    name: String,
    arguments: Option<serde_json::Map<String, Value>>,
}

/// Answers a single call (S0.50). The request in the documentation has neither `jsonrpc` nor `id`.
async fn answer_now(
    context: &McpContext,
    caller: Caller,
    message: Value,
    shape: Shape,
) -> Response {
    let refuse = |text: String| ApiError::new(Code::InvalidArguments, text).into_response();
    let is_logged = context.exposure.logs_messages;
    if is_logged {
        logged::log("/message", "request", "tools/call", &message);
    }
    let call: SingleCall = match serde_json::from_value(message) {
        Ok(call) => call,
        Err(error) => return refuse(format!("the body is no call of a tool: {error}")),
    };
    if call.method != "tools/call" {
        let text = format!(
            "`{}` needs a connection; open one with `GET /sse`",
            call.method
        );
        return refuse(text);
    }
    let server = context.server();
    let text = match server.read(&call.params.name, call.params.arguments.as_ref()) {
        Ok(text) => text,
        Err(text) => return refuse(text),
    };
    let result: CallToolResult = server.asking.answer(caller, text, NobodyThere).await;
    let answer = json!({ "jsonrpc": "2.0", "id": call.id, "result": result });
    if is_logged {
        logged::log("/message", "answer", "tools/call", &answer);
    }
    Json(shaped(answer, shape)).into_response()
}

/// Converts the result of a tool to a bare text with `isError` beside it (S0.51).
fn shaped(mut answer: Value, shape: Shape) -> Value {
    let content = answer.pointer("/result/content").and_then(Value::as_array);
    let Some(content) = content.filter(|_| shape == Shape::Text) else {
        return answer;
    };
    let texts = content
        .iter()
        .filter_map(|block| block.get("text")?.as_str());
    let text = texts.collect::<Vec<_>>().join("\n");
    let is_error = answer.pointer("/result/isError").and_then(Value::as_bool);
    if let Some(answer) = answer.as_object_mut() {
        answer.insert("result".to_owned(), json!(text));
        answer.insert("isError".to_owned(), json!(is_error.unwrap_or(false)));
    }
    answer
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Shape, shaped};

    #[test]
    fn the_old_shape_is_a_bare_text_only_for_results_of_tools() {
        let content = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
        let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": content}});
        assert_eq!(shaped(answer.clone(), Shape::Spec), answer);
        let expected = json!({"jsonrpc": "2.0", "id": 1, "result": "a\nb", "isError": false});
        assert_eq!(shaped(answer, Shape::Text), expected);
        let other = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": []}});
        assert_eq!(shaped(other.clone(), Shape::Text), other);
    }
}
