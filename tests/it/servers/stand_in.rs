//! A server over HTTP whose answers a test writes as it likes, and which keeps what it was asked. What it
//! says by itself goes to everybody who listens.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use crate::support::DEADLINE;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::broadcast;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// What it answers to a request: a result, or the code and the words of an error.
pub(crate) type Answer = Result<Value, (i32, &'static str)>;

/// The code of an error in whose place the answer never ends.
pub(super) const SILENT: i32 = 0;

/// The server on loopback, for as long as this lives.
pub(crate) struct StandIn {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Value>>>,
    news: broadcast::Sender<String>,
    _server: AbortOnDropHandle<()>,
}

impl StandIn {
    /// One that declares these capabilities, and answers all requests but the handshake so.
    pub(crate) async fn start(
        capabilities: Value,
        answer: impl Fn(&str, &Value) -> Answer + Clone + Send + Sync + 'static,
    ) -> Self {
        Self::run(capabilities, answer, None).await
    }

    async fn run(
        capabilities: Value,
        answer: impl Fn(&str, &Value) -> Answer + Clone + Send + Sync + 'static,
        call: Option<fn(&Value) -> Response>,
    ) -> Self {
        let asked = Arc::<Mutex<Vec<Value>>>::default();
        let (news, _) = broadcast::channel::<String>(2_000);
        let (own, heard) = (Arc::clone(&asked), news.clone());
        let hear = move |body: Bytes| {
            let request: Value = serde_json::from_slice(&body).unwrap();
            let call = call.filter(|_| request["method"] == "tools/call");
            let response = match call {
                Some(call) => call(&request["id"]),
                None => reply(&capabilities, &answer, &request),
            };
            own.lock().unwrap().push(request);
            async move { response }
        };
        let listen = move || {
            let said = futures::stream::unfold(heard.subscribe(), |mut heard| async {
                let said = heard.recv().await.ok()?;
                let event = format!("data: {said}\n\n");
                Some((Ok::<_, Infallible>(event), heard))
            });
            let kind = [(header::CONTENT_TYPE, "text/event-stream")];
            let response = (kind, Body::from_stream(said)).into_response();
            async move { response }
        };
        let gone = || async { StatusCode::OK };
        let router = Router::new().route("/mcp", post(hear).get(listen).delete(gone));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let serving =
            TaskTracker::new().spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            url,
            asked,
            news,
            _server: AbortOnDropHandle::new(serving),
        }
    }

    /// One tool, `echo`, whose calls give that.
    pub(super) async fn with_result(tool: Value, result: Value) -> Self {
        Self::start(json!({ "tools": {} }), move |method, _| match method {
            "tools/list" => Ok(json!({ "tools": [tool] })),
            "tools/call" => Ok(result.clone()),
            _ => Err((-32_601, "no such method")),
        })
        .await
    }

    /// The same whose calls are answered with that, whatever it is; it is given the id of the request.
    pub(super) async fn with_call(tool: Value, call: fn(&Value) -> Response) -> Self {
        let answer = move |method: &str, _: &Value| match method {
            "tools/list" => Ok(json!({ "tools": [tool] })),
            _ => Err((-32_601, "no such method")),
        };
        Self::run(json!({ "tools": {} }), answer, Some(call)).await
    }

    /// The parameters of all requests of that method.
    pub(crate) fn asked(&self, method: &str) -> Vec<Value> {
        let asked = self.asked.lock().unwrap();
        let those = asked.iter().filter(|request| request["method"] == method);
        those.map(|request| request["params"].clone()).collect()
    }

    /// Says something to all who listen.
    pub(super) fn notify(&self, method: &str, params: &Value) {
        let said = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.news.send(said.to_string()).unwrap();
    }

    /// Waits until somebody listens.
    pub(super) async fn heard(&self) {
        let listens = async {
            while self.news.receiver_count() == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(DEADLINE, listens).await.unwrap();
    }
}

fn reply(
    capabilities: &Value,
    answer: &impl Fn(&str, &Value) -> Answer,
    request: &Value,
) -> Response {
    let id = &request["id"];
    let method = request["method"].as_str().unwrap_or_default();
    let body = match method {
        _ if id.is_null() => return StatusCode::ACCEPTED.into_response(),
        "initialize" => json!({ "jsonrpc": "2.0", "id": id, "result": {
            "protocolVersion": "2025-06-18", "capabilities": capabilities,
            "serverInfo": { "name": "stand-in", "version": "1" },
        } }),
        _ => match answer(method, &request["params"]) {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err((SILENT, _)) => {
                let kind = [(header::CONTENT_TYPE, "application/json")];
                let never = futures::stream::pending::<Result<Bytes, Infallible>>();
                return (kind, Body::from_stream(never)).into_response();
            }
            Err((code, message)) => json!({ "jsonrpc": "2.0", "id": id,
                "error": { "code": code, "message": message } }),
        },
    };
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::HeaderName::from_static("mcp-session-id"), "1"),
    ];
    (headers, body.to_string()).into_response()
}
