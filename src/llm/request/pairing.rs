//! The order that every vendor insists on: a message's calls, then all of their results, then the
//! rest. `history` repairs a transcript; this is the last guard before the wire. Pure.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};
use tracing::warn;

use crate::domain::{Attachment, CallId, Entry, ModelCall, Native};

/// Stands where a conversation's first message should be.
const BEGINS: &str = "The beginning of this conversation is not shown.";
/// Stands where a conversation ends with the model's own words.
const GO_ON: &str = "Please go on.";

/// One message of the conversation.
#[derive(Debug, PartialEq)]
pub(in crate::llm) enum Step<'a> {
    /// What people, or the system on the side, said since the model's last message, in its order; see
    /// [`Contents::parts`](crate::llm::Contents::parts).
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
pub(in crate::llm) enum Said<'a> {
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
pub(in crate::llm) struct PairedCall<'a> {
    pub(in crate::llm) call: &'a ModelCall,
    pub(in crate::llm) result: &'a str,
    /// Whether the call failed, was refused, or nobody knows.
    pub(in crate::llm) is_error: bool,
    /// Pictures of the result; see [`Contents::result`](crate::llm::Contents::result).
    pub(in crate::llm) attachments: &'a [Attachment],
}

/// Pairs calls and results. A call without its result, or a result without its call, comes from old
/// or foreign data: it is left out with a warning (S1.16). Messages of one side that follow each other
/// become one, because some servers insist on alternation; empty ones vanish.
pub(in crate::llm) fn pair<'a>(entries: impl Iterator<Item = &'a Entry> + Clone) -> Vec<Step<'a>> {
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
pub(in crate::llm) fn pair_between_people<'a>(
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
pub(in crate::llm) fn wire_ids<'a>(
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
pub(in crate::llm) fn object_of(args: &Value) -> Cow<'_, Value> {
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
mod tests {
    use serde_json::json;

    use super::{BEGINS, GO_ON, Said, Step, note, object_of, pair, pair_between_people, wire_ids};
    use crate::domain::{Attachment, BlobId, CallId, Entry, MediaType, ModelCall, Native};

    fn user(text: &str) -> Entry {
        Entry::User {
            seq: 0,
            text: text.to_owned(),
            attachments: vec![],
        }
    }

    fn asks(provider_ids: &[&str]) -> Entry {
        let call = |(index, id): (usize, &&str)| ModelCall {
            id: CallId::new(1, index),
            provider_id: (*id).to_owned(),
            name: "t".to_owned(),
            args: json!({}),
        };
        Entry::Assistant {
            text: String::new(),
            calls: provider_ids.iter().enumerate().map(call).collect(),
            native: None,
        }
    }

    fn result(index: usize, text: &str) -> Entry {
        Entry::ToolResult {
            call_id: CallId::new(1, index),
            provider_id: String::new(),
            name: "t".to_owned(),
            text: text.to_owned(),
            is_error: false,
            attachments: vec![],
        }
    }

    /// `u:text` for people, `a:text[results]` for the model.
    fn check(entries: &[Entry], expected: &str) {
        assert_eq!(shown(&pair(entries.iter())), expected);
    }

    fn shown(steps: &[Step<'_>]) -> String {
        steps
            .iter()
            .map(|step| match step {
                Step::User(said) => {
                    let said = said.iter().map(|said| match said {
                        Said::Text(text) => text.to_string(),
                        Said::Attachment(attachment) => format!("[{}]", attachment.name),
                    });
                    format!("u:{}", said.collect::<Vec<_>>().join("+"))
                }
                Step::Assistant { text, calls, .. } => {
                    let results: Vec<_> = calls.iter().map(|call| call.result).collect();
                    format!("a:{text}[{}]", results.join(","))
                }
            })
            .collect::<Vec<_>>()
            .join(" | ")
    }

    /// Asserts S3.5.
    #[test]
    fn results_follow_their_calls_whatever_stands_between() {
        check(&[user("hi"), asks(&["x"]), result(0, "r")], "u:hi | a:[r]");
        check(
            &[asks(&["x", "y"]), result(1, "2"), result(0, "1")],
            "a:[1,2]",
        );
        check(
            &[asks(&["x"]), user("steer"), result(0, "r"), user("more")],
            "a:[r] | u:steer\n\nmore",
        );
    }

    /// S1.16, S1.21: a call without its result and a result without its call are left out.
    #[test]
    fn orphans_of_both_directions_are_left_out() {
        check(&[asks(&["x"])], "");
        check(&[user("hi"), asks(&["x"]), user("ho")], "u:hi\n\nho");
        check(&[asks(&["x", "y", "z"]), result(1, "2")], "a:[2]");
        check(&[user("hi"), result(0, "r")], "u:hi");
        check(&[asks(&["x"]), result(0, "1"), result(0, "2")], "a:[1]");
    }

    #[test]
    fn blocks_that_are_found_by_the_place_of_a_call_go_with_a_call_before_it() {
        fn check(results: &[usize], has_native: bool) {
            let mut said = asks(&["x", "y"]);
            if let Entry::Assistant { text, native, .. } = &mut said {
                "I look".clone_into(text);
                *native = Some(Native {
                    family: "f".to_owned(),
                    blocks: json!([]),
                });
            }
            let results = results.iter().map(|index| result(*index, "r"));
            let entries: Vec<Entry> = [said].into_iter().chain(results).collect();
            let steps = pair(entries.iter());
            let [Step::Assistant { native, .. }] = steps.as_slice() else {
                panic!("one message: {steps:?}")
            };
            assert_eq!(native.is_some(), has_native, "{entries:?}");
        }
        check(&[0, 1], true);
        check(&[0], true);
        check(&[], true);
        check(&[1], false);
    }

    /// Asserts S3.41.
    #[test]
    fn empty_messages_vanish_and_notes_are_marked() {
        let empty = Entry::Assistant {
            text: String::new(),
            calls: vec![],
            native: None,
        };
        let note = Entry::Note {
            text: "it ran".to_owned(),
        };
        check(
            &[user("a"), empty, user(""), note],
            "u:a\n\n[System note] it ran",
        );
    }

    /// Asserts S3.19.
    #[test]
    fn what_is_attached_stays_at_its_place_between_texts() {
        let attached = |text: &str| Entry::User {
            seq: 0,
            text: text.to_owned(),
            attachments: vec![Attachment {
                id: BlobId::of(b""),
                name: "cat".to_owned(),
                media_type: MediaType::Png,
                bytes: 0,
                width: None,
                height: None,
            }],
        };
        check(&[attached("a"), user("b"), user("c")], "u:a+[cat]+b\n\nc");
        let entries = [attached("")];
        assert_eq!(shown(&pair_between_people(entries.iter())), "u:[cat]");
    }

    #[test]
    fn a_provider_id_that_cannot_be_used_is_replaced_by_ours() {
        let long = "x".repeat(41);
        let results = (0..4).map(|index| result(index, "r"));
        let asked = asks(&["same", "same", "", &long]);
        let entries: Vec<Entry> = [asked].into_iter().chain(results).collect();
        let steps = pair(entries.iter());
        let ids = wire_ids(&steps, |_| true);
        let of = |index| ids[&CallId::new(1, index)];
        assert_eq!(
            [of(0), of(1), of(2), of(3)],
            ["same", "call_1_1", "call_1_2", "call_1_3"]
        );
    }

    #[test]
    fn arguments_are_always_objects() {
        for (args, object) in [
            (json!({"a": 1}), json!({"a": 1})),
            (json!(null), json!({})),
            (json!("{oops"), json!({"arguments": "{oops"})),
        ] {
            assert_eq!(*object_of(&args), object);
        }
    }

    #[test]
    fn people_begin_and_have_the_last_word() {
        fn check(entries: &[Entry], expected: &str) {
            assert_eq!(shown(&pair_between_people(entries.iter())), expected);
        }
        let says = |text: &str| Entry::Assistant {
            text: text.to_owned(),
            calls: vec![],
            native: None,
        };
        let (begins, go_on) = (note(BEGINS), note(GO_ON));
        check(&[user("hi")], "u:hi");
        check(&[], &format!("u:{begins}"));
        check(
            &[user(" \n"), asks(&["x"]), result(0, "r")],
            &format!("u:{begins} | a:[r]"),
        );
        check(
            &[says("a"), user("b"), says("c")],
            &format!("u:{begins} | a:a[] | u:b | a:c[] | u:{go_on}"),
        );
    }

    #[test]
    fn an_id_that_the_vendor_refuses_is_replaced_by_ours() {
        let entries = [
            asks(&["fine", "functions.read:0"]),
            result(0, "r"),
            result(1, "r"),
        ];
        let steps = pair(entries.iter());
        let ids = wire_ids(&steps, |id| !id.contains('.'));
        assert_eq!(ids[&CallId::new(1, 0)], "fine");
        assert_eq!(ids[&CallId::new(1, 1)], "call_1_1");
    }
}
