//! Hosts that speak Chat Completions in their own way, and refuse what others take, in their words.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::text;

/// Whose Chat Completions a stand-in speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChatHost {
    Mistral,
    Cohere,
}

impl ChatHost {
    pub(crate) const ALL: [Self; 2] = [Self::Mistral, Self::Cohere];

    /// How the settings name it.
    pub(crate) fn provider(self) -> &'static str {
        match self {
            Self::Mistral => "mistral",
            Self::Cohere => "cohere",
        }
    }

    /// What it refuses of a request that Chat Completions allow.
    pub(super) fn check(self, body: &Value) -> Option<(Response, String)> {
        match self {
            Self::Mistral => mistral(body),
            Self::Cohere => cohere(body),
        }
    }
}

fn messages(body: &Value) -> impl Iterator<Item = &Value> + Clone {
    body["messages"].as_array().into_iter().flatten()
}

fn role(message: &Value) -> &str {
    text(message, "/role").unwrap_or_default()
}

/// Mistral's own refusals, as they were seen from July 2024 to April 2026.
fn mistral(body: &Value) -> Option<(Response, String)> {
    let fields = ["max_completion_tokens", "stream_options"];
    let foreign = fields.into_iter().find(|name| body.get(*name).is_some());
    let of_messages = ["reasoning_content", "reasoning", "reasoning_details"];
    let foreign = foreign.or_else(|| {
        let mut all = of_messages.into_iter();
        all.find(|name| messages(body).any(|message| message.get(*name).is_some()))
    });
    if let Some(name) = foreign {
        let detail = json!([{"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}]);
        let words = json!({"object": "error", "message": {"detail": detail}, "type": "invalid_request_error", "param": null, "code": null});
        return Some(answer(StatusCode::UNPROCESSABLE_ENTITY, words));
    }
    let refuse = |message: String, kind: &str, code: &str| {
        let words = json!({"object": "error", "message": message, "type": kind, "param": null, "code": code});
        Some(answer(StatusCode::BAD_REQUEST, words))
    };
    let mut ids = messages(body).flat_map(|message| {
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        calls.filter_map(|call| text(call, "/id"))
    });
    let is_fit = |id: &&str| id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric());
    if let Some(id) = ids.find(|id| !is_fit(id)) {
        let words = format!("Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9.");
        return refuse(words, "invalid_function_call", "3280");
    }
    let order = "invalid_request_message_order";
    let mut pairs = messages(body).zip(messages(body).skip(1));
    if pairs.any(|(before, after)| role(before) == "tool" && role(after) == "user") {
        return refuse(
            "Unexpected role 'user' after role 'tool'".to_owned(),
            order,
            "3230",
        );
    }
    let last = messages(body).last().map(role).unwrap_or_default();
    if last == "assistant" {
        let words = "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant";
        return refuse(words.to_owned(), order, "3230");
    }
    None
}

/// What Cohere's Compatibility API does not list as supported (read November 2026).
fn cohere(body: &Value) -> Option<(Response, String)> {
    let refuse = |words: String| {
        Some(answer(
            StatusCode::UNPROCESSABLE_ENTITY,
            json!({ "message": words }),
        ))
    };
    let fields = [
        "tool_choice",
        "max_completion_tokens",
        "parallel_tool_calls",
    ];
    if let Some(name) = fields.into_iter().find(|name| body.get(*name).is_some()) {
        return refuse(format!("unsupported parameter: {name}"));
    }
    let effort = text(body, "/reasoning_effort");
    if effort.is_some_and(|effort| !["none", "high"].contains(&effort)) {
        return refuse("reasoning_effort must be one of none, high".to_owned());
    }
    let is_empty = |message: &Value| {
        let content = text(message, "/content").unwrap_or_default();
        role(message) == "tool" && content.trim().is_empty()
    };
    if messages(body).any(is_empty) {
        return refuse("invalid request: tool message content must not be empty".to_owned());
    }
    None
}

/// The answer, and its words for the test.
fn answer(status: StatusCode, words: Value) -> (Response, String) {
    let said = words.to_string();
    ((status, axum::Json(words)).into_response(), said)
}
