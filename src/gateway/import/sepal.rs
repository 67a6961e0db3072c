//! Reads Sepal's own export: the events of a transcript in the form of `GET …/events`.

use std::collections::{HashMap, HashSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::Value;
use serde_json::value::RawValue;

use super::parts::{Reading, called, changed, field, gave, left_out, left_out_file, time};
use crate::session::Speaker;

/// Reads a session; `None` if the export has an unknown form.
pub(super) fn read(entry: &RawValue) -> Option<Reading> {
    let document: Value = serde_json::from_str(entry.get()).ok()?;
    let form = field(&document, "sepal");
    if field(form, "export") != "session" || field(form, "version") != 1 {
        return None;
    }
    let events = field(&document, "events").as_array()?;
    let begun = events.first().and_then(|event| time(field(event, "at")));
    let mut reading = Reading::new(
        "sepal",
        field(&document, "id"),
        field(&document, "title"),
        begun,
    );
    let withdrawn = events.iter().filter_map(|event| {
        let rest = last(event);
        rest.get("withdrawn")
            .and(field(rest, "messageSeq").as_u64())
    });
    let withdrawn: HashSet<u64> = withdrawn.collect();
    let mut contents = Contents {
        encoded: field(&document, "attachments"),
        decoded: HashMap::new(),
    };
    for event in events {
        let is_withdrawn = field(event, "seq")
            .as_u64()
            .is_some_and(|seq| withdrawn.contains(&seq));
        if !is_withdrawn {
            say(&mut reading, event, &mut contents);
        }
    }
    Some(reading)
}

/// Returns the last argument of an event, which holds its details.
fn last(event: &Value) -> &Value {
    const NOTHING: &Value = &Value::Null;
    let args = field(event, "args").as_array();
    args.and_then(|args| args.last()).unwrap_or(NOTHING)
}

fn say<'v>(reading: &mut Reading, event: &'v Value, contents: &mut Contents<'v>) {
    let args = field(event, "args").as_array();
    let text = args.and_then(|args| args.first()?.as_str());
    let (text, rest) = (text.unwrap_or_default(), last(event));
    let at = time(field(event, "at"));
    let model = field(rest, "model").as_str().map(ToOwned::to_owned);
    let mut lines = vec![text.to_owned()];
    let by = match field(event, "event").as_str().unwrap_or_default() {
        "user:message" => Speaker::Person,
        "agent:message" => {
            let calls = field(rest, "calls").as_array().into_iter().flatten();
            lines.extend(calls.map(|call| {
                called(
                    field(call, "name").as_str().unwrap_or("a tool"),
                    field(call, "args"),
                )
            }));
            Speaker::Model(model)
        }
        // If a person changed the arguments of a call, these are the arguments that ran.
        "tool:decided" if field(rest, "args").is_object() => {
            lines = vec![changed(field(rest, "args"))];
            Speaker::Model(model)
        }
        "tool:output" => {
            lines = vec![gave(field(rest, "name").as_str(), text)];
            Speaker::Model(model)
        }
        "agent:response" => Speaker::Model(model),
        "agent:cancelled" => {
            let said = field(rest, "text").as_str().unwrap_or_default();
            lines = vec![said.to_owned(), left_out("the rest: the turn was stopped")];
            Speaker::Model(model)
        }
        // The failure of a call also appears in its output.
        "agent:error" if rest.get("callId").is_none() => {
            lines = vec![left_out(&format!(
                "an answer, because the turn failed: {text}"
            ))];
            Speaker::Model(model)
        }
        _ => return,
    };
    let files = field(rest, "attachments").as_array().into_iter().flatten();
    let mut carried = Vec::new();
    for file in files {
        let name = field(file, "name").as_str();
        let content = (by == Speaker::Person).then(|| contents.of(file)).flatten();
        match content {
            Some(content) => carried.push((name.unwrap_or_default(), content)),
            None => lines.push(left_out_file(name)),
        }
    }
    lines.retain(|line| !line.trim().is_empty());
    reading.say(by, at, &lines.join("\n\n"));
    for (name, content) in carried {
        reading.attach(at, name, content);
    }
}

/// The contents of attachments that the export includes. Each content is decoded once, regardless of the
/// number of messages that name it.
struct Contents<'v> {
    encoded: &'v Value,
    decoded: HashMap<&'v str, Option<Bytes>>,
}

impl<'v> Contents<'v> {
    fn of(&mut self, file: &'v Value) -> Option<Bytes> {
        let id = field(file, "id").as_str()?;
        let encoded = self.encoded;
        let decoded = self.decoded.entry(id).or_insert_with(|| {
            let text = field(encoded, id).as_str()?;
            STANDARD.decode(text).ok().map(Bytes::from)
        });
        decoded.clone()
    }
}
