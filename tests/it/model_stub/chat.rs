//! Chat Completions: its answers, and what its vendor refuses.

use std::collections::HashSet;

use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::{check_data_url, is_name, text};

/// A stream of text and calls.
pub(super) fn frames(text: &str, calls: &[(String, Value)]) -> Vec<Bytes> {
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
    frames
}

pub(super) fn refuse(status: StatusCode, problem: &str) -> Response {
    let error = json!({"error": {"message": problem, "type": "invalid_request_error"}});
    (status, axum::Json(error)).into_response()
}

/// What the vendor refuses.
pub(super) fn check(body: &Value) -> Result<(), String> {
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
        "reasoning_effort",
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
    let efforts = ["none", "minimal", "low", "medium", "high", "xhigh"];
    let is_known = |word: &Value| word.as_str().is_some_and(|word| efforts.contains(&word));
    if body
        .get("reasoning_effort")
        .is_some_and(|word| !is_known(word))
    {
        return Err("Invalid value: 'reasoning_effort'".to_owned());
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
    let efforts = ["none", "low", "medium", "high"];
    if let Some(effort) = body.get("reasoning_effort")
        && effort
            .as_str()
            .is_none_or(|effort| !efforts.contains(&effort))
    {
        return Err(format!("invalid `reasoning_effort` {effort}"));
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
            "user" if message["content"].is_array() => check_parts(&message["content"])?,
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

fn check_parts(parts: &Value) -> Result<(), String> {
    let parts = parts.as_array().filter(|parts| !parts.is_empty());
    for part in parts.ok_or("a user message without parts")? {
        match text(part, "/type").unwrap_or_default() {
            "text" => {
                text(part, "/text").ok_or("a part without a text")?;
            }
            "image_url" => {
                let url = text(part, "/image_url/url").unwrap_or_default();
                check_data_url(url, &["image/png", "image/jpeg"])?;
            }
            "file" => {
                text(part, "/file/filename").ok_or("a file without a name")?;
                let url = text(part, "/file/file_data").unwrap_or_default();
                check_data_url(url, &["application/pdf"])?;
            }
            other => return Err(format!("unknown part `{other}`")),
        }
    }
    Ok(())
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
