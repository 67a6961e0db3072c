//! The wire form of Chat Completions from the vendor's side.

use std::error::Error;

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures::stream::{self, StreamExt as _};
use serde::Deserialize;
use serde_json::{Value, json};

/// A request, reduced to the fields that are used.
#[derive(Deserialize)]
pub(crate) struct CompletionRequest {
    /// The conversation.
    pub(crate) messages: Vec<RequestMessage>,
    /// The tools that the model may call.
    #[serde(default)]
    pub(crate) tools: Vec<OfferedTool>,
}

/// A message of a request.
#[derive(Deserialize)]
pub(crate) struct RequestMessage {
    /// The role of the author.
    pub(crate) role: String,
    /// The content of the message.
    #[serde(default)]
    pub(crate) content: Value,
}

/// A tool of a request.
#[derive(Deserialize)]
pub(crate) struct OfferedTool {
    /// Its definition.
    pub(crate) function: Function,
}

/// A tool's definition.
#[derive(Deserialize)]
pub(crate) struct Function {
    /// Its name.
    pub(crate) name: String,
}

impl CompletionRequest {
    /// Returns the offered tool whose name ends with `end`.
    pub(crate) fn tool(&self, end: &str) -> Option<&str> {
        let mut names = self.tools.iter().map(|tool| tool.function.name.as_str());
        names.find(|name| name.ends_with(end))
    }
}

/// Streams the events, followed by the end marker. An error cuts the connection.
pub(crate) fn events<E: Into<Box<dyn Error + Send + Sync>> + Send + 'static>(
    pieces: impl futures::Stream<Item = Result<Bytes, E>> + Send + 'static,
) -> Response {
    let done = stream::iter([Ok(Bytes::from_static(b"data: [DONE]\n\n"))]);
    let head = [(header::CONTENT_TYPE, "text/event-stream")];
    (head, Body::from_stream(pieces.chain(done))).into_response()
}

/// Builds one event, as long as those of real vendors.
pub(crate) fn chunk(delta: &Value, finish: Option<&str>) -> Bytes {
    let event = json!({
        "id": "chatcmpl-DmNkW0bW5yVbTQ1fS7JYk2zE4hAbc", "object": "chat.completion.chunk",
        "created": 1_790_000_000, "model": "bench", "service_tier": "default",
        "system_fingerprint": "fp_0123456789",
        "choices": [{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish }],
    });
    Bytes::from(format!("data: {event}\n\n"))
}

/// Builds the event with the usage of an answer.
pub(crate) fn usage(tokens: usize) -> Bytes {
    let event = json!({
        "id": "chatcmpl-DmNkW0bW5yVbTQ1fS7JYk2zE4hAbc", "object": "chat.completion.chunk",
        "created": 1_790_000_000, "model": "bench", "choices": [],
        "usage": { "prompt_tokens": 10, "completion_tokens": tokens, "total_tokens": tokens + 10 },
    });
    Bytes::from(format!("data: {event}\n\n"))
}
