//! What the vendor refuses of thinking, effort and temperature, in its words.

use serde_json::{Value, json};

use super::text_of;

/// By model: the forms of thinking that it takes, whether it takes an effort, whether a temperature.
/// The last one is a model that nobody knows of.
fn takes(model: &str) -> (&'static [&'static str], bool, bool) {
    let has = |part: &str| model.contains(part);
    if has("-3-haiku") || has("-3-5") {
        (&[], false, true)
    } else if has("nova") {
        (&["adaptive"], false, false)
    } else if has("opus-5-5") || has("fable") {
        (&["adaptive"], true, false)
    } else if has("sonnet-5-5") {
        (&["adaptive", "between_tools"], true, false)
    } else if has("-5") && !has("4-5") || has("4-7") || has("4-8") {
        (&["adaptive", "disabled"], true, false)
    } else if has("4-6") {
        (&["adaptive", "enabled", "disabled"], true, true)
    } else {
        (&["enabled", "disabled"], false, true)
    }
}

pub(super) fn check(body: &Value) -> Result<(), String> {
    let (forms, takes_effort, takes_temperature) = takes(text_of(body, "/model"));
    let temperature = body.get("temperature").and_then(Value::as_f64);
    if temperature.is_some() && !takes_temperature {
        return Err("`temperature` is deprecated for this model.".to_owned());
    }
    if body.get("output_config").is_some() {
        let effort = text_of(body, "/output_config/effort");
        if !takes_effort {
            return Err("This model does not support the effort parameter.".to_owned());
        }
        if !["low", "medium", "high", "max"].contains(&effort) {
            return Err("output_config.effort: no such effort".to_owned());
        }
    }
    let Some(thinking) = body.get("thinking") else {
        return Ok(());
    };
    let kind = text_of(thinking, "/type");
    if !forms.contains(&kind) {
        return Err(match kind {
            "adaptive" => "adaptive thinking is not supported on this model".to_owned(),
            kind => format!("\"thinking.type.{kind}\" is not supported for this model."),
        });
    }
    let is_thinking = matches!(kind, "adaptive" | "enabled");
    if is_thinking && temperature.is_some_and(|degree| (degree - 1.0).abs() > f64::EPSILON) {
        return Err("`temperature` may only be set to 1 when thinking is enabled".to_owned());
    }
    let fields = thinking.as_object().unwrap().len();
    match kind {
        "enabled" => {
            let budget = thinking["budget_tokens"].as_u64().unwrap_or_default();
            if budget < 1_024 {
                return Err(
                    "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
                        .to_owned(),
                );
            }
            if budget >= body["max_tokens"].as_u64().unwrap() {
                return Err("`max_tokens` must be greater than `thinking.budget_tokens`".to_owned());
            }
        }
        "adaptive" if fields == 2 && thinking["display"] == "summarized" => {}
        _ if fields == 1 => {}
        _ => return Err("thinking: Extra inputs are not permitted".to_owned()),
    }
    Ok(())
}

/// With a budget, a turn of calls begins with thoughts.
pub(super) fn check_turn(body: &Value) -> Result<(), String> {
    if body.pointer("/thinking/type") != Some(&json!("enabled")) {
        return Ok(());
    }
    let messages = body["messages"].as_array().unwrap();
    let has_results = |message: &Value| {
        let mut content = message["content"].as_array().unwrap().iter();
        content.any(|block| block["type"] == "tool_result")
    };
    let turn = messages.iter().rev();
    let turn = turn.take_while(|message| message["role"] == "assistant" || has_results(message));
    let first = turn.filter(|message| message["role"] == "assistant").last();
    // What was compacted stands before everything else.
    let said = first.and_then(|first| {
        let mut content = first["content"].as_array().unwrap().iter();
        content.find(|block| block["type"] != "compaction")
    });
    let kind = said.map_or("thinking", |said| text_of(said, "/type"));
    if !has_results(messages.last().unwrap()) || kind.ends_with("thinking") {
        return Ok(());
    }
    Err(format!(
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{kind}`."
    ))
}
