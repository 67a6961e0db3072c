//! Broken and foreign histories, and the messages that remain of them.

use serde_json::json;

use super::{BEGINS, GO_ON, Said, Step, note, object_of, pair, pair_between_people, wire_ids};
use sepal_core::domain::{Attachment, BlobId, CallId, Entry, MediaType, ModelCall, Native};

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

/// Compares messages as `u:text` for people and `a:text[results]` for the model.
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

#[test]
fn thoughts_that_an_answer_has_in_its_text_are_not_sent_back() {
    let said = |text: &str| Entry::Assistant {
        text: text.to_owned(),
        calls: vec![],
        native: None,
    };
    check(
        &[user("hi"), said("<think>hm</think>yes")],
        "u:hi | a:yes[]",
    );
    check(&[user("hi"), said("<think>hm</think>")], "u:hi");
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
                compacts: false,
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
            source: None,
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
