//! OpenAI's Responses: its answers, and what its vendor refuses.

pub(super) mod compaction;
mod search;

use std::collections::HashSet;

use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use self::search::Namespaces;
use super::{Asked, First, Reply, STUB_KEY, Search, check_data_url, is_name, text};

/// The only encrypted thought that the stand-in takes back.
const SEALED: &str = "stub-signature";

type Refusal = (StatusCode, String);

/// A stream of text and calls; before calls it thinks, tells in short what, and then searches for
/// tools if it should. Where it compacts, it does that first.
pub(super) fn frames(first: First<'_>, text: &str, calls: &[(String, Value)]) -> Vec<Bytes> {
    let search = first.search;
    let mut events = vec![json!({"type": "response.created", "response": head("in_progress")})];
    let mut output = 0;
    let mut item = |begun: &Value, pieces: &[Value], whole: &Value| {
        let about = |kind: &str, item: &Value| json!({"type": format!("response.output_item.{kind}"), "output_index": output, "item": item});
        events.push(about("added", begun));
        for piece in pieces {
            let mut piece = piece.clone();
            piece["output_index"] = json!(output);
            events.push(piece);
        }
        events.push(about("done", whole));
        output += 1;
    };
    if let Some(made) = first.compaction {
        let whole = compaction::whole(&made.summary);
        item(
            &json!({"type": "compaction", "id": whole["id"]}),
            &[],
            &whole,
        );
    }
    if !calls.is_empty() {
        let (begun, pieces, whole) = thought();
        item(&begun, &pieces, &whole);
    }
    if let Some(Search {
        query,
        found,
        server,
    }) = search
    {
        for (begun, whole) in search::items(query, found, server) {
            item(&begun, &[], &whole);
        }
    }
    if !text.is_empty() {
        let (begun, pieces, whole) = message(text);
        item(&begun, &pieces, &whole);
    }
    for (index, (name, args)) in calls.iter().enumerate() {
        let args = args.to_string();
        let (first, rest) = args.split_at(1);
        let piece =
            |piece: &str| json!({"type": "response.function_call_arguments.delta", "delta": piece});
        let done = json!({"type": "response.function_call_arguments.done", "arguments": args});
        let call = |arguments: &str| {
            let namespace = search.map(|search| format!("mcp__{}", search.server));
            json!({"type": "function_call", "id": format!("fc_stub_{index}"), "call_id": format!("call_stub_{index}"),
                "name": name, "namespace": namespace, "arguments": arguments, "status": "completed"})
        };
        item(&call(""), &[piece(first), piece(rest), done], &call(&args));
    }
    let mut response = head("completed");
    response["usage"] = json!({"input_tokens": 11, "input_tokens_details": {"cached_tokens": 5},
        "output_tokens": 7, "output_tokens_details": {"reasoning_tokens": 3}, "total_tokens": 18});
    events.push(json!({"type": "response.completed", "response": response}));
    numbered(events)
}

/// A message as it begins, its pieces, and all of it.
fn message(text: &str) -> (Value, Vec<Value>, Value) {
    let words = text.split_inclusive(' ');
    let pieces = words.map(|word| json!({"type": "response.output_text.delta", "delta": word}));
    let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
    (
        json!({"type": "message", "id": "msg_stub", "role": "assistant", "content": []}),
        pieces.collect(),
        json!({"type": "message", "id": "msg_stub", "role": "assistant", "content": content}),
    )
}

/// A thought as it begins, its pieces, and all of it.
fn thought() -> (Value, [Value; 2], Value) {
    let part = json!({"type": "response.reasoning_summary_part.added", "summary_index": 0});
    let piece = json!({"type": "response.reasoning_summary_text.delta", "delta": "I need tools"});
    let summary = json!([{"type": "summary_text", "text": "I need tools"}]);
    (
        json!({"type": "reasoning", "id": "rs_stub", "summary": []}),
        [part, piece],
        json!({"type": "reasoning", "id": "rs_stub", "summary": summary, "encrypted_content": SEALED, "status": null}),
    )
}

fn head(status: &str) -> Value {
    json!({"id": "resp_stub", "object": "response", "status": status, "error": null, "output": [], "usage": null})
}

/// A stream of text and one call that the filter or the longest answer ended.
pub(super) fn ended(tool: &str, args: &str, is_filtered: bool) -> Reply {
    let reason = if is_filtered {
        "content_filter"
    } else {
        "max_output_tokens"
    };
    let added = |index: u64, item: Value| json!({"type": "response.output_item.added", "output_index": index, "item": item});
    let delta = |kind: &str, index: u64, delta: &str| json!({"type": format!("response.{kind}.delta"), "output_index": index, "delta": delta});
    let message = json!({"type": "message", "role": "assistant", "content": []});
    let call = json!({"type": "function_call", "id": "fc_stub_0", "call_id": "call_stub_0", "name": tool, "arguments": ""});
    let mut response = head("incomplete");
    response["incomplete_details"] = json!({ "reason": reason });
    let frames = numbered(vec![
        added(0, message),
        delta("output_text", 0, "I begin"),
        added(1, call),
        delta("function_call_arguments", 1, args),
        json!({"type": "response.incomplete", "response": response}),
    ]);
    Reply::raw("text/event-stream", frames)
}

/// Events as the vendor frames them.
fn numbered(events: Vec<Value>) -> Vec<Bytes> {
    let frame = |(number, mut event): (usize, Value)| {
        event["sequence_number"] = json!(number);
        let name = text(&event, "/type").unwrap_or_default();
        Bytes::from(format!("event: {name}\ndata: {event}\n\n"))
    };
    events.into_iter().enumerate().map(frame).collect()
}

/// An error as the vendor spells it.
pub(super) fn error(kind: &str, code: Option<&str>, message: &str) -> Value {
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

pub(super) fn refuse(status: StatusCode, problem: &str) -> Response {
    let code = match status {
        StatusCode::UNAUTHORIZED => Some("invalid_api_key"),
        StatusCode::NOT_FOUND => Some("model_not_found"),
        _ => None,
    };
    let error = error("invalid_request_error", code, problem);
    (status, axum::Json(error)).into_response()
}

/// What the vendor refuses.
pub(super) fn check(asked: &Asked) -> Result<(), Refusal> {
    check_head(asked)?;
    let model = text(&asked.body, "/model").unwrap_or_default();
    let has = ["gpt-4", "gpt-5", "gpt-6", "o3"];
    if !has.iter().any(|start| model.starts_with(start)) {
        let problem = format!("The model '{model}' does not exist");
        return Err((StatusCode::NOT_FOUND, problem));
    }
    check_body(&asked.body, model).map_err(|problem| (StatusCode::BAD_REQUEST, problem))
}

/// The key.
pub(super) fn check_head(asked: &Asked) -> Result<(), Refusal> {
    let given = asked.headers.get("authorization");
    let given = given.map(|value| value.to_str().unwrap());
    if given == Some(&format!("Bearer {STUB_KEY}")) {
        return Ok(());
    }
    Err((
        StatusCode::UNAUTHORIZED,
        "Incorrect API key provided".to_owned(),
    ))
}

fn check_body(body: &Value, model: &str) -> Result<(), String> {
    check_fields(
        body,
        &[
            "model",
            "instructions",
            "tools",
            "tool_choice",
            "input",
            "reasoning",
            "temperature",
            "max_output_tokens",
            "include",
            "prompt_cache_key",
            "context_management",
            "store",
            "stream",
        ],
    )?;
    if body["stream"] != json!(true) || body["store"] != json!(false) {
        return Err("this stand-in streams, and keeps nothing".to_owned());
    }
    if text(body, "/instructions").is_some_and(str::is_empty) {
        return Err("Invalid 'instructions': empty string".to_owned());
    }
    let limit = body.get("max_output_tokens");
    if limit.is_some_and(|limit| limit.as_u64().is_none_or(|limit| limit < 16)) {
        return Err("Invalid 'max_output_tokens': integer below minimum value".to_owned());
    }
    let key = body.get("prompt_cache_key");
    if key.is_some_and(|key| {
        key.as_str()
            .is_none_or(|key| key.is_empty() || key.len() > 64)
    }) {
        return Err("Invalid 'prompt_cache_key'".to_owned());
    }
    compaction::check(body)?;
    check_thinking(body, model)?;
    check_tools(body, model)?;
    check_input(body, model)
}

/// Models that do not think, and what of those that do is refused.
fn check_thinking(body: &Value, model: &str) -> Result<(), String> {
    let is_plain = model.starts_with("gpt-4");
    if is_plain && body.get("include").is_some() {
        return Err("Encrypted content is not supported with this model.".to_owned());
    }
    let include = json!(["reasoning.encrypted_content"]);
    if body.get("include").is_some_and(|given| *given != include) {
        return Err("Invalid value for 'include'".to_owned());
    }
    if let Some(reasoning) = body.get("reasoning") {
        if is_plain {
            return Err("Unsupported parameter: 'reasoning.effort'".to_owned());
        }
        check_fields(reasoning, &["effort", "summary"])?;
        let efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
        let is_known = |word: &Value| word.as_str().is_some_and(|word| efforts.contains(&word));
        if reasoning.get("effort").is_some_and(|word| !is_known(word)) {
            return Err("Invalid value for 'reasoning.effort'".to_owned());
        }
    }
    let only_default = model.starts_with("o3") || model == "gpt-5";
    if only_default && body.get("temperature").is_some() {
        return Err("Unsupported parameter: 'temperature'".to_owned());
    }
    Ok(())
}

fn check_tools(body: &Value, model: &str) -> Result<(), String> {
    let Some(tools) = body.get("tools") else {
        return match body.get("tool_choice") {
            Some(_) => Err("Tool choice is set but no tools are given".to_owned()),
            None => Ok(()),
        };
    };
    let tools = tools.as_array().filter(|tools| !tools.is_empty());
    let mut names = HashSet::new();
    for tool in tools.ok_or("'tools' is empty")? {
        let name = text(tool, "/name").unwrap_or_default();
        if !search::check_tool(tool, model)? {
            check_function(tool)?;
            if tool.get("defer_loading").is_some() {
                return Err(format!("tool `{name}` is deferred outside of a namespace"));
            }
        }
        if !names.insert(name) {
            return Err(format!("tool `{name}` stands twice"));
        }
    }
    Ok(())
}

fn check_function(tool: &Value) -> Result<(), String> {
    check_fields(
        tool,
        &[
            "type",
            "name",
            "description",
            "parameters",
            "strict",
            "defer_loading",
        ],
    )?;
    let name = text(tool, "/name").unwrap_or_default();
    if text(tool, "/type") != Some("function") || !is_name(name) {
        return Err(format!("tool `{name}` has a wrong type or name"));
    }
    let schema = &tool["parameters"];
    if text(schema, "/type") != Some("object") || !schema["properties"].is_object() {
        return Err(format!(
            "tool `{name}` has no object schema with properties"
        ));
    }
    // Left out it would mean true.
    let is_strict = tool["strict"].as_bool();
    if is_strict.ok_or_else(|| format!("tool `{name}` does not say how strict it is"))?
        && !is_closed(schema)
    {
        return Err(format!("Invalid schema for function '{name}'"));
    }
    Ok(())
}

/// The parts of a message or of a result.
fn check_parts(parts: &Value) -> Result<(), String> {
    let parts = parts.as_array().filter(|parts| !parts.is_empty());
    for part in parts.ok_or("a content without parts")? {
        match text(part, "/type").unwrap_or_default() {
            "input_text" => {
                check_fields(part, &["type", "text"])?;
                text(part, "/text").ok_or("a part without a text")?;
            }
            "input_image" => {
                check_fields(part, &["type", "image_url"])?;
                let url = text(part, "/image_url").unwrap_or_default();
                check_data_url(url, &["image/png", "image/jpeg"])?;
            }
            "input_file" => {
                check_fields(part, &["type", "filename", "file_data"])?;
                text(part, "/filename").ok_or("a file without a name")?;
                let url = text(part, "/file_data").unwrap_or_default();
                check_data_url(url, &["application/pdf"])?;
            }
            other => return Err(format!("unknown part `{other}`")),
        }
    }
    Ok(())
}

/// Whether an object holds all of its properties and no others.
fn is_closed(schema: &Value) -> bool {
    let properties = schema["properties"].as_object().unwrap();
    let required = schema["required"].as_array();
    schema["additionalProperties"] == json!(false)
        && required.is_some_and(|required| {
            required.len() == properties.len()
                && properties
                    .keys()
                    .all(|name| required.contains(&json!(name)))
        })
}

/// What the items before left open.
#[derive(Default)]
struct Open<'a> {
    /// Calls without an output.
    calls: Vec<&'a str>,
    /// Outputs have begun, so that nothing else may come before they are whole.
    is_answering: bool,
    /// A thought that nothing came of so far.
    thought: Option<&'a str>,
    seen: HashSet<&'a str>,
    namespaces: Namespaces,
    /// A search that has not said what it loaded.
    is_searching: bool,
}

fn check_input(body: &Value, model: &str) -> Result<(), String> {
    let items = body["input"].as_array().filter(|items| !items.is_empty());
    let mut open = Open {
        namespaces: Namespaces::of(body),
        ..Open::default()
    };
    for item in items.ok_or("'input' is empty")? {
        let kind = text(item, "/type").unwrap_or_default();
        if open.is_searching != (kind == "tool_search_output") {
            return Err("a search is followed by what it loaded".to_owned());
        }
        match kind {
            "message" => open.message(item)?,
            "tool_search_call" => open.search(item)?,
            "tool_search_output" => {
                open.namespaces.check_output(item)?;
                open.is_searching = false;
            }
            "reasoning" if model.starts_with("gpt-4") => {
                return Err(
                    "Reasoning input items can only be provided to a reasoning model".to_owned(),
                );
            }
            "compaction" => open.compaction(item)?,
            "reasoning" => open.reasoning(item)?,
            "function_call" => open.call(item)?,
            "function_call_output" => open.output(item)?,
            other => return Err(format!("Invalid value: '{other}' is no type of an item")),
        }
    }
    open.is_whole()
}

impl<'a> Open<'a> {
    fn message(&mut self, item: &Value) -> Result<(), String> {
        check_fields(item, &["type", "role", "content", "phase"])?;
        if item["content"].is_array() {
            check_parts(&item["content"])?;
        } else if text(item, "/content").is_none_or(|content| content.trim().is_empty()) {
            return Err("a message without content".to_owned());
        }
        match text(item, "/role") {
            Some("assistant") if !self.is_answering => {
                self.thought = None;
                Ok(())
            }
            Some("user") if item.get("phase").is_none() => self.is_whole(),
            Some("assistant") => Err(self.unanswered()),
            other => Err(format!("{other:?} is no role, or has no phase")),
        }
    }

    /// It stands for what came before, which may be missing; what is there has to be whole.
    fn compaction(&mut self, item: &Value) -> Result<(), String> {
        self.is_whole()?;
        compaction::check_item(item)
    }

    fn reasoning(&mut self, item: &'a Value) -> Result<(), String> {
        check_fields(
            item,
            &["type", "id", "summary", "content", "encrypted_content"],
        )?;
        let id = text(item, "/id").filter(|id| !id.is_empty());
        if self.is_answering {
            return Err(self.unanswered());
        }
        if text(item, "/encrypted_content") != Some(SEALED) || !item["summary"].is_array() {
            return Err(format!(
                "The encrypted content for item {id:?} could not be verified."
            ));
        }
        self.thought = Some(id.ok_or("a reasoning item without an id")?);
        Ok(())
    }

    fn call(&mut self, item: &'a Value) -> Result<(), String> {
        check_fields(item, &["type", "call_id", "name", "namespace", "arguments"])?;
        self.namespaces.check_call(item)?;
        if self.is_answering {
            return Err(self.unanswered());
        }
        self.thought = None;
        let id = text(item, "/call_id").unwrap_or_default();
        if !(1..=64).contains(&id.len()) || !self.seen.insert(id) {
            return Err(format!("the call id `{id}` is none or stands twice"));
        }
        if !is_name(text(item, "/name").unwrap_or_default()) {
            return Err(format!("the call `{id}` has no name that fits"));
        }
        let arguments = text(item, "/arguments").ok_or("arguments that are no string")?;
        let arguments: Result<Value, _> = serde_json::from_str(arguments);
        if !arguments.is_ok_and(|arguments| arguments.is_object()) {
            return Err(format!("the arguments of `{id}` are no JSON object"));
        }
        self.calls.push(id);
        Ok(())
    }

    fn search(&mut self, item: &Value) -> Result<(), String> {
        if self.is_answering {
            return Err(self.unanswered());
        }
        search::check_call(item)?;
        self.thought = None;
        self.is_searching = true;
        Ok(())
    }

    fn output(&mut self, item: &Value) -> Result<(), String> {
        check_fields(item, &["type", "call_id", "output"])?;
        if item["output"].is_array() {
            check_parts(&item["output"])?;
        } else {
            text(item, "/output").ok_or("an output without a text")?;
        }
        let id = text(item, "/call_id").unwrap_or_default();
        let at = self.calls.iter().position(|call| *call == id);
        let at = at.ok_or_else(|| {
            format!("No tool call found for function call output with call_id {id}.")
        })?;
        self.calls.remove(at);
        self.is_answering = !self.calls.is_empty();
        Ok(())
    }

    /// Before people speak, and at the end, nothing may be open.
    fn is_whole(&self) -> Result<(), String> {
        if let Some(id) = self.thought {
            return Err(format!(
                "Item '{id}' of type 'reasoning' was provided without its required following item."
            ));
        }
        if self.calls.is_empty() {
            return Ok(());
        }
        Err(self.unanswered())
    }

    fn unanswered(&self) -> String {
        format!("No tool output found for function call {:?}.", self.calls)
    }
}

fn check_fields(value: &Value, known: &[&str]) -> Result<(), String> {
    let object = value.as_object().ok_or("no JSON object")?;
    let unknown = object.keys().find(|name| !known.contains(&name.as_str()));
    match unknown {
        Some(name) => Err(format!("Unknown parameter: '{name}'.")),
        None => Ok(()),
    }
}
