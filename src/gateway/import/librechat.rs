//! A conversation of LibreChat: a list of messages that name their parents, or a tree of them.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::parts::{Reading, called, field, gave, left_out, left_out_file, text_of, time};
use crate::session::Speaker;

/// Messages of one branch of a tree.
const MAX_DEPTH: usize = 2_000;
/// Bytes that are looked at in one tree. It is as deep as its branch is long, so each level is read by
/// itself, and what lies below it is looked over each time.
const MAX_LOOKED_AT: usize = 1 << 30;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    #[serde(default)]
    conversation_id: Value,
    #[serde(default)]
    title: Value,
}

/// A message; what answers it is read later.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
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
    #[serde(borrow)]
    children: Option<&'a RawValue>,
}

/// The conversation; none = it is not of that form.
pub(super) fn read(entry: &RawValue, messages: &RawValue) -> Option<Reading> {
    let head: Head = serde_json::from_str(entry.get()).ok()?;
    let list: Vec<&RawValue> = serde_json::from_str(messages.get()).ok()?;
    let (mut branch, is_cut) = branch(&list)?;
    let begun = branch.first().and_then(|first| time(&first.created_at));
    let mut reading = Reading::new("librechat", &head.conversation_id, (&head.title, begun));
    for message in branch.drain(..) {
        say(&mut reading, &message);
    }
    if is_cut {
        let rest = left_out("the rest of a very long conversation");
        reading.say(Speaker::Person, None, &rest);
    }
    Some(reading)
}

/// The branch that is shown: the newest answer at each place. Whether it is longer than it may be.
fn branch<'a>(list: &[&'a RawValue]) -> Option<(Vec<Message<'a>>, bool)> {
    let mut level = list.to_vec();
    let mut branch: Vec<Message<'a>> = Vec::new();
    let parsed = |raw: &&'a RawValue| serde_json::from_str::<Message<'a>>(raw.get()).ok();
    let is_tree = list
        .iter()
        .filter_map(parsed)
        .any(|first| first.children.is_some());
    if !is_tree {
        let messages: Vec<Message<'a>> = list.iter().filter_map(parsed).collect();
        return Some((newest_of(messages), false));
    }
    let mut left = MAX_LOOKED_AT;
    while let Some(last) = level.last() {
        let rest = left.checked_sub(last.get().len());
        let Some(rest) = rest.filter(|_| branch.len() < MAX_DEPTH) else {
            return Some((branch, true));
        };
        left = rest;
        let message = parsed(last)?;
        level = match message.children {
            Some(children) => serde_json::from_str(children.get())
                .ok()
                .unwrap_or_default(),
            None => Vec::new(),
        };
        branch.push(message);
    }
    Some((branch, false))
}

/// The newest branch of a list that names parents; the list as it is where none of them is in it.
fn newest_of(messages: Vec<Message<'_>>) -> Vec<Message<'_>> {
    let mut by_id = HashMap::new();
    for (place, message) in messages.iter().enumerate() {
        if let Some(id) = message.id.as_str() {
            by_id.insert(id.to_owned(), place);
        }
    }
    let parent = |message: &Message<'_>| {
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

fn say(reading: &mut Reading, message: &Message<'_>) {
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
        // What it thought.
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
