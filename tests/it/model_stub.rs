//! A stand-in for Chat Completions on loopback: plays a script, keeps what it was asked, and
//! refuses what the vendor refuses. Dropping it fails the test if anything was refused.

use std::collections::{HashSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::stream;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio_util::task::AbortOnDropHandle;
use tokio_util::task::TaskTracker;

/// The stand-in. `model.will_call("write_file", json!({"path": "a"})).then_say("Done")`
pub(crate) struct ModelStub {
    address: SocketAddr,
    shared: Arc<Shared>,
    _server: AbortOnDropHandle<()>,
}

struct Shared {
    state: Mutex<Script>,
    /// One permit lets one stalled stream go on.
    gate: Semaphore,
    stalled: watch::Sender<usize>,
    open: watch::Sender<usize>,
}

#[derive(Default)]
struct Script {
    replies: VecDeque<Reply>,
    models: Option<Value>,
    asked: Vec<Asked>,
    refusals: Vec<String>,
    refuses_stream_options: bool,
}

/// One request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// The body.
    pub(crate) body: Value,
    /// The `Authorization` header.
    pub(crate) authorization: Option<String>,
    /// The other end of the connection: equal for requests on one connection.
    pub(crate) peer: SocketAddr,
}

/// One answer of the script.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    status: StatusCode,
    headers: Vec<(&'static str, String)>,
    frames: Vec<Bytes>,
    cut_after: Option<usize>,
    stall_before: Option<usize>,
}

impl Reply {
    /// An answer of text only.
    pub(crate) fn say(text: &str) -> Self {
        Self::answer(text, &[])
    }

    /// An answer of text and calls, streamed by word and with arguments in two pieces.
    pub(crate) fn answer(text: &str, calls: &[(&str, Value)]) -> Self {
        let mut deltas = vec![json!({"role": "assistant", "content": ""})];
        deltas.extend(
            text.split_inclusive(' ')
                .map(|word| json!({"content": word})),
        );
        for (index, (name, args)) in calls.iter().enumerate() {
            let args = args.to_string();
            let (head, tail) = args.split_at(1);
            let function = json!({"name": name, "arguments": ""});
            deltas.push(json!({"tool_calls": [{
                "index": index, "id": format!("call_stub_{index}"), "type": "function", "function": function,
            }]}));
            for piece in [head, tail] {
                let function = json!({"arguments": piece});
                deltas.push(json!({"tool_calls": [{"index": index, "function": function}]}));
            }
        }
        let reason = if calls.is_empty() {
            "stop"
        } else {
            "tool_calls"
        };
        let choice = |delta: &Value, reason: Option<&str>| {
            json!({"object": "chat.completion.chunk", "usage": null,
                "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
        };
        let mut chunks: Vec<Value> = deltas.iter().map(|delta| choice(delta, None)).collect();
        chunks.push(choice(&json!({}), Some(reason)));
        chunks.push(json!({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}}));
        let mut frames: Vec<Bytes> = chunks
            .iter()
            .map(|chunk| Bytes::from(format!("data: {chunk}\n\n")))
            .collect();
        frames.push(Bytes::from_static(b"data: [DONE]\n\n"));
        Self::raw("text/event-stream", frames)
    }

    /// Exactly these pieces of a body.
    pub(crate) fn raw(content_type: &str, frames: Vec<Bytes>) -> Self {
        Self {
            status: StatusCode::OK,
            headers: vec![("content-type", content_type.to_owned())],
            frames,
            cut_after: None,
            stall_before: None,
        }
    }

    /// A refusal.
    pub(crate) fn fail(status: u16, headers: &[(&'static str, &str)], body: &str) -> Self {
        let headers = headers
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()));
        Self {
            status: StatusCode::from_u16(status).unwrap(),
            headers: headers.collect(),
            ..Self::raw("", vec![Bytes::from(body.to_owned())])
        }
    }
}

impl ModelStub {
    /// Listens on a free port of loopback.
    pub(crate) async fn start() -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            gate: Semaphore::new(0),
            stalled: watch::Sender::new(0),
            open: watch::Sender::new(0),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new()
            .route("/v1/chat/completions", post(complete))
            .route("/v1/models", get(models))
            .with_state(Arc::clone(&shared))
            .into_make_service_with_connect_info::<SocketAddr>();
        let server = TaskTracker::new().spawn(async move {
            axum::serve(listener, router).await.unwrap();
        });
        Self {
            address,
            shared,
            _server: AbortOnDropHandle::new(server),
        }
    }

    /// What a provider's `base_url` must be.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The next answer is this.
    pub(crate) fn will(&self, reply: Reply) -> &Self {
        self.state().replies.push_back(reply);
        self
    }

    /// The next answer is text.
    pub(crate) fn will_say(&self, text: &str) -> &Self {
        self.will(Reply::say(text))
    }

    /// The next answer is one call.
    pub(crate) fn will_call(&self, tool: &str, args: Value) -> &Self {
        self.will(Reply::answer("", &[(tool, args)]))
    }

    /// The next request is refused.
    pub(crate) fn will_fail(
        &self,
        status: u16,
        headers: &[(&'static str, &str)],
        body: &str,
    ) -> &Self {
        self.will(Reply::fail(status, headers, body))
    }

    /// And then this; reads better in a chain.
    pub(crate) fn then(&self, reply: Reply) -> &Self {
        self.will(reply)
    }

    /// And then text.
    pub(crate) fn then_say(&self, text: &str) -> &Self {
        self.will_say(text)
    }

    /// And then one call.
    pub(crate) fn then_call(&self, tool: &str, args: Value) -> &Self {
        self.will_call(tool, args)
    }

    /// The answer that was added last breaks off after `frames` events (the first is empty).
    pub(crate) fn will_cut_after(&self, frames: usize) -> &Self {
        self.state().replies.back_mut().unwrap().cut_after = Some(frames);
        self
    }

    /// The answer that was added last is held in its middle until [`Self::release`].
    pub(crate) fn stall(&self) -> &Self {
        let mut state = self.state();
        let reply = state.replies.back_mut().unwrap();
        reply.stall_before = Some(reply.frames.len() / 2);
        drop(state);
        self
    }

    /// Waits until an answer is held.
    pub(crate) async fn stalled(&self) {
        let mut stalled = self.shared.stalled.subscribe();
        stalled.wait_for(|&count| count > 0).await.unwrap();
    }

    /// What was not asked for is never said.
    pub(crate) fn forget_rest(&self) {
        self.state().replies.clear();
    }

    /// Lets one held answer go on.
    pub(crate) fn release(&self) {
        self.shared.gate.add_permits(1);
    }

    /// Waits until no answer is being sent, because it ended or nobody listens.
    pub(crate) async fn idle(&self) {
        let mut open = self.shared.open.subscribe();
        open.wait_for(|&count| count == 0).await.unwrap();
    }

    /// `GET /models` answers with this.
    pub(crate) fn lists(&self, body: Value) -> &Self {
        self.state().models = Some(body);
        self
    }

    /// Refuses `stream_options`, as some servers do.
    pub(crate) fn refuse_stream_options(&self) -> &Self {
        self.state().refuses_stream_options = true;
        self
    }

    /// The requests so far, those refused included.
    pub(crate) fn requests(&self) -> Vec<Asked> {
        self.state().asked.clone()
    }

    /// Takes what was refused, for tests of refusals; what stays fails the test at the end.
    pub(crate) fn take_refusals(&self) -> Vec<String> {
        std::mem::take(&mut self.state().refusals)
    }

    fn state(&self) -> MutexGuard<'_, Script> {
        self.shared.state.lock().unwrap()
    }
}

impl Drop for ModelStub {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let refusals = self.take_refusals();
            assert!(refusals.is_empty(), "the model stub refused: {refusals:#?}");
        }
    }
}

async fn models(State(shared): State<Arc<Shared>>) -> Response {
    match shared.state.lock().unwrap().models.clone() {
        Some(list) => axum::Json(list).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn complete(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let authorization = headers.get(header::AUTHORIZATION);
    let authorization = authorization.map(|value| value.to_str().unwrap().to_owned());
    let reply = {
        let mut state = shared.state.lock().unwrap();
        state.asked.push(Asked {
            body: body.clone(),
            authorization,
            peer,
        });
        if state.refuses_stream_options && body.get("stream_options").is_some() {
            return refuse(
                StatusCode::BAD_REQUEST,
                "Unrecognized request argument: stream_options",
            );
        }
        let problem = check(&body).err();
        let problem = problem.or_else(|| {
            state
                .replies
                .is_empty()
                .then(|| "the script is over".to_owned())
        });
        if let Some(problem) = problem {
            state.refusals.push(problem.clone());
            return refuse(StatusCode::BAD_REQUEST, &problem);
        }
        state.replies.pop_front().unwrap()
    };
    play(shared, reply)
}

fn refuse(status: StatusCode, problem: &str) -> Response {
    let error = json!({"error": {"message": problem, "type": "invalid_request_error"}});
    (status, axum::Json(error)).into_response()
}

/// Counts the streams that are being sent.
struct Open(Arc<Shared>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.send_modify(|count| *count -= 1);
    }
}

fn play(shared: Arc<Shared>, reply: Reply) -> Response {
    shared.open.send_modify(|count| *count += 1);
    let mut response = Response::builder().status(reply.status);
    for (name, value) in &reply.headers {
        response = response.header(*name, value);
    }
    let frames = stream::unfold((Open(shared), reply, 0), |(open, reply, at)| async move {
        if reply.cut_after == Some(at) {
            // What was said before is flushed when there is nothing more to say at once.
            tokio::task::yield_now().await;
            let broken = std::io::Error::other("cut on purpose");
            return Some((Err(broken), (open, reply, usize::MAX)));
        }
        if reply.stall_before == Some(at) {
            open.0.stalled.send_modify(|count| *count += 1);
            open.0.gate.acquire().await.unwrap().forget();
            open.0.stalled.send_modify(|count| *count -= 1);
        }
        let frame = reply.frames.get(at)?.clone();
        Some((Ok(frame), (open, reply, at + 1)))
    });
    response.body(Body::from_stream(frames)).unwrap()
}

/// What the vendor refuses.
fn check(body: &Value) -> Result<(), String> {
    let known = [
        "model",
        "messages",
        "tools",
        "tool_choice",
        "temperature",
        "max_tokens",
        "max_completion_tokens",
        "stream",
        "stream_options",
    ];
    let object = body.as_object().ok_or("the body is no JSON object")?;
    if let Some(name) = object.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("unknown field `{name}`"));
    }
    if body
        .get("model")
        .and_then(Value::as_str)
        .is_none_or(str::is_empty)
    {
        return Err("you must provide a model parameter".to_owned());
    }
    if body.get("stream") != Some(&json!(true)) {
        return Err("`stream` is not true".to_owned());
    }
    for name in ["max_tokens", "max_completion_tokens"] {
        if body
            .get(name)
            .is_some_and(|value| value.as_u64().is_none_or(|n| n == 0))
        {
            return Err(format!("`{name}` is too small"));
        }
    }
    check_tools(body)?;
    check_messages(body)
}

fn check_tools(body: &Value) -> Result<(), String> {
    let Some(tools) = body.get("tools") else {
        return match body.get("tool_choice") {
            Some(_) => Err("`tool_choice` is only allowed with `tools`".to_owned()),
            None => Ok(()),
        };
    };
    let tools = tools.as_array().filter(|tools| !tools.is_empty());
    let mut names = HashSet::new();
    for tool in tools.ok_or("`tools` is empty")? {
        let name = text(tool, "/function/name").unwrap_or_default();
        if text(tool, "/type") != Some("function") || !is_name(name) {
            return Err(format!("tool `{name}` has a wrong type or name"));
        }
        if !names.insert(name) {
            return Err(format!("tool `{name}` stands twice"));
        }
        let parameters = tool.pointer("/function/parameters");
        let is_object = parameters.and_then(|schema| text(schema, "/type")) == Some("object");
        if !is_object
            || parameters
                .and_then(|schema| schema.get("properties"))
                .is_none()
        {
            return Err(format!(
                "tool `{name}` has no object schema with properties"
            ));
        }
    }
    Ok(())
}

fn check_messages(body: &Value) -> Result<(), String> {
    let messages = body.get("messages").and_then(Value::as_array);
    let messages = messages.filter(|messages| !messages.is_empty());
    let mut waiting: HashSet<&str> = HashSet::new();
    for message in messages.ok_or("`messages` is empty")? {
        let role = text(message, "/role").unwrap_or_default();
        if role == "tool" {
            let id = text(message, "/tool_call_id").unwrap_or_default();
            if !waiting.remove(id) {
                return Err(format!("a tool result `{id}` without its call"));
            }
            text(message, "/content").ok_or("a tool result without a text")?;
            continue;
        }
        if !waiting.is_empty() {
            return Err(format!("calls without a result: {waiting:?}"));
        }
        match role {
            "system" | "user" => {
                text(message, "/content")
                    .ok_or_else(|| format!("a {role} message without a text"))?;
            }
            "assistant" => check_assistant(message, &mut waiting)?,
            other => return Err(format!("unknown role `{other}`")),
        }
    }
    if waiting.is_empty() {
        return Ok(());
    }
    Err(format!("calls without a result: {waiting:?}"))
}

fn check_assistant<'a>(message: &'a Value, waiting: &mut HashSet<&'a str>) -> Result<(), String> {
    let Some(calls) = message.get("tool_calls") else {
        let content = text(message, "/content");
        return content
            .map(drop)
            .ok_or_else(|| "an empty assistant message".to_owned());
    };
    let calls = calls.as_array().filter(|calls| !calls.is_empty());
    for call in calls.ok_or("`tool_calls` is empty")? {
        let id = text(call, "/id").unwrap_or_default();
        if id.is_empty() || id.len() > 40 || !waiting.insert(id) {
            return Err(format!(
                "the call id `{id}` is empty, too long or stands twice"
            ));
        }
        let name = text(call, "/function/name").unwrap_or_default();
        if text(call, "/type") != Some("function") || !is_name(name) {
            return Err(format!("the call of `{name}` has a wrong type or name"));
        }
        let arguments = text(call, "/function/arguments").ok_or("arguments that are no string")?;
        let arguments: Result<Value, _> = serde_json::from_str(arguments);
        if !arguments.is_ok_and(|arguments| arguments.is_object()) {
            return Err(format!("the arguments of `{id}` are no JSON object"));
        }
    }
    Ok(())
}

fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str)
}

fn is_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=64).contains(&name.len()) && name.chars().all(is_allowed)
}
