//! Tables for this folder.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Answer, Collector};
use crate::{Finish, ModelEvent};
use sepal_core::domain::{Native, TokenUsage};

fn fold(events: &[ModelEvent]) -> Answer {
    let mut collector = Collector::default();
    for event in events {
        collector.push(event);
    }
    collector.finish()
}

fn args(index: usize, json: &str) -> ModelEvent {
    ModelEvent::CallArguments {
        index,
        json: json.to_owned(),
    }
}

fn call(index: usize, name: &str) -> ModelEvent {
    ModelEvent::CallStarted {
        index,
        provider_id: format!("id{index}"),
        name: name.to_owned(),
    }
}

/// Asserts S3.24, S3.25.
#[test]
fn arguments_are_an_object_or_say_why_not() {
    fn check(raw: &str, expected: Result<Value, &str>) {
        let end = ModelEvent::Finished(Finish::Calls);
        let answer = fold(&[call(0, "t"), args(0, raw), end]);
        let got = answer.calls[0].args.clone().map_err(|e| e.to_string());
        match expected {
            Ok(value) => assert_eq!(got, Ok(value), "{raw}"),
            Err(start) => assert!(got.unwrap_err().starts_with(start), "{raw}"),
        }
    }
    check("", Ok(json!({})));
    check(" \n", Ok(json!({})));
    check("null", Ok(json!({})));
    check(r#"{"a":[1]}"#, Ok(json!({"a": [1]})));
    check(r#""{\"a\":1}""#, Ok(json!({"a": 1})));
    check(
        "[]",
        Err("Invalid arguments format: expected a JSON object"),
    );
    check("7", Err("Invalid arguments format: expected"));
    check(r#""text""#, Err("Invalid arguments format: expected"));
    check(r#"{"a":"#, Err("Invalid arguments format: EOF"));
    check(&"[".repeat(5_000), Err("Invalid arguments format: "));
}

/// S3.25: the fate of one call, by how its answer ended: its arguments, an error, or dropped.
#[test]
fn a_call_is_only_what_the_end_left_whole() {
    fn check(finish: Finish, name: &str, raw: &str, expected: &str) {
        let answer = fold(&[call(0, name), args(0, raw), ModelEvent::Finished(finish)]);
        let shown = match answer.calls.first().map(|call| &call.args) {
            Some(Ok(args)) => args.to_string(),
            Some(Err(invalid)) => invalid.to_string(),
            None => format!("dropped {}", answer.dropped_calls),
        };
        assert!(
            shown.starts_with(expected),
            "{finish:?} {name} {raw}: {shown}"
        );
    }
    let cut = "Not run: the answer was cut off";
    for whole in [Finish::Stop, Finish::Calls] {
        check(whole, "t", "", "{}");
        check(whole, "t", r#"{"a":1}"#, r#"{"a":1}"#);
        check(whole, "t", r#"{"a":"#, "Invalid arguments format: EOF");
    }
    for short in [Finish::Length, Finish::Other] {
        check(short, "t", "", cut);
        check(short, "t", " ", cut);
        check(short, "t", r#"{"a":"#, cut);
        check(short, "t", r#"{"a":1}"#, r#"{"a":1}"#);
        check(short, "t", "{}", "{}");
        check(short, "t", "[]", "Invalid arguments format: expected");
    }
    for raw in ["", r#"{"a":1}"#, r#"{"a":"#] {
        check(Finish::Filtered, "t", raw, "dropped 1");
        for finish in [Finish::Stop, Finish::Calls, Finish::Length, Finish::Other] {
            check(finish, "", raw, "dropped 1");
            check(finish, " ", raw, "dropped 1");
        }
    }
    // The dropped call leaves nothing pending, and no native block that refers to it.
    let native = Native {
        family: "f".into(),
        blocks: json!([]),
        compacts: false,
    };
    let answer = fold(&[
        call(0, ""),
        ModelEvent::Native(native),
        ModelEvent::Finished(Finish::Calls),
    ]);
    assert_eq!((answer.finish, answer.native), (Some(Finish::Stop), None));
}

#[test]
fn a_call_counts_as_whole_only_when_its_arguments_are() {
    let mut collector = Collector::default();
    assert!(!collector.has_whole_call());
    for (event, whole) in [
        (call(0, "t"), false),
        (args(0, r#"{"a""#), false),
        (args(0, ":1}"), true),
    ] {
        collector.push(&event);
        assert_eq!(collector.has_whole_call(), whole, "{event:?}");
    }
    let mut second = Collector::default();
    second.push(&call(0, "t"));
    second.push(&call(1, "t"));
    assert!(second.has_whole_call(), "the next call ends the one before");
}

fn any_event() -> impl Strategy<Value = ModelEvent> {
    prop_oneof![
        ".{0,6}".prop_map(ModelEvent::Text),
        ".{0,6}".prop_map(ModelEvent::Reasoning),
        (0..4_usize).prop_map(|index| call(index, "t")),
        (0..4_usize, ".{0,6}").prop_map(|(index, json)| args(index, &json)),
        any::<u64>().prop_map(|n| ModelEvent::Usage(TokenUsage {
            input_tokens: n,
            ..TokenUsage::default()
        })),
        Just(ModelEvent::Finished(Finish::Stop)),
    ]
}

proptest! {
    #[test]
    fn any_events_fold_without_loss_of_text(events in prop::collection::vec(any_event(), 0..40)) {
        let answer = fold(&events);
        let text: String = events
            .iter()
            .filter_map(|event| if let ModelEvent::Text(text) = event { Some(text.as_str()) } else { None })
            .collect();
        prop_assert_eq!(answer.text, text);
        prop_assert!(answer.calls.len() <= 4);
    }

    #[test]
    fn how_arguments_are_split_does_not_matter(
        map in prop::collection::btree_map("[a-z]{1,4}", "\\PC{0,8}", 0..4),
        at in any::<prop::sample::Index>(),
    ) {
        let text = serde_json::to_string(&map).unwrap();
        let cut = (0..=text.len()).filter(|&i| text.is_char_boundary(i)).collect::<Vec<_>>();
        let (head, tail) = text.split_at(cut[at.index(cut.len())]);
        let whole = fold(&[call(0, "t"), args(0, &text)]);
        let split = fold(&[call(0, "t"), args(0, head), args(0, tail)]);
        prop_assert_eq!(&whole, &split);
        prop_assert_eq!(whole.calls[0].args.clone(), Ok(json!(map)));
    }
}
