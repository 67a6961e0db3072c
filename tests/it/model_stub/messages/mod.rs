//! Anthropic Messages: its answers, and what its vendor refuses.

pub(super) mod compaction;
mod search;
mod thinking;

use std::collections::HashSet;

use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::{Asked, First, STUB_KEY, Search, check_base64, is_name, text};

/// The only signature that the stand-in takes back.
const SIGNATURE: &str = "stub-signature";

type Refusal = (StatusCode, String);

/// A stream of text and calls; before calls it thinks, and then it searches for tools if it should. Where it
/// compacts, it does that first.
pub(super) fn frames(first: First<'_>, text: &str, calls: &[(String, Value)]) -> Vec<Bytes> {
    let usage = json!({"input_tokens": 4, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 5, "output_tokens": 1});
    let message = json!({"id": "msg_stub", "type": "message", "role": "assistant", "content": [], "stop_reason": null, "usage": usage});
    let mut events = vec![
        json!({"type": "message_start", "message": message}),
        json!({"type": "ping"}),
    ];
    let mut blocks = Vec::new();
    blocks.extend(first.compaction.map(compaction::block));
    if !calls.is_empty() {
        blocks.push((
            json!({"type": "thinking", "thinking": "", "signature": ""}),
            vec![
                json!({"type": "thinking_delta", "thinking": "I need tools"}),
                json!({"type": "signature_delta", "signature": SIGNATURE}),
            ],
        ));
    }
    if let Some(Search { query, found, .. }) = first.search {
        blocks.extend(search::blocks(query, found));
    }
    if !text.is_empty() {
        let words = text.split_inclusive(' ');
        let deltas = words.map(|word| json!({"type": "text_delta", "text": word}));
        blocks.push((json!({"type": "text", "text": ""}), deltas.collect()));
    }
    for (index, (name, args)) in calls.iter().enumerate() {
        let args = args.to_string();
        let (head, tail) = args.split_at(1);
        let pieces = ["", head, tail];
        let deltas = pieces.map(|json| json!({"type": "input_json_delta", "partial_json": json}));
        let id = format!("toolu_stub_{index}");
        let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        blocks.push((block, deltas.to_vec()));
    }
    for (index, (block, deltas)) in blocks.into_iter().enumerate() {
        events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        events.extend(
            deltas.iter().map(
                |delta| json!({"type": "content_block_delta", "index": index, "delta": delta}),
            ),
        );
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let reason = if calls.is_empty() {
        "end_turn"
    } else {
        "tool_use"
    };
    let delta = json!({"stop_reason": reason, "stop_sequence": null});
    let usage = first.compaction.map(compaction::usage);
    let usage = usage.unwrap_or_else(|| json!({"output_tokens": 7}));
    events.push(json!({"type": "message_delta", "delta": delta, "usage": usage}));
    events.push(json!({"type": "message_stop"}));
    let frame = |event: &Value| {
        let name = text_of(event, "/type");
        Bytes::from(format!("event: {name}\ndata: {event}\n\n"))
    };
    events.iter().map(frame).collect()
}

/// An error as the vendor spells it.
pub(super) fn error(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_stub"})
}

pub(super) fn refuse(status: StatusCode, problem: &str) -> Response {
    let kind = match status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::NOT_FOUND => "not_found_error",
        _ => "invalid_request_error",
    };
    (status, axum::Json(error(kind, problem))).into_response()
}

/// What the vendor refuses.
pub(super) fn check(asked: &Asked) -> Result<(), Refusal> {
    check_head(asked)?;
    let body = &asked.body;
    let model = text_of(body, "/model");
    if !model.is_empty() && !model.starts_with("claude-") {
        return Err((StatusCode::NOT_FOUND, format!("model: {model}")));
    }
    let beta = compaction::check(asked).and_then(|()| check_body(body));
    beta.map_err(|problem| (StatusCode::BAD_REQUEST, problem))
}

/// The version and the key.
pub(super) fn check_head(asked: &Asked) -> Result<(), Refusal> {
    let header = |name: &str| asked.headers.get(name).map(|value| value.to_str().unwrap());
    if header("x-api-key") != Some(STUB_KEY) {
        return Err((StatusCode::UNAUTHORIZED, "invalid x-api-key".to_owned()));
    }
    if header("anthropic-version") != Some("2023-06-01") {
        let problem = "anthropic-version: header is required".to_owned();
        return Err((StatusCode::BAD_REQUEST, problem));
    }
    Ok(())
}

fn check_body(body: &Value) -> Result<(), String> {
    let known = [
        "model",
        "max_tokens",
        "system",
        "messages",
        "tools",
        "tool_choice",
        "temperature",
        "thinking",
        "output_config",
        "context_management",
        "stream",
    ];
    let object = body.as_object().ok_or("the body is no JSON object")?;
    if let Some(name) = object.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("{name}: Extra inputs are not permitted"));
    }
    for name in ["model", "max_tokens", "messages"] {
        if !object.contains_key(name) {
            return Err(format!("{name}: Field required"));
        }
    }
    if body["max_tokens"].as_u64().is_none_or(|n| n == 0) {
        return Err("max_tokens: must be greater than or equal to 1".to_owned());
    }
    if body["stream"] != json!(true) {
        return Err("`stream` is not true".to_owned());
    }
    check_cache_marks(&body.to_string())?;
    thinking::check(body)?;
    let system = body["system"].as_array().into_iter().flatten();
    for block in system {
        check_text(block)?;
    }
    check_tools(body)?;
    check_messages(body)?;
    search::check_messages(body)
}

fn check_cache_marks(body: &str) -> Result<(), String> {
    let marks = body.matches("\"cache_control\":").count();
    if marks > 4 {
        return Err("A maximum of 4 blocks with cache_control may be provided".to_owned());
    }
    let known = [
        r#""cache_control":{"type":"ephemeral"}"#,
        r#""cache_control":{"ttl":"5m","type":"ephemeral"}"#,
        r#""cache_control":{"ttl":"1h","type":"ephemeral"}"#,
    ];
    let known = known.map(|mark| body.matches(mark).count());
    if known.iter().sum::<usize>() != marks {
        return Err("cache_control.ephemeral.ttl: Input should be '5m' or '1h'".to_owned());
    }
    Ok(())
}

fn check_tools(body: &Value) -> Result<(), String> {
    let Some(tools) = body.get("tools") else {
        return match body.get("tool_choice") {
            Some(_) => Err("tool_choice may only be specified while providing tools".to_owned()),
            None => Ok(()),
        };
    };
    let tools = tools.as_array().filter(|tools| !tools.is_empty());
    let mut names = HashSet::new();
    let tools = tools.map(Vec::as_slice);
    let model = text_of(body, "/model");
    for tool in tools.ok_or("tools: empty")? {
        let name = text_of(tool, "/name");
        if search::is_search(tool, model)? {
            names.insert(name);
            continue;
        }
        if !is_name(name) || !names.insert(name) {
            return Err(format!("tools: `{name}` is no name or stands twice"));
        }
        if text_of(tool, "/input_schema/type") != "object" {
            return Err(format!("tools.{name}.input_schema.type: Field required"));
        }
    }
    search::check_tools(tools.unwrap_or_default())
}

fn check_messages(body: &Value) -> Result<(), String> {
    let messages = body["messages"].as_array();
    let messages = messages.filter(|messages| !messages.is_empty());
    let mut expected = "user";
    let mut waiting: HashSet<String> = HashSet::new();
    for message in messages.ok_or("messages: at least one message is required")? {
        let role = text_of(message, "/role");
        if role != expected {
            return Err(format!("messages: roles must alternate, not `{role}`"));
        }
        let content = message["content"].as_array().filter(|c| !c.is_empty());
        let content = content.ok_or("messages: content must be non-empty")?;
        if role == "user" {
            check_user(content, &mut waiting)?;
            expected = "assistant";
        } else {
            check_assistant(content, &mut waiting)?;
            expected = "user";
        }
    }
    // Only an answer that the vendor itself paused goes on.
    let last = body["messages"].as_array().unwrap().last().unwrap();
    let content = last["content"].as_array().unwrap();
    let is_paused = content.last().unwrap()["type"] == "server_tool_use";
    if expected == "user" && !is_paused {
        return Err("This model does not support assistant message prefill".to_owned());
    }
    thinking::check_turn(body)
}

fn check_user(content: &[Value], waiting: &mut HashSet<String>) -> Result<(), String> {
    let mut is_text = false;
    for block in content {
        match text_of(block, "/type") {
            "tool_result" => {
                let id = text_of(block, "/tool_use_id");
                if is_text || !waiting.remove(id) {
                    return Err(format!("unexpected `tool_use_id` found: {id}"));
                }
                if text(block, "/content").is_some_and(|text| text.trim().is_empty()) {
                    return Err("text content blocks must be non-empty".to_owned());
                }
                for inner in block["content"].as_array().into_iter().flatten() {
                    match text_of(inner, "/type") {
                        "text" => check_text(inner)?,
                        "image" | "document" => check_source(inner)?,
                        other => return Err(format!("a {other} block of a result")),
                    }
                }
            }
            "text" => {
                is_text = true;
                check_text(block)?;
            }
            "image" | "document" => {
                is_text = true;
                check_source(block)?;
            }
            other => return Err(format!("a {other} block of a user")),
        }
    }
    if waiting.is_empty() {
        return Ok(());
    }
    Err(format!(
        "`tool_use` ids were found without `tool_result` blocks immediately after: {waiting:?}"
    ))
}

fn check_source(block: &Value) -> Result<(), String> {
    let kinds: &[&str] = match text_of(block, "/type") {
        "image" => &["image/png", "image/jpeg", "image/gif", "image/webp"],
        _ => &["application/pdf"],
    };
    let kind = text_of(block, "/source/media_type");
    if text_of(block, "/source/type") != "base64" || !kinds.contains(&kind) {
        return Err(format!(
            "source.base64.media_type: Input should be one of {kinds:?}"
        ));
    }
    check_base64(text(block, "/source/data"))
}

fn check_assistant(content: &[Value], waiting: &mut HashSet<String>) -> Result<(), String> {
    for block in content {
        match text_of(block, "/type") {
            "text" => check_text(block)?,
            "thinking" if text_of(block, "/signature") == SIGNATURE => {}
            "thinking" => return Err("Invalid `signature` in `thinking` block".to_owned()),
            "redacted_thinking" if text(block, "/data").is_some() => {}
            "server_tool_use" if block["input"].is_object() => {}
            "compaction" if compaction::is_own(block, content) => {}
            "compaction" => return Err("a compaction block that was changed or moved".to_owned()),
            "tool_search_tool_result" if block["content"].is_object() => {}
            "tool_use" => {
                let id = text_of(block, "/id");
                let is_id = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                if id.is_empty() || !id.chars().all(is_id) || !waiting.insert(id.to_owned()) {
                    return Err(format!("tool_use.id: `{id}` is no id or stands twice"));
                }
                if !is_name(text_of(block, "/name")) || !block["input"].is_object() {
                    return Err(format!("tool_use `{id}` has a wrong name or input"));
                }
            }
            other => return Err(format!("a {other} block of the assistant")),
        }
    }
    Ok(())
}

fn check_text(block: &Value) -> Result<(), String> {
    if text_of(block, "/text").trim().is_empty() {
        return Err("text content blocks must contain non-whitespace text".to_owned());
    }
    Ok(())
}

fn text_of<'a>(value: &'a Value, pointer: &str) -> &'a str {
    text(value, pointer).unwrap_or_default()
}
