//! A server over HTTP that answers calls as it is told to, whatever is right.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// What it answers to a call.
#[derive(Clone)]
pub(super) enum Answer {
    /// A result with so many bytes of text, its length said before.
    Long(usize),
    /// The same piece by piece, as an event or as a body; nobody is told how long it is.
    Pieces { kind: &'static str, bytes: usize },
    /// A status with a JSON-RPC error whose `id` is null.
    Nameless(u16, i32),
    /// A status and nothing beside it.
    Bare(u16),
    /// A status with a JSON-RPC error that names the call.
    Named(u16, i32),
    /// A picture beside a text.
    Picture(Vec<u8>),
    /// As a server does that was started anew: sessions of before are unknown.
    Forgets,
}

/// The server on loopback, for as long as this lives.
pub(super) struct Odd {
    pub(super) url: String,
    seen: Arc<Seen>,
    _server: AbortOnDropHandle<()>,
}

/// What came to the server.
#[derive(Default)]
struct MountedVolumes {
    sessions: AtomicUsize,
    calls: AtomicUsize,
    /// The session of the first call, which is forgotten with it.
    forgotten: AtomicUsize,
}

impl Odd {
    pub(super) async fn start(answer: Answer) -> Self {
        let seen = Arc::<Seen>::default();
        let own = Arc::clone(&seen);
        let answers = move |headers: HeaderMap, body: Bytes| {
            let request: Value = serde_json::from_slice(&body).unwrap();
            let session = headers.get("mcp-session-id");
            let session = session.map(|it| it.to_str().unwrap().parse().unwrap());
            let response = reply(&answer, &request, session, &own);
            async move { response }
        };
        let router = Router::new().route("/mcp", post(answers));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let serving =
            TaskTracker::new().spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            url,
            seen,
            _server: AbortOnDropHandle::new(serving),
        }
    }

    /// How many calls came.
    pub(super) fn calls(&self) -> usize {
        self.seen.calls.load(Ordering::Acquire)
    }
}

fn reply(answer: &Answer, request: &Value, session: Option<usize>, seen: &Seen) -> Response {
    let id = &request["id"];
    let result =
        |result: Value| json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
    match request["method"].as_str().unwrap_or_default() {
        "initialize" => {
            let number = seen.sessions.fetch_add(1, Ordering::AcqRel) + 1;
            let body = result(json!({
                "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                "serverInfo": { "name": "odd", "version": "1" },
            }));
            let kind = (header::CONTENT_TYPE, "application/json".to_owned());
            let session = (
                header::HeaderName::from_static("mcp-session-id"),
                number.to_string(),
            );
            ([kind, session], body).into_response()
        }
        "tools/list" => {
            let tool = json!({ "name": "echo", "inputSchema": { "type": "object" } });
            as_json(200, result(json!({ "tools": [tool] })))
        }
        "tools/call" => {
            let session = session.unwrap_or_default();
            if seen.calls.fetch_add(1, Ordering::AcqRel) == 0 {
                seen.forgotten.store(session, Ordering::Release);
            }
            let is_forgotten = seen.forgotten.load(Ordering::Acquire) == session;
            called(answer, id, is_forgotten)
        }
        _ => StatusCode::ACCEPTED.into_response(),
    }
}

fn called(answer: &Answer, id: &Value, is_forgotten: bool) -> Response {
    let text = |text: &str| {
        let content = json!([{ "type": "text", "text": text }]);
        json!({ "jsonrpc": "2.0", "id": id, "result": { "content": content } }).to_string()
    };
    // Put into the message as it is: to write 100 MB of JSON takes a debug build seconds.
    let long = |bytes: usize| text("LONG").replace("LONG", &"x".repeat(bytes));
    let error = |id: &Value, code: i32| {
        let error = json!({ "code": code, "message": "not today" });
        json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()
    };
    match *answer {
        Answer::Picture(ref bytes) => {
            let image = json!({ "type": "image", "mimeType": "image/gif",
                "data": STANDARD.encode(bytes) });
            let content = json!([{ "type": "text", "text": "a screenshot" }, image]);
            let result = json!({ "jsonrpc": "2.0", "id": id, "result": { "content": content } });
            as_json(200, result.to_string())
        }
        Answer::Long(bytes) => as_json(200, long(bytes)),
        Answer::Pieces { kind, bytes } => {
            let whole = long(bytes);
            let whole = match kind {
                "text/event-stream" => format!("id: 1\ndata: {whole}\n\n"),
                _ => whole,
            };
            let mut whole = Bytes::from(whole);
            let pieces = std::iter::from_fn(move || {
                let piece = whole.split_to(whole.len().min(64 * 1024));
                (!piece.is_empty()).then_some(Ok::<_, Infallible>(piece))
            });
            let pieces = futures::stream::iter(pieces);
            ([(header::CONTENT_TYPE, kind)], Body::from_stream(pieces)).into_response()
        }
        Answer::Nameless(status, code) => as_json(status, error(&Value::Null, code)),
        Answer::Named(status, code) => as_json(status, error(id, code)),
        Answer::Bare(status) => StatusCode::from_u16(status).unwrap().into_response(),
        Answer::Forgets if is_forgotten => as_json(400, error(&Value::Null, -32_000)),
        Answer::Forgets => as_json(200, text("fine")),
    }
}

fn as_json(status: u16, body: String) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (StatusCode::from_u16(status).unwrap(), kind, body).into_response()
}
