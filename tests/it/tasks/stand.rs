//! A server over streamable HTTP that runs calls as tasks, in the form of 2025-11-25 or in that of
//! 2026-07-28. It keeps what it was sent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CONNECTION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::support::DEADLINE;

/// The member of `_meta` that says whose a message is.
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// How it speaks of tasks.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Handshake,
    Extension,
}

struct Does {
    form: Form,
    /// What it was sent: methods and parameters.
    seen: watch::Sender<Vec<(String, Value)>>,
    /// What is said of the task, beside its id.
    task: watch::Sender<Value>,
    /// What the task gave.
    result: Mutex<Value>,
    /// What it is asked for in the place of `tasks/get`; null = the task.
    instead: Mutex<Value>,
    /// The id of the task.
    id: Mutex<String>,
    /// Whether what stands before it answers in its place.
    is_away: AtomicBool,
}

/// The server on loopback, for as long as this lives.
pub(super) struct Stand {
    pub(super) url: String,
    does: Arc<Does>,
    _server: AbortOnDropHandle<()>,
}

impl Stand {
    /// One that is asked for tasks.
    pub(super) async fn start() -> Self {
        Self::start_as(Form::Handshake).await
    }

    /// One of 2026-07-28, which makes tasks as it likes.
    pub(super) async fn start_extension() -> Self {
        Self::start_as(Form::Extension).await
    }

    async fn start_as(form: Form) -> Self {
        let does = Arc::new(Does {
            form,
            seen: watch::channel(Vec::new()).0,
            task: watch::channel(json!({ "status": "working" })).0,
            result: Mutex::new(text("built")),
            instead: Mutex::new(Value::Null),
            id: Mutex::new("task-1".to_owned()),
            is_away: AtomicBool::new(false),
        });
        let router = Router::new()
            .route("/mcp", post(answer))
            .with_state(Arc::clone(&does));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let serving =
            TaskTracker::new().spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            url,
            does,
            _server: AbortOnDropHandle::new(serving),
        }
    }

    /// The parameters of all requests of that method.
    pub(super) fn seen(&self, method: &str) -> Vec<Value> {
        let seen = self.does.seen.borrow();
        let of = seen.iter().filter(|(name, _)| name == method);
        of.map(|(_, params)| params.clone()).collect()
    }

    /// Waits until it was sent so many of that method.
    pub(super) async fn saw(&self, method: &str, times: usize) {
        let mut seen = self.does.seen.subscribe();
        let so_many = |seen: &Vec<(String, Value)>| {
            seen.iter().filter(|(name, _)| name == method).count() >= times
        };
        let seen = tokio::time::timeout(DEADLINE, seen.wait_for(so_many));
        assert!(seen.await.is_ok(), "{:?}", self.does.seen.borrow());
    }

    /// From now on this is said of the task.
    pub(super) fn says(&self, task: Value) {
        self.does.task.send_replace(task);
    }

    /// The task is done, and gave that.
    pub(super) fn gives(&self, result: Value) {
        *self.does.result.lock().unwrap() = result;
        self.says(json!({ "status": "completed" }));
    }

    /// From now on this is the answer to `tasks/get`, an error or a result.
    pub(super) fn says_instead(&self, answer: Value) {
        *self.does.instead.lock().unwrap() = answer;
    }

    /// From now on it cannot be reached, or can again.
    pub(super) fn is_away(&self, is_away: bool) {
        self.does.is_away.store(is_away, Ordering::Release);
    }

    /// Tasks have this id.
    pub(super) fn names_tasks(&self, id: &str) {
        id.clone_into(&mut self.does.id.lock().unwrap());
    }
}

pub(super) fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// Of a task that is not known.
pub(super) fn unknown() -> Value {
    json!({ "error": { "code": -32_602, "message": "Failed to retrieve task: Task not found" } })
}

async fn answer(State(does): State<Arc<Does>>, Json(message): Json<Value>) -> Response {
    let method = message["method"].as_str().unwrap_or("answer").to_owned();
    let params = match method.as_str() {
        "answer" => message["result"].clone(),
        _ => message["params"].clone(),
    };
    does.seen
        .send_modify(|seen| seen.push((method.clone(), params.clone())));
    if does.is_away.load(Ordering::Acquire) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    if message.get("id").is_none() || method == "answer" {
        return StatusCode::ACCEPTED.into_response();
    }
    let asks = *does.task.borrow() == json!({ "status": "input_required" });
    if method == "tasks/result" && asks {
        return asking(does, message["id"].clone());
    }
    let said = does.said(&method, &params).await;
    let close = [(CONNECTION, "close")];
    (close, Json(envelope(&message["id"], said))).into_response()
}

fn envelope(id: &Value, said: Value) -> Value {
    let mut envelope = json!({ "jsonrpc": "2.0", "id": id });
    let is_error = said.get("error").is_some() && said.get("taskId").is_none();
    let said = if is_error {
        said
    } else {
        json!({ "result": said })
    };
    let said = said.as_object().unwrap().clone();
    envelope.as_object_mut().unwrap().extend(said);
    envelope
}

/// Asks the person, and answers with the result of the task once somebody has answered.
fn asking(does: Arc<Does>, id: Value) -> Response {
    let task = does.id.lock().unwrap().clone();
    let schema = json!({ "type": "object", "properties": { "floor": { "type": "integer" } } });
    let question = json!({
        "jsonrpc": "2.0", "id": "q1", "method": "elicitation/create",
        "params": {
            "message": "Which floor?", "requestedSchema": schema,
            "_meta": { RELATED: { "taskId": task } },
        },
    });
    let first = futures::stream::iter([event(&question)]);
    let last = futures::stream::once(async move {
        let mut seen = does.seen.subscribe();
        let answered = |seen: &Vec<(String, Value)>| seen.iter().any(|(name, _)| name == "answer");
        seen.wait_for(answered).await.unwrap();
        does.task.send_replace(json!({ "status": "completed" }));
        event(&envelope(&id, does.result()))
    });
    let events = futures::StreamExt::map(futures::StreamExt::chain(first, last), Ok::<_, String>);
    let kind = [(CONTENT_TYPE, "text/event-stream")];
    (kind, axum::body::Body::from_stream(events)).into_response()
}

fn event(message: &Value) -> String {
    format!("data: {message}\n\n")
}

impl Does {
    async fn said(&self, method: &str, params: &Value) -> Value {
        match method {
            "server/discover" if self.form == Form::Extension => json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": self.capabilities(), "ttlMs": 0, "cacheScope": "private",
                "serverInfo": { "name": "stand", "version": "1" },
            }),
            "initialize" => json!({
                "protocolVersion": "2025-11-25", "capabilities": self.capabilities(),
                "serverInfo": { "name": "stand", "version": "1" },
            }),
            "tools/list" => self.tools(),
            "tools/call" if self.form == Form::Extension => {
                let mut created = self.task();
                created["resultType"] = "task".into();
                created
            }
            "tools/call" if params.get("task").is_some() => json!({ "task": self.task() }),
            "tools/call" => text("at once"),
            "tasks/get" => {
                let instead = self.instead.lock().unwrap().clone();
                if instead.is_null() {
                    self.task()
                } else {
                    instead
                }
            }
            "tasks/result" => {
                let is_over = |task: &Value| {
                    ["completed", "failed", "cancelled"].contains(&task["status"].as_str().unwrap())
                };
                let mut task = self.task.subscribe();
                task.wait_for(is_over).await.unwrap();
                self.result()
            }
            "tasks/cancel" => {
                self.task.send_replace(json!({ "status": "cancelled" }));
                self.task()
            }
            "tasks/update" => {
                let done = json!({ "status": "completed", "result": text("updated") });
                self.task.send_replace(done);
                json!({ "resultType": "complete" })
            }
            _ => json!({ "error": { "code": -32_601, "message": "no such method" } }),
        }
    }

    fn capabilities(&self) -> Value {
        match self.form {
            Form::Handshake => json!({
                "tools": {},
                "tasks": { "cancel": {}, "requests": { "tools": { "call": {} } } },
            }),
            Form::Extension => json!({
                "tools": {}, "extensions": { "io.modelcontextprotocol/tasks": {} },
            }),
        }
    }

    fn tools(&self) -> Value {
        let tool = |name: &str, support: &str| {
            json!({
                "name": name, "description": "Of a test", "inputSchema": { "type": "object" },
                "execution": { "taskSupport": support },
            })
        };
        let tools = [
            tool("build", "required"),
            tool("either", "optional"),
            tool("plain", "forbidden"),
        ];
        let mut listed = json!({ "tools": tools });
        if self.form == Form::Extension {
            let hints = json!({ "resultType": "complete", "ttlMs": 0, "cacheScope": "private" });
            let hints = hints.as_object().unwrap().clone();
            listed.as_object_mut().unwrap().extend(hints);
        }
        listed
    }

    /// The task as it is now, asked for again at once.
    fn task(&self) -> Value {
        let mut task = json!({
            "taskId": *self.id.lock().unwrap(),
            "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z",
        });
        let times = match self.form {
            Form::Handshake => json!({ "ttl": 60_000, "pollInterval": 0 }),
            Form::Extension => json!({ "ttlMs": 60_000, "pollIntervalMs": 0 }),
        };
        let members = task.as_object_mut().unwrap();
        members.extend(times.as_object().unwrap().clone());
        members.extend(self.task.borrow().as_object().unwrap().clone());
        task
    }

    fn result(&self) -> Value {
        let mut result = self.result.lock().unwrap().clone();
        if result.get("error").is_none() && result.get("_meta").is_none() {
            result["_meta"] = json!({ RELATED: { "taskId": *self.id.lock().unwrap() } });
        }
        result
    }
}
