//! Converts the entries of a session into contexts: one for each part of an entry (S4.5-S4.16). Nothing is
//! copied before somebody reads it.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::kind::ContextKind;
use sepal_core::domain::{Attachment, CallId, CountedEntry, Entry};

/// The metadata of a context, by name. Always has `entry_id` and `timestamp` (S4.12).
pub type Metadata = Map<String, Value>;

/// The part of an entry that a context stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The text: a message, a result, or a note.
    Said,
    /// The vendor's native blocks: reasoning with its signatures.
    Native,
    /// A call, by its index among those of the message.
    Call(usize),
}

/// Returns the parts of an entry, in the order in which the model produced them.
pub(super) fn parts(entry: &Entry) -> impl DoubleEndedIterator<Item = Part> {
    let (has_native, says, calls) = match entry {
        Entry::Assistant {
            text,
            calls,
            native,
        } => {
            let is_mute = text.is_empty() && (native.is_some() || !calls.is_empty());
            (native.is_some(), !is_mute, calls.len())
        }
        Entry::User { .. } | Entry::ToolResult { .. } | Entry::Note { .. } => (false, true, 0),
    };
    let native = has_native.then_some(Part::Native);
    let said = says.then_some(Part::Said);
    native
        .into_iter()
        .chain(said)
        .chain((0..calls).map(Part::Call))
}

/// Returns the kind of a part (S4.5-S4.10).
pub(super) fn kind(entry: &Entry, part: Part) -> ContextKind {
    match (entry, part) {
        (_, Part::Native) => ContextKind::Thinking,
        (_, Part::Call(_)) => ContextKind::ToolCall,
        (Entry::User { .. }, Part::Said) => ContextKind::User,
        (Entry::Assistant { .. }, Part::Said) => ContextKind::Assistant,
        (Entry::ToolResult { .. }, Part::Said) => ContextKind::ToolResult,
        (Entry::Note { .. }, Part::Said) => "note".into(),
    }
}

#[cfg(test)]
thread_local! {
    /// The number of contents and metadata made on this thread.
    pub(super) static MADE: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Returns the content of a part (S4.5-S4.9).
pub(super) fn content(entry: &Entry, part: Part) -> Cow<'_, str> {
    #[cfg(test)]
    MADE.set(MADE.get() + 1);
    match (entry, part) {
        (Entry::Assistant { calls, .. }, Part::Call(nth)) => {
            let call = calls.get(nth);
            call.map_or_else(Cow::default, |call| {
                format!("Tool: {}\nParameters: {}", call.name, call.args).into()
            })
        }
        (Entry::Assistant { native, .. }, Part::Native) => {
            let blocks = native.as_ref().map(|native| native.blocks.to_string());
            blocks.unwrap_or_default().into()
        }
        (
            Entry::ToolResult {
                name,
                text,
                is_error: true,
                ..
            },
            _,
        ) => format!("Tool: {name}\nSuccess: false\nError: {text}").into(),
        (Entry::ToolResult { name, text, .. }, _) => {
            format!("Tool: {name}\nSuccess: true\nResult: {}", as_json(text)).into()
        }
        (
            Entry::User { text, .. } | Entry::Assistant { text, .. } | Entry::Note { text },
            Part::Said | Part::Native | Part::Call(_),
        ) => text.into(),
    }
}

/// Returns a result as JSON: unchanged if it is an object or a list already, otherwise as a string.
fn as_json(text: &str) -> Cow<'_, str> {
    let trimmed = text.trim();
    let is_json = trimmed.starts_with(['{', '['])
        && serde_json::from_str::<serde::de::IgnoredAny>(trimmed).is_ok();
    if is_json {
        return Cow::Borrowed(trimmed);
    }
    Cow::Owned(Value::from(text).to_string())
}

/// Returns the metadata of a part (S4.12-S4.14).
pub(super) fn metadata(entry: &CountedEntry, part: Part) -> Metadata {
    #[cfg(test)]
    MADE.set(MADE.get() + 1);
    let mut metadata = Metadata::new();
    let mut say = |name: &str, value: Value| metadata.insert(name.to_owned(), value);
    let stamp = entry.stamp();
    say("entry_id", entry_id(entry, part).into());
    let at = stamp.map(|stamp| stamp.at).unwrap_or_default();
    say("timestamp", at.to_rfc3339().into());
    match (&**entry, part) {
        (
            Entry::User {
                seq, attachments, ..
            },
            _,
        ) => {
            say("seq", (*seq).into());
            if !attachments.is_empty() {
                say("attachments", names(attachments));
            }
        }
        (Entry::Assistant { calls, .. }, Part::Call(nth)) => {
            if let Some(call) = calls.get(nth) {
                say("tool_name", call.name.as_str().into());
                say("call_id", call.id.to_string().into());
                say("provider_id", call.provider_id.as_str().into());
            }
        }
        (Entry::Assistant { native, .. }, Part::Native) => {
            let family = native.as_ref().map(|native| native.family.as_str());
            say("family", family.into());
        }
        (
            Entry::ToolResult {
                call_id,
                provider_id,
                name,
                is_error,
                attachments,
                ..
            },
            _,
        ) => {
            say("tool_name", name.as_str().into());
            say("success", (!is_error).into());
            say("call_id", call_id.to_string().into());
            say("provider_id", provider_id.as_str().into());
            if !attachments.is_empty() {
                say("attachments", names(attachments));
            }
        }
        (Entry::Assistant { .. } | Entry::Note { .. }, _) => {}
    }
    metadata
}

/// Returns an id that is unique in the session: from the `seq` of a message, or the id of a call.
fn entry_id(entry: &CountedEntry, part: Part) -> String {
    let of_call = |id: &CallId, what: &str| format!("{what}:{id}");
    match (&**entry, part, entry.stamp()) {
        (Entry::User { seq, .. }, _, _) => format!("message:{seq}"),
        (Entry::ToolResult { call_id, .. }, _, _) => of_call(call_id, "result"),
        (Entry::Assistant { calls, .. }, Part::Call(nth), _) => {
            let call = calls.get(nth);
            call.map_or_else(String::new, |call| of_call(&call.id, "call"))
        }
        (Entry::Note { .. }, _, Some(stamp)) => format!("note:{}.{}", stamp.seq, stamp.nth),
        (Entry::Assistant { .. }, Part::Native, Some(stamp)) => format!("thinking:{}", stamp.seq),
        (Entry::Assistant { .. }, Part::Said, Some(stamp)) => format!("message:{}", stamp.seq),
        (Entry::Note { .. } | Entry::Assistant { .. }, _, None) => "unknown".to_owned(),
    }
}

fn names(attachments: &[Attachment]) -> Value {
    let names = attachments.iter().map(|it| json!(it.name));
    names.collect()
}

/// Returns the entry reduced to these parts; `None` if there are none. If all parts stay, it is the original.
pub(super) fn reduced(entry: &Arc<CountedEntry>, kept: &[Part]) -> Option<Arc<CountedEntry>> {
    let all = parts(entry).count();
    if kept.is_empty() {
        return None;
    }
    let Entry::Assistant { text, calls, .. } = &***entry else {
        return Some(Arc::clone(entry));
    };
    if kept.len() == all {
        return Some(Arc::clone(entry));
    }
    let stays = calls.iter().enumerate();
    let stays = stays.filter(|(nth, _)| kept.contains(&Part::Call(*nth)));
    let calls: Vec<_> = stays.map(|(_, call)| call.clone()).collect();
    let text = if kept.contains(&Part::Said) {
        text.clone()
    } else {
        String::new()
    };
    (!text.is_empty() || !calls.is_empty()).then(|| {
        entry.reworded(Entry::Assistant {
            text,
            calls,
            // Signed reasoning covers the whole message: with a part of it the vendor refuses it.
            native: None,
        })
    })
}
