//! A stand-in for model vendors on loopback: plays a script, keeps what it was asked, and refuses
//! what the vendor refuses, in its words. Dropping it fails the test if anything was refused.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::stream;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio_util::task::AbortOnDropHandle;
use tokio_util::task::TaskTracker;

mod chat;
mod endings;
mod gemini;
mod hosts;
mod messages;
mod responses;

pub(crate) use self::hosts::ChatHost;

/// The key that the stand-ins take, but for Chat Completions.
pub(crate) const STUB_KEY: &str = "stub-key";

/// Refuses what is no base64, or nothing.
fn check_base64(data: Option<&str>) -> Result<(), String> {
    let content = data.and_then(|data| STANDARD.decode(data).ok());
    let content = content.filter(|content| !content.is_empty());
    content
        .map(drop)
        .ok_or_else(|| "invalid base64 data".to_owned())
}

/// Refuses what is no `data:` URL of one of those types.
fn check_data_url(url: &str, kinds: &[&str]) -> Result<(), String> {
    let parts = url.strip_prefix("data:");
    let parts = parts.and_then(|rest| rest.split_once(";base64,"));
    let data = parts.filter(|(kind, _)| kinds.contains(kind));
    check_base64(data.map(|(_, data)| data))
}

/// What a stand-in speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vendor {
    /// Chat Completions, with any key and any model.
    Chat,
    /// OpenAI's Responses, with [`STUB_KEY`] and models called `gpt-…`.
    Responses,
    /// Anthropic Messages, with [`STUB_KEY`] and models called `claude-…`.
    Messages,
    /// Gemini `generateContent`, with [`STUB_KEY`] and models called `gemini-…`.
    Gemini,
}

impl Vendor {
    pub(crate) const ALL: [Self; 4] = [Self::Chat, Self::Responses, Self::Messages, Self::Gemini];

    /// How the settings name it.
    pub(crate) fn provider(self) -> &'static str {
        match self {
            Self::Chat => "openai-compatible",
            Self::Responses => "openai",
            Self::Messages => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    /// A model that it has.
    pub(crate) fn model(self) -> &'static str {
        match self {
            Self::Chat => "stub",
            Self::Responses => "gpt-5.1",
            Self::Messages => "claude-sonnet-4-5-20250929",
            Self::Gemini => "gemini-3-pro-preview",
        }
    }

    /// How it says that the window is full.
    pub(crate) fn overflow(self) -> Reply {
        let (status, body) = match self {
            Self::Chat => (
                400,
                r#"{"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}}"#.to_owned(),
            ),
            Self::Responses => {
                let words = "Your input exceeds the context window of this model.";
                let code = Some("context_length_exceeded");
                (400, responses::error("invalid_request_error", code, words).to_string())
            }
            Self::Messages => {
                let words = "prompt is too long: 208310 tokens > 200000 maximum";
                (400, messages::error("invalid_request_error", words).to_string())
            }
            Self::Gemini => {
                let words = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).";
                (400, gemini::error(400, "INVALID_ARGUMENT", words).to_string())
            }
        };
        Reply::fail(status, &[], &body)
    }

    /// How it says that it has too much to do.
    pub(crate) fn overloaded(self) -> Reply {
        let (status, body) = match self {
            Self::Chat => (503, "busy".to_owned()),
            Self::Responses => (
                503,
                responses::error("server_error", None, "Overloaded").to_string(),
            ),
            Self::Messages => (
                529,
                messages::error("overloaded_error", "Overloaded").to_string(),
            ),
            Self::Gemini => (
                503,
                gemini::error(503, "UNAVAILABLE", "The model is overloaded.").to_string(),
            ),
        };
        Reply::fail(status, &[], &body)
    }

    fn frames(self, first: First<'_>, text: &str, calls: &[(String, Value)]) -> Vec<Bytes> {
        match self {
            Self::Chat => chat::frames(text, calls),
            Self::Responses => responses::frames(first, text, calls),
            Self::Messages => messages::frames(first, text, calls),
            Self::Gemini => gemini::frames(text, calls),
        }
    }

    /// The block of a compaction as the vendor wants it back.
    pub(crate) fn compaction(self, summary: &str) -> Value {
        match self {
            Self::Responses => responses::compaction::whole(summary),
            Self::Messages => messages::compaction::whole(summary),
            Self::Chat | Self::Gemini => unreachable!("it compacts nothing"),
        }
    }

    fn check(self, asked: &Asked) -> Result<(), (StatusCode, String)> {
        match self {
            Self::Chat => {
                chat::check(&asked.body).map_err(|problem| (StatusCode::BAD_REQUEST, problem))
            }
            Self::Responses => responses::check(asked),
            Self::Messages => messages::check(asked),
            Self::Gemini => gemini::check(asked),
        }
    }

    fn refuse(self, status: StatusCode, problem: &str) -> Response {
        match self {
            Self::Chat => chat::refuse(status, problem),
            Self::Responses => responses::refuse(status, problem),
            Self::Messages => messages::refuse(status, problem),
            Self::Gemini => gemini::refuse(status, problem),
        }
    }
}

/// The stand-in. `model.will_call("write_file", json!({"path": "a"})).then_say("Done")`
pub(crate) struct ModelStub {
    pub(crate) vendor: Vendor,
    /// Whose Chat Completions they are; none = anybody's.
    pub(crate) host: Option<ChatHost>,
    address: SocketAddr,
    shared: Arc<Shared>,
    _server: AbortOnDropHandle<()>,
}

struct Shared {
    vendor: Vendor,
    host: Option<ChatHost>,
    state: Mutex<Script>,
    /// One permit lets one stalled stream go on.
    gate: Semaphore,
    stalled: watch::Sender<usize>,
    open: watch::Sender<usize>,
    /// Requests for answers so far.
    asked: watch::Sender<usize>,
}

#[derive(Default)]
struct Script {
    replies: VecDeque<Reply>,
    models: Option<Value>,
    /// The requests for the list of models so far.
    listed: Vec<Asked>,
    /// Further pages of the list, by what asks for them.
    pages: BTreeMap<String, Value>,
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
    /// All headers.
    pub(crate) headers: HeaderMap,
    /// Path and query.
    pub(crate) uri: Uri,
    /// The other end of the connection: equal for requests on one connection.
    pub(crate) peer: SocketAddr,
}

/// A search for tools that the vendor itself makes.
#[derive(Debug, Clone)]
pub(crate) struct Search {
    query: String,
    found: Vec<String>,
    /// Whose tools they are.
    server: String,
}

/// A compaction that the vendor makes before it answers.
#[derive(Debug, Clone)]
pub(crate) struct Compaction {
    /// What stands for what was said before.
    summary: String,
    /// Tokens of that.
    before: u64,
}

/// What a vendor does by itself before it answers.
#[derive(Clone, Copy, Default)]
struct First<'a> {
    search: Option<&'a Search>,
    compaction: Option<&'a Compaction>,
}

/// One answer of the script.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    status: StatusCode,
    headers: Vec<(&'static str, String)>,
    frames: Vec<Bytes>,
    /// Text and calls, to be said in the vendor's form.
    said: Option<(String, Vec<(String, Value)>)>,
    /// What the vendor's own search looks for and finds first.
    search: Option<Search>,
    /// What the vendor compacts before that.
    compaction: Option<Compaction>,
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
        let calls = calls
            .iter()
            .map(|(name, args)| ((*name).to_owned(), args.clone()));
        Self {
            said: Some((text.to_owned(), calls.collect())),
            ..Self::raw("text/event-stream", Vec::new())
        }
    }

    /// The vendor first searches the tools of that server, and finds these.
    pub(crate) fn searching(mut self, query: &str, server: &str, found: &[&str]) -> Self {
        self.search = Some(Search {
            query: query.to_owned(),
            found: found.iter().map(|&name| name.to_owned()).collect(),
            server: server.to_owned(),
        });
        self
    }

    /// The vendor first compacts what it was sent, so many tokens.
    pub(crate) fn compacting(mut self, summary: &str, before: u64) -> Self {
        self.compaction = Some(Compaction {
            summary: summary.to_owned(),
            before,
        });
        self
    }

    /// Exactly these pieces of a body.
    pub(crate) fn raw(content_type: &str, frames: Vec<Bytes>) -> Self {
        Self {
            status: StatusCode::OK,
            headers: vec![("content-type", content_type.to_owned())],
            frames,
            said: None,
            search: None,
            compaction: None,
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
    /// Chat Completions on a free port of loopback.
    pub(crate) async fn start() -> Self {
        Self::start_as(Vendor::Chat).await
    }

    /// That vendor on a free port of loopback.
    pub(crate) async fn start_as(vendor: Vendor) -> Self {
        Self::listen(vendor, None).await
    }

    /// Chat Completions as that host speaks them.
    pub(crate) async fn start_at(host: ChatHost) -> Self {
        Self::listen(Vendor::Chat, Some(host)).await
    }

    async fn listen(vendor: Vendor, host: Option<ChatHost>) -> Self {
        let shared = Arc::new(Shared {
            vendor,
            host,
            state: Mutex::default(),
            gate: Semaphore::new(0),
            stalled: watch::Sender::new(0),
            open: watch::Sender::new(0),
            asked: watch::Sender::new(0),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new()
            .route("/v1/chat/completions", post(complete))
            .route("/v1/responses", post(complete))
            .route("/v1/messages", post(complete))
            .route("/v1beta/models/{call}", post(complete))
            .route("/v1/models", get(models))
            .route("/v1beta/models", get(models))
            .with_state(Arc::clone(&shared))
            .into_make_service_with_connect_info::<SocketAddr>();
        let server = TaskTracker::new().spawn(async move {
            axum::serve(listener, router).await.unwrap();
        });
        Self {
            vendor,
            host,
            address,
            shared,
            _server: AbortOnDropHandle::new(server),
        }
    }

    /// What a provider's `base_url` must be.
    pub(crate) fn base_url(&self) -> String {
        match self.vendor {
            Vendor::Chat | Vendor::Responses => format!("http://{}/v1", self.address),
            Vendor::Messages | Vendor::Gemini => format!("http://{}", self.address),
        }
    }

    /// The next answer is this.
    pub(crate) fn will(&self, mut reply: Reply) -> &Self {
        if let Some((text, calls)) = &reply.said {
            let first = First {
                search: reply.search.as_ref(),
                compaction: reply.compaction.as_ref(),
            };
            reply.frames = self.vendor.frames(first, text, calls);
        }
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

    /// The answer that was added last is held before its first word until [`Self::release`].
    pub(crate) fn stall_at_once(&self) -> &Self {
        self.state().replies.back_mut().unwrap().stall_before = Some(1);
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

    /// `GET /models` answers with this to who asks for what comes after `mark`.
    pub(crate) fn lists_after(&self, mark: &str, body: Value) -> &Self {
        self.state().pages.insert(mark.to_owned(), body);
        self
    }

    /// Refuses `stream_options`, as some servers do.
    pub(crate) fn refuse_stream_options(&self) -> &Self {
        self.state().refuses_stream_options = true;
        self
    }

    /// Waits until it was asked so often from now on.
    pub(crate) async fn asked_again(&self, times: usize) {
        let mut asked = self.shared.asked.subscribe();
        let wanted = *asked.borrow() + times;
        asked.wait_for(|&count| count >= wanted).await.unwrap();
    }

    /// Waits until it was asked so often in all.
    pub(crate) async fn asked(&self, times: usize) {
        let mut asked = self.shared.asked.subscribe();
        asked.wait_for(|&count| count >= times).await.unwrap();
    }

    /// The requests so far, those refused included.
    pub(crate) fn requests(&self) -> Vec<Asked> {
        self.state().asked.clone()
    }

    /// The requests for the list of models so far.
    pub(crate) fn list_requests(&self) -> Vec<Asked> {
        self.state().listed.clone()
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

async fn models(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap) -> Response {
    let mut state = shared.state.lock().unwrap();
    let asked = Asked {
        body: Value::Null,
        authorization: None,
        headers,
        uri,
        peer: SocketAddr::from(([127, 0, 0, 1], 0)),
    };
    state.listed.push(asked.clone());
    let refused = match shared.vendor {
        Vendor::Chat => None,
        Vendor::Responses => responses::check_head(&asked).err(),
        Vendor::Messages => messages::check_head(&asked).err(),
        Vendor::Gemini => gemini::check_head(&asked).err(),
    };
    if let Some((status, problem)) = refused {
        return shared.vendor.refuse(status, &problem);
    }
    let query = asked.uri.query().unwrap_or_default();
    let mut page = state.pages.iter();
    let page = page.find(|(mark, _)| query.ends_with(&format!("={mark}")));
    match page.map(|(_, page)| page).or(state.models.as_ref()) {
        Some(list) => axum::Json(list.clone()).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn complete(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let authorization = headers.get(header::AUTHORIZATION);
    let authorization = authorization.map(|value| value.to_str().unwrap().to_owned());
    let asked = Asked {
        body,
        authorization,
        headers,
        uri,
        peer,
    };
    let reply = {
        let mut state = shared.state.lock().unwrap();
        state.asked.push(asked.clone());
        shared.asked.send_modify(|count| *count += 1);
        if state.refuses_stream_options && asked.body.get("stream_options").is_some() {
            return chat::refuse(
                StatusCode::BAD_REQUEST,
                "Unrecognized request argument: stream_options",
            );
        }
        let refused = shared.host.and_then(|host| host.check(&asked.body));
        if let Some((response, problem)) = refused {
            state.refusals.push(problem);
            return response;
        }
        let problem = shared.vendor.check(&asked).err();
        let problem = problem.or_else(|| {
            let is_over = state.replies.is_empty();
            is_over.then(|| (StatusCode::BAD_REQUEST, "the script is over".to_owned()))
        });
        if let Some((status, problem)) = problem {
            state.refusals.push(problem.clone());
            return shared.vendor.refuse(status, &problem);
        }
        state.replies.pop_front().unwrap()
    };
    play(shared, reply)
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

/// The text at a JSON pointer.
fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str)
}

fn is_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=64).contains(&name.len()) && name.chars().all(is_allowed)
}
