//! Reads a chat of Open WebUI: a tree of messages, one branch of which is shown.

use std::collections::HashSet;

use serde_json::Value;
use serde_json::value::RawValue;

use super::parts::{Reading, called, field, gave, left_out, left_out_file, text_of, time};
use crate::session::Speaker;

/// The markup of a folded part. Older releases put it around calls and reasoning inside an answer, and models write
/// it for parts of their own.
const BEGIN: &str = "<details";
const END: &str = "</details>";

/// Reads a conversation; `None` if the entry does not have this form.
pub(super) fn read(entry: &RawValue) -> Option<Reading> {
    let entry: Value = serde_json::from_str(entry.get()).ok()?;
    let chat = entry.get("chat")?;
    let id = field(&entry, "id")
        .as_str()
        .map_or(field(chat, "id"), |_| field(&entry, "id"));
    let title = field(&entry, "title")
        .as_str()
        .map_or(field(chat, "title"), |_| field(&entry, "title"));
    let created = time(field(&entry, "created_at")).or_else(|| time(field(chat, "timestamp")));
    let mut reading = Reading::new("open-webui", id, title, created);
    for message in branch(chat)? {
        say(&mut reading, message);
    }
    Some(reading)
}

/// Returns the messages from the first to the last one shown. Each message is visited once, even if the
/// links form a cycle.
fn branch(chat: &Value) -> Option<Vec<&Value>> {
    let history = field(chat, "history");
    let Some(messages) = field(history, "messages").as_object() else {
        return field(chat, "messages")
            .as_array()
            .map(|list| list.iter().collect());
    };
    let last = || messages.keys().next_back().map(String::as_str);
    let current = field(history, "currentId").as_str();
    let mut next = current
        .filter(|id| messages.contains_key(*id))
        .or_else(last);
    let (mut branch, mut seen) = (Vec::new(), HashSet::new());
    while let Some(message) = next
        .filter(|id| seen.insert(*id))
        .and_then(|id| messages.get(id))
    {
        branch.push(message);
        next = field(message, "parentId").as_str();
    }
    branch.reverse();
    Some(branch)
}

fn say(reading: &mut Reading, message: &Value) {
    let by = match field(message, "role").as_str().unwrap_or_default() {
        "user" => Speaker::Person,
        "assistant" => {
            let name = field(message, "model")
                .as_str()
                .or(field(message, "modelName").as_str());
            Speaker::Model(name.map(ToOwned::to_owned))
        }
        // System messages are not part of the conversation.
        _ => return,
    };
    let mut lines = Vec::new();
    let output = field(message, "output")
        .as_array()
        .filter(|items| !items.is_empty());
    if let Some(output) = output {
        lines.extend(output.iter().filter_map(item));
    } else if let Some(text) = text_of(field(message, "content")) {
        lines.push(if by == Speaker::Person {
            text.to_owned()
        } else {
            without_details(text)
        });
    } else if let Some(parts) = field(message, "content").as_array() {
        lines.extend(
            parts
                .iter()
                .filter_map(|part| text_of(field(part, "text")))
                .map(Into::into),
        );
    }
    let files = field(message, "files").as_array().into_iter().flatten();
    lines.extend(files.map(|file| {
        if field(file, "type") == "image" {
            left_out("an image")
        } else {
            left_out_file(field(file, "name").as_str())
        }
    }));
    reading.say(by, time(field(message, "timestamp")), &lines.join("\n\n"));
}

/// Converts one output item of an answer, as newer releases store them.
fn item(item: &Value) -> Option<String> {
    match field(item, "type").as_str()? {
        "message" => Some(texts(field(item, "content"))),
        // The model's reasoning.
        "reasoning" => None,
        "function_call" => Some(called(
            field(item, "name").as_str()?,
            field(item, "arguments"),
        )),
        "function_call_output" => {
            let output = field(item, "output");
            let text = output
                .as_str()
                .map_or_else(|| texts(output), ToOwned::to_owned);
            Some(gave(None, &text))
        }
        other => Some(left_out(&format!("a part of the kind `{other}`"))),
    }
}

fn texts(parts: &Value) -> String {
    let parts = parts.as_array().into_iter().flatten();
    let texts: Vec<&str> = parts
        .filter_map(|part| text_of(field(part, "text")))
        .collect();
    texts.join("\n\n")
}

/// A folded part that is open.
enum Folded {
    /// Reasoning or a call, which leaves the text: where it began there and in the answer.
    Leaves {
        kept: usize,
        from: usize,
    },
    Stays,
}

/// Replaces calls by a description, and removes the model's reasoning. Other folded parts stay as they are, and so
/// does one that never ends.
fn without_details(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut open: Vec<Folded> = Vec::new();
    let mut leaving = 0;
    let mut at = 0;
    while let Some(next) = next_tag(text, at) {
        let piece = text.get(at..next.from).unwrap_or_default();
        let tag = text.get(next.from..next.to).unwrap_or_default();
        at = next.to;
        if leaving == 0 {
            out.push_str(piece);
        }
        if next.is_end {
            match open.pop() {
                Some(Folded::Leaves { .. }) => leaving -= 1,
                Some(Folded::Stays) | None if leaving == 0 => out.push_str(tag),
                Some(Folded::Stays) | None => {}
            }
            continue;
        }
        let kind = attribute(tag, "type");
        if !matches!(kind.as_deref(), Some("reasoning" | "tool_calls")) {
            open.push(Folded::Stays);
            if leaving == 0 {
                out.push_str(tag);
            }
            continue;
        }
        open.push(Folded::Leaves {
            kept: out.len(),
            from: next.from,
        });
        if kind.as_deref() == Some("tool_calls") && leaving == 0 {
            out.push_str(&call(tag));
        }
        leaving += 1;
    }
    let unended = open.iter().find_map(|folded| match folded {
        Folded::Leaves { kept, from } => Some((*kept, *from)),
        Folded::Stays => None,
    });
    if let Some((kept, from)) = unended {
        out.truncate(kept);
        at = from;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// A tag that begins or ends a folded part.
struct Tag {
    from: usize,
    to: usize,
    is_end: bool,
}

fn next_tag(text: &str, at: usize) -> Option<Tag> {
    let mut from = at;
    loop {
        let rest = text.get(from..)?;
        let begin = rest.find('<')? + from;
        let tag = text.get(begin..)?;
        if tag.starts_with(END) {
            return Some(Tag {
                from: begin,
                to: begin + END.len(),
                is_end: true,
            });
        }
        let is_begin = tag.strip_prefix(BEGIN).is_some_and(|rest| {
            rest.starts_with(|letter: char| letter == '>' || letter.is_whitespace())
        });
        if let (true, Some(length)) = (is_begin, tag.find('>')) {
            return Some(Tag {
                from: begin,
                to: begin + length + 1,
                is_end: false,
            });
        }
        from = begin + 1;
    }
}

fn call(tag: &str) -> String {
    let name = attribute(tag, "name");
    let args = attribute(tag, "arguments").map_or(Value::Null, |text| decoded(&text));
    let mut lines = vec![called(name.as_deref().unwrap_or("a tool"), &args)];
    if let Some(result) = attribute(tag, "result") {
        let result = match decoded(&result) {
            Value::String(text) => text,
            value @ (Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_)) => value.to_string(),
        };
        lines.push(gave(None, &result));
    }
    format!("\n\n{}\n\n", lines.join("\n\n"))
}

/// Decodes JSON that is encoded in a text once or twice; otherwise returns the text.
fn decoded(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(Value::String(inner)) => serde_json::from_str(&inner).unwrap_or(Value::String(inner)),
        Ok(value) => value,
        Err(_) => Value::String(text.to_owned()),
    }
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    let (value, _) = rest.split_once('"')?;
    let plain = [
        ("&quot;", "\""),
        ("&#x27;", "'"),
        ("&#39;", "'"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&amp;", "&"),
    ];
    let value = value.to_owned();
    Some(
        plain
            .iter()
            .fold(value, |text, (from, to)| text.replace(from, to)),
    )
}
