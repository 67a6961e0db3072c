//! The order that every vendor insists on: a message's calls, then all of their results, then the
//! rest. `history` repairs a transcript; this is the last guard before the wire. Pure.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};
use tracing::warn;

use sepal_core::domain::{Attachment, CallId, Entry, ModelCall, Native};

/// Stands where a conversation's first message should be.
const BEGINS: &str = "The beginning of this conversation is not shown.";
/// Stands where a conversation ends with the model's own words.
const GO_ON: &str = "Please go on.";

/// One message of the conversation.
#[derive(Debug, PartialEq)]
pub(crate) enum Step<'a> {
    /// What people, or the system on the side, said since the model's last message, in its order; see
    /// [`Contents::parts`](crate::Contents::parts).
    User(Vec<Said<'a>>),
    /// What the model said, and what became of its calls, in their order.
    Assistant {
        text: &'a str,
        native: Option<&'a Native>,
        calls: Vec<PairedCall<'a>>,
    },
}

/// A part of what people said.
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
    /// Whether the call failed, was refused, or nobody knows.
    pub(crate) is_error: bool,
    /// Pictures of the result; see [`Contents::result`](crate::Contents::result).
    pub(crate) attachments: &'a [Attachment],
}

/// Pairs calls and results. A call without its result, or a result without its call, comes from old
/// or foreign data: it is left out with a warning (S1.16). Messages of one side that follow each other
/// become one, because some servers insist on alternation; empty ones vanish.
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
                if text.is_empty() && calls.is_empty() {
                    continue;
                }
                // What belongs to a call is found by the call's place, so none before it may be gone.
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

/// A remark of the system, as the model reads it. It goes as a user message because several
/// servers refuse a `system` message after the first; the mark tells it from a person's words.
fn note(text: &str) -> String {
    format!("[System note] {text}")
}

/// The same for vendors that insist that people begin and have the last word. Nobody's words are
/// changed; what is missing is said by the system.
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

/// The ids under which calls go out: the provider's own where `is_fit` says that they can be used,
/// else ours. A map from our id; ids are unique in a request and at most 40 characters, as vendors
/// demand.
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

/// Arguments as an object: vendors refuse a history with anything else, so what a model wrote wrongly
/// is kept under one key.
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

/// A result's text, whether it tells of a failure, and its pictures.
type Outcome<'a> = (&'a str, bool, &'a [Attachment]);

fn results<'a>(entries: impl Iterator<Item = &'a Entry>) -> HashMap<&'a CallId, Outcome<'a>> {
    // Room for all at once: a long conversation is mostly results.
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
