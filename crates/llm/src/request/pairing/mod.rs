//! Puts messages into the order that every vendor requires: an answer's calls, then all of their results,
//! then the rest. `history` repairs a transcript; this module is the last check before sending. Pure.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};
use tracing::warn;

use crate::stream::tagged::without_thoughts;
use sepal_core::domain::{Attachment, CallId, Entry, ModelCall, Native};

/// Replaces a missing first message of a person.
const BEGINS: &str = "The beginning of this conversation is not shown.";
/// Follows the last message if that is a text of the model.
const GO_ON: &str = "Please go on.";

/// One message of the conversation.
#[derive(Debug, PartialEq)]
pub(crate) enum Step<'a> {
    /// Messages of people and system notes since the model's last message, in order; see
    /// [`Contents::parts`](crate::Contents::parts).
    User(Vec<Said<'a>>),
    /// The model's answer, and its calls with their results, in order.
    Assistant {
        text: &'a str,
        native: Option<&'a Native>,
        calls: Vec<PairedCall<'a>>,
    },
}

/// A part of a person's message.
#[derive(Debug, PartialEq)]
pub(crate) enum Said<'a> {
    Text(Cow<'a, str>),
    Attachment(&'a Attachment),
}

impl Said<'_> {
    fn is_blank(&self) -> bool {
        match self {
            Self::Text(text) => text.trim().is_empty(),
            Self::Attachment(_) => false,
        }
    }
}

/// A call and its result.
#[derive(Debug, PartialEq)]
pub(crate) struct PairedCall<'a> {
    pub(crate) call: &'a ModelCall,
    pub(crate) result: &'a str,
    /// True if the call failed, was refused, or has an unknown outcome.
    pub(crate) is_error: bool,
    /// Pictures of the result; see [`Contents::result`](crate::Contents::result).
    pub(crate) attachments: &'a [Attachment],
}

/// Pairs calls and results. A call without its result, or a result without its call, comes from old or
/// foreign data and is left out with a warning (S1.16). Consecutive messages of people are joined, because
/// some servers require alternation; empty messages are dropped.
pub(crate) fn pair<'a>(entries: impl Iterator<Item = &'a Entry> + Clone) -> Vec<Step<'a>> {
    let mut results = results(entries.clone());
    let mut steps = Vec::with_capacity(entries.size_hint().0);
    for entry in entries {
        match entry {
            Entry::User {
                text, attachments, ..
            } => {
                push_user(&mut steps, Cow::Borrowed(text));
                let attached = attachments.iter().map(Said::Attachment);
                attached.for_each(|said| push_said(&mut steps, said));
            }
            Entry::Note { text } => push_user(&mut steps, Cow::Owned(note(text))),
            Entry::Assistant {
                text,
                calls: asked,
                native,
            } => {
                let calls: Vec<_> = asked
                    .iter()
                    .filter_map(|call| take_result(&mut results, call))
                    .collect();
                // Text beside native blocks is sent as it came: the blocks may point into it.
                let text = if native.is_some() {
                    text
                } else {
                    without_thoughts(text)
                };
                if text.is_empty() && calls.is_empty() {
                    continue;
                }
                // Native blocks are placed by call index, so they are kept only if no call before a kept one
                // is missing.
                let mut places = asked.iter().zip(&calls);
                let has_places = places.all(|(asked, paired)| asked.id == paired.call.id);
                steps.push(Step::Assistant {
                    text,
                    native: native.as_ref().filter(|_| has_places),
                    calls,
                });
            }
            Entry::ToolResult { .. } => {}
        }
    }
    for id in results.keys() {
        warn!(call.id = %id, "Leave out the result of `{id}`: its call is gone");
    }
    steps
}

/// A system note in the form in which the model reads it. It is sent as a user message, because several
/// servers refuse a `system` message after the first; the mark distinguishes it from a person's words.
fn note(text: &str) -> String {
    format!("[System note] {text}")
}

/// Like [`pair`], for vendors that require the conversation to start and end with a user message. Existing
/// messages stay unchanged; missing ones are added as system notes.
pub(crate) fn pair_between_people<'a>(
    entries: impl Iterator<Item = &'a Entry> + Clone,
) -> Vec<Step<'a>> {
    let mut steps = pair(entries);
    steps.retain(|step| !matches!(step, Step::User(said) if said.iter().all(Said::is_blank)));
    if !matches!(steps.first(), Some(Step::User(_))) {
        steps.insert(0, Step::User(vec![Said::Text(Cow::Owned(note(BEGINS)))]));
    }
    if matches!(steps.last(), Some(Step::Assistant { calls, .. }) if calls.is_empty()) {
        steps.push(Step::User(vec![Said::Text(Cow::Owned(note(GO_ON)))]));
    }
    steps
}

/// The wire ids of calls, by our ids: the provider's own id if `is_fit` accepts it, else ours. Vendors
/// require ids to be unique in a request and at most 40 characters long.
pub(crate) fn wire_ids<'a>(
    steps: &[Step<'a>],
    is_fit: fn(&str) -> bool,
) -> HashMap<&'a CallId, &'a str> {
    let calls = steps.iter().flat_map(|step| match step {
        Step::Assistant { calls, .. } => calls.as_slice(),
        Step::User(_) => &[],
    });
    let count = calls.clone().count();
    let (mut taken, mut ids) = (HashSet::with_capacity(count), HashMap::with_capacity(count));
    for PairedCall { call, .. } in calls {
        let own = call.provider_id.as_str();
        let usable = !own.is_empty() && own.len() <= 40 && is_fit(own) && taken.insert(own);
        ids.insert(&call.id, if usable { own } else { call.id.as_str() });
    }
    ids
}

/// Arguments as an object. Vendors refuse a history with anything else, so other values are put under one
/// key.
pub(crate) fn object_of(args: &Value) -> Cow<'_, Value> {
    match args {
        Value::Object(_) => Cow::Borrowed(args),
        Value::Null => Cow::Owned(Value::Object(Map::new())),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            let whole = Map::from_iter([("arguments".to_owned(), args.clone())]);
            Cow::Owned(Value::Object(whole))
        }
    }
}

/// A result's text, true if it is an error, and its pictures.
type Outcome<'a> = (&'a str, bool, &'a [Attachment]);

fn results<'a>(entries: impl Iterator<Item = &'a Entry>) -> HashMap<&'a CallId, Outcome<'a>> {
    // Allocates for all entries at once: a long conversation consists mostly of results.
    let mut found = HashMap::with_capacity(entries.size_hint().0);
    for entry in entries {
        if let Entry::ToolResult {
            call_id,
            text,
            is_error,
            attachments,
            ..
        } = entry
        {
            let outcome = (text.as_str(), *is_error, attachments.as_slice());
            found.entry(call_id).or_insert(outcome);
        }
    }
    found
}

fn take_result<'a>(
    results: &mut HashMap<&CallId, Outcome<'a>>,
    call: &'a ModelCall,
) -> Option<PairedCall<'a>> {
    let Some((result, is_error, attachments)) = results.remove(&call.id) else {
        let id = &call.id;
        warn!(call.id = %id, tool.name = %call.name, "Leave out the call `{id}`: it has no result");
        return None;
    };
    Some(PairedCall {
        call,
        result,
        is_error,
        attachments,
    })
}

fn push_user<'a>(steps: &mut Vec<Step<'a>>, text: Cow<'a, str>) {
    if text.is_empty() {
        return;
    }
    if let Some(Step::User(said)) = steps.last_mut()
        && let Some(Said::Text(before)) = said.last_mut()
    {
        let before = before.to_mut();
        before.push_str("\n\n");
        before.push_str(&text);
    } else {
        push_said(steps, Said::Text(text));
    }
}

fn push_said<'a>(steps: &mut Vec<Step<'a>>, said: Said<'a>) {
    if let Some(Step::User(all)) = steps.last_mut() {
        all.push(said);
    } else {
        steps.push(Step::User(vec![said]));
    }
}

#[cfg(test)]
mod tests;
