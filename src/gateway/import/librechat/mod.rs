//! Reads a conversation of LibreChat: a list of messages that name their parents, or a tree of messages.

mod tree;

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::parts::{Items, Reading, called, field, gave, left_out, left_out_file, text_of, time};
use crate::session::Speaker;

/// The maximum number of messages in one branch of a tree.
const MAX_DEPTH: usize = 2_000;
/// The maximum number of messages in a list.
const MAX_LISTED: usize = 100_000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    #[serde(default)]
    conversation_id: Value,
    #[serde(default)]
    title: Value,
}

/// A message without its answers, which [`tree`] finds.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    #[serde(default, rename = "messageId")]
    id: Value,
    #[serde(default)]
    parent_message_id: Value,
    #[serde(default)]
    is_created_by_user: Value,
    #[serde(default)]
    text: Value,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    model: Value,
    #[serde(default)]
    created_at: Value,
    #[serde(default)]
    files: Value,
}

/// Reads a conversation; `None` if the entry does not have this form.
pub(super) fn read(entry: &RawValue, messages: &RawValue) -> Option<Reading> {
    let head: Head = serde_json::from_str(entry.get()).ok()?;
    let (mut branch, is_cut) = branch(messages)?;
    let begun = branch.first().and_then(|first| time(&first.created_at));
    let mut reading = Reading::new("librechat", &head.conversation_id, &head.title, begun);
    for message in branch.drain(..) {
        say(&mut reading, &message);
    }
    if is_cut {
        let rest = left_out("the rest of a very long conversation");
        reading.say(Speaker::Person, None, &rest);
    }
    Some(reading)
}

/// Returns the shown branch, which has the newest answer at each level, and whether it was cut at the limit.
fn branch(messages: &RawValue) -> Option<(Vec<Message>, bool)> {
    let text = messages.get();
    if let Some(places) = tree::newest_branch(text) {
        let is_cut = places.len() > MAX_DEPTH;
        let places = places.into_iter().take(MAX_DEPTH);
        let messages: Option<Vec<Message>> = places
            .map(|place| serde_json::from_str(&place.own_text(text)?).ok())
            .collect();
        return Some((messages?, is_cut));
    }
    let list: Items<'_, MAX_LISTED> = serde_json::from_str(text).ok()?;
    let parsed = |raw: &&RawValue| serde_json::from_str::<Message>(raw.get()).ok();
    let messages: Vec<Message> = list.items.iter().filter_map(parsed).collect();
    Some((newest_of(messages), list.has_more))
}

/// Returns the newest branch of a list whose messages name their parents, or the whole list if no parent is
/// in it.
fn newest_of(messages: Vec<Message>) -> Vec<Message> {
    let mut by_id = HashMap::new();
    for (place, message) in messages.iter().enumerate() {
        if let Some(id) = message.id.as_str() {
            by_id.insert(id.to_owned(), place);
        }
    }
    let parent = |message: &Message| {
        let parent = message.parent_message_id.as_str()?;
        by_id.get(parent).copied()
    };
    if messages.iter().all(|message| parent(message).is_none()) {
        return messages;
    }
    let mut kept = HashSet::new();
    let mut next = messages.len().checked_sub(1);
    while let Some(place) = next.filter(|place| kept.insert(*place)) {
        next = messages.get(place).and_then(&parent);
    }
    let parts = messages.into_iter().enumerate();
    let parts = parts.filter(|(place, _)| kept.contains(place));
    parts.map(|(_, message)| message).collect()
}

fn say(reading: &mut Reading, message: &Message) {
    let mut lines = Vec::new();
    match message.content.as_array().filter(|parts| !parts.is_empty()) {
        Some(parts) => lines.extend(parts.iter().filter_map(part)),
        None => lines.extend(text_of(&message.text).map(ToOwned::to_owned)),
    }
    let files = message.files.as_array().into_iter().flatten();
    lines.extend(files.map(|file| left_out_file(field(file, "filename").as_str())));
    let by = if message.is_created_by_user == true {
        Speaker::Person
    } else {
        Speaker::Model(message.model.as_str().map(ToOwned::to_owned))
    };
    reading.say(by, time(&message.created_at), &lines.join("\n\n"));
}

fn part(part: &Value) -> Option<String> {
    let kind = field(part, "type").as_str()?;
    match kind {
        "text" => {
            let text = field(part, "text");
            let text = text.as_str().or(field(text, "value").as_str())?;
            Some(text.to_owned())
        }
        // The model's reasoning.
        "think" => None,
        "tool_call" => {
            let call = field(part, "tool_call");
            let (name, args) = match field(call, "name").as_str() {
                Some(name) => (name, field(call, "args")),
                None => (
                    field(field(call, "function"), "name").as_str()?,
                    field(field(call, "function"), "arguments"),
                ),
            };
            let output =
                field(call, "output")
                    .as_str()
                    .or(field(field(call, "function"), "output").as_str());
            let output = output.map(|text| gave(None, text));
            let lines: Vec<String> = std::iter::once(called(name, args)).chain(output).collect();
            Some(lines.join("\n\n"))
        }
        "image_file" | "image_url" => Some(left_out("an image")),
        "error" => Some(left_out("an error")),
        other => Some(left_out(&format!("a part of the kind `{other}`"))),
    }
}
