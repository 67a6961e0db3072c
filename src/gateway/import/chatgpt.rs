//! Reads ChatGPT's `conversations.json`: each conversation is a tree of messages, one branch of which is
//! shown.

use std::collections::HashSet;

use serde_json::Value;
use serde_json::value::RawValue;

use super::citations::linked;
use super::parts::{
    Reading, called, fenced, field, gave, left_out, left_out_file, text_of, time, unreadable,
};
use crate::session::Speaker;

/// Reads a conversation; `None` if the entry does not have this form.
pub(super) fn read(entry: &RawValue) -> Option<Reading> {
    let conversation: Value = serde_json::from_str(entry.get()).ok()?;
    let mapping = conversation.get("mapping")?.as_object()?;
    let id = field(&conversation, "conversation_id").as_str();
    let id = id.map_or(field(&conversation, "id"), |_| {
        field(&conversation, "conversation_id")
    });

    let mut reading = Reading::new(
        "chatgpt",
        id,
        field(&conversation, "title"),
        time(field(&conversation, "create_time")),
    );
    // Walks from the last message to the first. Each message is visited once, even if the links form a
    // cycle.
    let mut branch = Vec::new();
    let mut seen = HashSet::new();
    let mut next = field(&conversation, "current_node").as_str();
    if next.is_none_or(|id| !mapping.contains_key(id)) {
        let newest = mapping
            .iter()
            .max_by_key(|(_, node)| time(field(field(node, "message"), "create_time")));
        next = newest.map(|(id, _)| id.as_str());
    }
    while let Some(node) = next
        .filter(|id| seen.insert(*id))
        .and_then(|id| mapping.get(id))
    {
        branch.push(field(node, "message"));
        next = field(node, "parent").as_str();
    }
    for message in branch.into_iter().rev() {
        say(&mut reading, message);
    }
    Some(reading)
}

fn say(reading: &mut Reading, message: &Value) {
    let metadata = field(message, "metadata");
    if field(metadata, "is_visually_hidden_from_conversation") == true {
        return;
    }
    let Some(text) = content(field(message, "content")) else {
        return;
    };
    let text = linked(&text, metadata);
    let at = time(field(message, "create_time"));
    let model = field(metadata, "model_slug")
        .as_str()
        .map(ToOwned::to_owned);
    let author = field(message, "author");
    match field(author, "role").as_str().unwrap_or_default() {
        "user" => {
            let files = field(metadata, "attachments").as_array();
            let files = files.into_iter().flatten();
            let lines = files.map(|file| left_out_file(field(file, "name").as_str()));
            let lines: Vec<String> = std::iter::once(text).chain(lines).collect();
            reading.say(Speaker::Person, at, &lines.join("\n\n"));
        }
        "assistant" => {
            let recipient = field(message, "recipient").as_str().unwrap_or("all");
            let text = if recipient == "all" {
                text
            } else {
                called(recipient, &Value::String(unfenced(&text).to_owned()))
            };
            reading.say(Speaker::Model(model), at, &text);
        }
        "tool" => {
            let text = gave(field(author, "name").as_str(), unfenced(&text));
            reading.say(Speaker::Model(model), at, &text);
        }
        // System messages are not part of the conversation.
        _ => {}
    }
}

/// Returns the content of a message as text; `None` for content that people do not see.
fn content(content: &Value) -> Option<String> {
    if content.is_null() {
        return None;
    }
    let Some(kind) = field(content, "content_type").as_str() else {
        return Some(unreadable("a message"));
    };
    Some(match kind {
        "text" | "multimodal_text" => match field(content, "parts") {
            Value::Array(parts) => {
                let parts: Vec<String> = parts.iter().filter_map(part).collect();
                parts.join("\n\n")
            }
            Value::String(text) => text.clone(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
                field(content, "text")
                    .as_str()
                    .map_or_else(|| unreadable("a message"), ToOwned::to_owned)
            }
        },
        "code" => {
            let language = field(content, "language").as_str().unwrap_or_default();
            let is_word = language.bytes().all(|byte| byte.is_ascii_alphanumeric());
            let language = if is_word && language != "unknown" {
                language
            } else {
                ""
            };
            code(language, content)
        }
        "execution_output" | "system_error" => code("", content),
        "tether_quote" | "tether_browsing_display" => {
            let texts = ["title", "url", "text", "result"];
            let texts = texts
                .iter()
                .filter_map(|name| text_of(field(content, name)));
            texts.collect::<Vec<_>>().join("\n\n")
        }
        // The model's reasoning, and the instructions about the user that are sent with each request.
        "thoughts" | "reasoning_recap" | "user_editable_context" | "model_editable_context" => {
            return None;
        }
        other => left_out(&format!("a part of the kind `{other}`")),
    })
}

fn code(language: &str, content: &Value) -> String {
    let text = field(content, "text").as_str();
    text.map_or_else(|| unreadable("code"), |text| fenced(language, text))
}

fn part(part: &Value) -> Option<String> {
    if part.is_null() {
        return None;
    }
    if let Some(text) = part.as_str() {
        return text_of(part).map(|_| text.to_owned());
    }
    let Some(kind) = field(part, "content_type").as_str() else {
        return Some(unreadable("a part of a message"));
    };
    Some(match kind {
        "audio_transcription" => {
            let text = field(part, "text").as_str();
            text.map_or_else(|| left_out("a recording"), ToOwned::to_owned)
        }
        "image_asset_pointer" => left_out("an image"),
        "audio_asset_pointer" | "real_time_user_audio_video_asset_pointer" => {
            left_out("a recording")
        }
        other => left_out(&format!("a part of the kind `{other}`")),
    })
}

/// Returns the content of a fenced code block, or the text itself if it is not one.
fn unfenced(text: &str) -> &str {
    let inner = text
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("\n```"));
    let inner = inner.and_then(|rest| rest.split_once('\n'));
    inner.map_or(text, |(_, inner)| inner)
}
