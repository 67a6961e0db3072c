//! Gemini `generateContent`: its answers, and what its vendor refuses.

use std::collections::HashSet;

use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::{Asked, STUB_KEY, check_base64, is_name, text};

/// The signature that comes with the first call of an answer, and must come back with it.
const SIGNATURE: &str = "stub-signature";

type Refusal = (StatusCode, String);

/// A stream of text and calls.
pub(super) fn frames(text: &str, calls: &[(String, Value)]) -> Vec<Bytes> {
    let words = text.split_inclusive(' ');
    let mut parts: Vec<Value> = words.map(|word| json!({"text": word})).collect();
    for (index, (name, args)) in calls.iter().enumerate() {
        let mut part = json!({"functionCall": {"name": name, "args": args}});
        if index == 0 {
            part["thoughtSignature"] = json!(SIGNATURE);
        }
        parts.push(part);
    }
    let usage = json!({"promptTokenCount": 11, "candidatesTokenCount": 4, "thoughtsTokenCount": 3,
        "cachedContentTokenCount": 5, "totalTokenCount": 18});
    let chunk = |parts: Value, reason: Option<&str>| {
        let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
        if let Some(reason) = reason {
            candidate["finishReason"] = json!(reason);
        }
        json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "stub"})
    };
    let mut chunks: Vec<Value> = parts
        .iter()
        .map(|part| chunk(json!([part]), None))
        .collect();
    chunks.push(chunk(json!([{"text": ""}]), Some("STOP")));
    let frame = |chunk: &Value| Bytes::from(format!("data: {chunk}\r\n\r\n"));
    chunks.iter().map(frame).collect()
}

/// An error as the vendor spells it.
pub(super) fn error(code: u16, status: &str, message: &str) -> Value {
    json!({"error": {"code": code, "message": message, "status": status}})
}

pub(super) fn refuse(status: StatusCode, problem: &str) -> Response {
    let name = if status == StatusCode::NOT_FOUND {
        "NOT_FOUND"
    } else {
        "INVALID_ARGUMENT"
    };
    let mut error = error(status.as_u16(), name, problem);
    if problem.starts_with("API key") {
        error["error"]["details"] = json!([{
            "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID",
        }]);
    }
    (status, axum::Json(error)).into_response()
}

/// What the vendor refuses.
pub(super) fn check(asked: &Asked) -> Result<(), Refusal> {
    check_head(asked)?;
    let model = asked.uri.path().rsplit('/').next().unwrap_or_default();
    let Some(model) = model.strip_suffix(":streamGenerateContent") else {
        return Err((StatusCode::NOT_FOUND, "no such method".to_owned()));
    };
    if !model.starts_with("gemini-") {
        let problem = format!("models/{model} is not found for API version v1beta");
        return Err((StatusCode::NOT_FOUND, problem));
    }
    if asked.uri.query() != Some("alt=sse") {
        return Err((StatusCode::BAD_REQUEST, "not `alt=sse`".to_owned()));
    }
    check_body(&asked.body, model).map_err(|problem| (StatusCode::BAD_REQUEST, problem))
}

/// The key, which must not stand in the address.
pub(super) fn check_head(asked: &Asked) -> Result<(), Refusal> {
    let key = asked.headers.get("x-goog-api-key");
    let in_query = asked
        .uri
        .query()
        .is_some_and(|query| query.contains("key="));
    if in_query || key.is_none_or(|key| key != STUB_KEY) {
        let problem = "API key not valid. Please pass a valid API key.".to_owned();
        return Err((StatusCode::BAD_REQUEST, problem));
    }
    Ok(())
}

fn check_body(body: &Value, model: &str) -> Result<(), String> {
    let needs_signatures = model.starts_with("gemini-3");
    let known = [
        "systemInstruction",
        "contents",
        "tools",
        "toolConfig",
        "generationConfig",
    ];
    check_names("the request", body, &known)?;
    if let Some(config) = body.get("generationConfig") {
        check_names(
            "generation_config",
            config,
            &["temperature", "maxOutputTokens", "thinkingConfig"],
        )?;
        if let Some(thinking) = config.get("thinkingConfig") {
            check_thinking(thinking, model)?;
        }
        if config
            .get("maxOutputTokens")
            .is_some_and(|n| n.as_u64().is_none_or(|n| n == 0))
        {
            return Err("max_output_tokens must be positive".to_owned());
        }
    }
    if let Some(system) = body.get("systemInstruction") {
        check_names("system_instruction", system, &["parts"])?;
        check_part(&system["parts"][0])?;
    }
    check_tools(body)?;
    check_contents(body)?;
    if needs_signatures {
        check_signatures(body)?;
    }
    Ok(())
}

/// A level from the third generation on, a budget for the second, nothing before.
fn check_thinking(thinking: &Value, model: &str) -> Result<(), String> {
    let known = ["includeThoughts", "thinkingBudget", "thinkingLevel"];
    check_names("generation_config.thinking_config", thinking, &known)?;
    match (
        thinking.get("thinkingLevel"),
        thinking.get("thinkingBudget"),
    ) {
        (Some(_), Some(_)) => {
            Err("thinking_budget and thinking_level are not supported together.".to_owned())
        }
        (Some(level), None) => {
            let is_known = ["minimal", "low", "medium", "high"]
                .map(Value::from)
                .contains(level);
            if !model.starts_with("gemini-3") || !is_known {
                return Err("Thinking level is not supported for this model.".to_owned());
            }
            let refuses = level == "minimal" && !model.contains("flash-lite");
            if refuses || level == "medium" && model.starts_with("gemini-3-pro") {
                let level = level.as_str().unwrap().to_uppercase();
                return Err(format!(
                    "Thinking level {level} is not supported for this model."
                ));
            }
            Ok(())
        }
        (None, Some(budget)) => {
            if !model.starts_with("gemini-2.5") {
                return Err("Thinking budget is not supported for this model.".to_owned());
            }
            if *budget == 0 && model.contains("pro") {
                let words = "Budget 0 is invalid. This model only works in thinking mode.";
                return Err(words.to_owned());
            }
            Ok(())
        }
        (None, None) => Ok(()),
    }
}

fn check_names(place: &str, value: &Value, known: &[&str]) -> Result<(), String> {
    let object = value.as_object().ok_or(format!("{place} is no object"))?;
    match object.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(format!(
            "Invalid JSON payload received. Unknown name \"{name}\" at '{place}': Cannot find field."
        )),
        None => Ok(()),
    }
}

fn check_tools(body: &Value) -> Result<(), String> {
    let Some(tools) = body.get("tools") else {
        return Ok(());
    };
    let declared = tools[0]["functionDeclarations"].as_array();
    let declared = declared.filter(|declared| !declared.is_empty());
    let mut names = HashSet::new();
    for tool in declared.ok_or("tools: empty")? {
        check_names(
            "function_declarations",
            tool,
            &["name", "description", "parameters"],
        )?;
        let name = text(tool, "/name").unwrap_or_default();
        let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
        if !is_name(name) || !name.starts_with(is_first) || !names.insert(name) {
            return Err(format!(
                "Invalid function name. Must start with a letter or an underscore: {name}"
            ));
        }
        if let Some(parameters) = tool.get("parameters") {
            if parameters["type"] != "object" {
                return Err(format!("`{name}`: parameters are no object"));
            }
            check_schema(parameters)?;
        }
    }
    Ok(())
}

fn check_schema(schema: &Value) -> Result<(), String> {
    let known = [
        "type",
        "format",
        "description",
        "nullable",
        "enum",
        "items",
        "minItems",
        "maxItems",
        "properties",
        "required",
        "minLength",
        "maxLength",
        "pattern",
        "minimum",
        "maximum",
        "anyOf",
    ];
    check_names("schema", schema, &known)?;
    let object = schema.as_object().unwrap();
    if let Some(variants) = object.get("anyOf") {
        if object.len() > 1 {
            return Err("when using any_of, it must be the only field set".to_owned());
        }
        return variants
            .as_array()
            .unwrap()
            .iter()
            .try_for_each(check_schema);
    }
    let kind = text(schema, "/type").ok_or("schema: type must be specified")?;
    if !["object", "array", "string", "number", "integer", "boolean"].contains(&kind) {
        return Err(format!("schema: no such type: {kind}"));
    }
    if object.get("enum").is_some_and(|choices| {
        kind != "string"
            || choices
                .as_array()
                .unwrap()
                .iter()
                .any(|c| c.as_str().is_none_or(str::is_empty))
    }) {
        return Err("schema: enum: only allowed for STRING type, and not empty".to_owned());
    }
    if kind == "array" {
        return check_schema(object.get("items").ok_or("schema: items: missing field")?);
    }
    let Some(properties) = object.get("properties").map(|p| p.as_object().unwrap()) else {
        return Ok(());
    };
    if properties.is_empty() {
        return Err("schema: properties: should be non-empty for OBJECT type".to_owned());
    }
    let required = schema["required"].as_array().into_iter().flatten();
    for name in required {
        if !properties.contains_key(name.as_str().unwrap()) {
            return Err(format!("schema: required: property is not defined: {name}"));
        }
    }
    properties.values().try_for_each(check_schema)
}

fn check_contents(body: &Value) -> Result<(), String> {
    let contents = body["contents"].as_array().filter(|c| !c.is_empty());
    let mut expected = "user";
    let mut waiting: Vec<&str> = Vec::new();
    for content in contents.ok_or("contents is not specified")? {
        check_names("contents", content, &["role", "parts"])?;
        let role = text(content, "/role").unwrap_or_default();
        if role != expected {
            return Err(format!("roles must alternate, not `{role}`"));
        }
        let parts = content["parts"]
            .as_array()
            .filter(|parts| !parts.is_empty());
        let parts = parts.ok_or("contents.parts must not be empty")?;
        parts.iter().try_for_each(check_part)?;
        let named = |kind: &str| {
            let names = parts.iter().filter_map(|part| part.get(kind));
            names
                .map(|call| text(call, "/name").unwrap_or_default())
                .collect::<Vec<_>>()
        };
        let (calls, answers) = (named("functionCall"), named("functionResponse"));
        if role == "user" {
            if !calls.is_empty() || answers != waiting {
                return Err(
                    "Please ensure that the number of function response parts is equal to the \
                    number of function call parts of the function call turn."
                        .to_owned(),
                );
            }
            expected = "model";
        } else {
            if !answers.is_empty() {
                return Err("a function response of the model".to_owned());
            }
            waiting = calls;
            expected = "user";
        }
    }
    if expected == "user" {
        return Err("Please ensure that single turn requests end with a user role".to_owned());
    }
    Ok(())
}

fn check_part(part: &Value) -> Result<(), String> {
    let known = [
        "text",
        "thought",
        "thoughtSignature",
        "functionCall",
        "functionResponse",
        "inlineData",
    ];
    check_names("parts", part, &known)?;
    let kinds = ["text", "functionCall", "functionResponse", "inlineData"];
    let mut kinds = kinds.iter().filter(|kind| part.get(**kind).is_some());
    match (kinds.next().copied(), kinds.next()) {
        (Some("text"), None) => {
            let is_empty = text(part, "/text").is_none_or(str::is_empty);
            if is_empty && part.get("thoughtSignature").is_none() {
                return Err(
                    "Unable to submit request because it has an empty text parameter".to_owned(),
                );
            }
        }
        (Some("functionCall"), None) => {
            check_names(
                "function_call",
                &part["functionCall"],
                &["id", "name", "args"],
            )?;
            if !part["functionCall"]["args"].is_object() {
                return Err("function_call.args: Proto field is not a struct".to_owned());
            }
        }
        (Some("functionResponse"), None) => {
            check_names(
                "function_response",
                &part["functionResponse"],
                &["id", "name", "response"],
            )?;
            if !part["functionResponse"]["response"].is_object() {
                return Err("function_response.response: Proto field is not a struct".to_owned());
            }
        }
        (Some("inlineData"), None) => {
            let data = &part["inlineData"];
            check_names("inline_data", data, &["mimeType", "data"])?;
            let kinds = [
                "image/png",
                "image/jpeg",
                "application/pdf",
                "audio/wav",
                "audio/mp3",
                "audio/ogg",
                "audio/flac",
            ];
            if !kinds.contains(&text(data, "/mimeType").unwrap_or_default()) {
                return Err(format!("Unsupported MIME type: {}", data["mimeType"]));
            }
            check_base64(text(data, "/data"))?;
        }
        _ => return Err("a part must have exactly one initialized field".to_owned()),
    }
    Ok(())
}

/// Newer models want the signature of each step since a person spoke last.
fn check_signatures(body: &Value) -> Result<(), String> {
    let contents = body["contents"].as_array().unwrap();
    for content in contents.iter().rev() {
        let parts = content["parts"].as_array().unwrap();
        if content["role"] == "user" && parts.iter().any(|part| part.get("text").is_some()) {
            return Ok(());
        }
        let call = parts.iter().find(|part| part.get("functionCall").is_some());
        let signed = [SIGNATURE, "skip_thought_signature_validator"];
        if call.is_some_and(|call| !signed.map(Value::from).contains(&call["thoughtSignature"])) {
            return Err(
                "Function call is missing a thought_signature in functionCall parts.".to_owned(),
            );
        }
    }
    Ok(())
}
