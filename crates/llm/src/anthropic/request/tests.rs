//! Tables for this file.

use std::sync::Arc;

use serde_json::{Value, json};

use super::thinking::Plan;
use super::{Body, Terms, input_schema};
use crate::{Compacting, Request};
use sepal_core::domain::{CallId, Entry, ModelCall, Native, Tool, ToolAnnotations};

fn user(text: &str) -> Entry {
    Entry::User {
        seq: 1,
        text: text.to_owned(),
        attachments: vec![],
    }
}

fn says(text: &str, calls: Vec<ModelCall>, native: Option<Value>) -> Entry {
    Entry::Assistant {
        text: text.to_owned(),
        calls,
        native: native.map(|blocks| Native {
            family: "anthropic".to_owned(),
            blocks,
            compacts: false,
        }),
    }
}

fn call(index: usize, provider_id: &str, args: Value) -> ModelCall {
    ModelCall {
        id: CallId::new(1, index),
        provider_id: provider_id.to_owned(),
        name: "files.read".to_owned(),
        args,
    }
}

fn result(index: usize, text: &str, is_error: bool) -> Entry {
    Entry::ToolResult {
        call_id: CallId::new(1, index),
        provider_id: String::new(),
        name: "files.read".to_owned(),
        text: text.to_owned(),
        is_error,
        attachments: vec![],
    }
}

fn request(entries: Vec<Entry>) -> Request {
    Request {
        model: "m".to_owned(),
        system: Some("be kind".into()),
        entries: entries.into(),
        tools: Arc::from([]),
        deferral: None,
        temperature: None,
        effort: None,
        max_tokens: None,
        max_output: None,
        affordable: None,
        compacting: None,
        contents: crate::Contents::default(),
    }
}

fn body<'a>(request: &'a Request, family: &str) -> Body<'a> {
    let plan = Plan {
        max_tokens: 8_192,
        temperature: request.temperature,
        ..Plan::default()
    };
    let terms = Terms {
        plan: &plan,
        family,
        cache_ttl: None,
        is_searching: false,
        compact_from: None,
    };
    super::body(request, terms)
}

fn sent(request: &Request) -> Value {
    serde_json::to_value(body(request, "anthropic")).unwrap()
}

/// The messages without their cache marks.
fn messages(entries: Vec<Entry>) -> Value {
    let mut messages = sent(&request(entries))["messages"].clone();
    for message in messages.as_array_mut().unwrap() {
        for block in message["content"].as_array_mut().unwrap() {
            block.as_object_mut().unwrap().remove("cache_control");
        }
    }
    messages
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Asserts S3.9.
#[test]
fn a_plain_request_holds_only_what_is_set() {
    let mut request = request(vec![user("hi")]);
    let cache = json!({"type": "ephemeral"});
    assert_eq!(
        sent(&request),
        json!({
            "model": "m", "max_tokens": 8192, "stream": true,
            "system": [{"type": "text", "text": "be kind", "cache_control": cache}],
            "messages": [{"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": cache}]}],
        })
    );
    request.temperature = Some(0.0);
    request.system = Some("  ".into());
    let sent = sent(&request);
    assert_eq!(sent["temperature"], 0.0);
    assert!(sent.get("system").is_none(), "{sent}");
}

/// Asserts S3.8, O3.
#[test]
fn one_batch_is_answered_in_one_message_and_people_speak_after_it() {
    let calls = vec![
        call(0, "toolu_1", json!({"path": "a"})),
        call(1, "bad:id", json!("{oops")),
    ];
    let sent = messages(vec![
        user("read"),
        says("I look", calls, None),
        result(1, " \n", true),
        user("hurry"),
        result(0, "A", false),
    ]);
    let name = &sent[1]["content"][1]["name"];
    assert!(name.as_str().unwrap().starts_with("files_read_"));
    assert_eq!(
        sent,
        json!([
            {"role": "user", "content": [text("read")]},
            {"role": "assistant", "content": [
                text("I look"),
                {"type": "tool_use", "id": "toolu_1", "name": name, "input": {"path": "a"}},
                {"type": "tool_use", "id": "call_1_1", "name": name, "input": {"arguments": "{oops"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "A"},
                {"type": "tool_result", "tool_use_id": "call_1_1", "is_error": true},
                text("hurry"),
            ]},
        ])
    );
}

#[test]
fn odd_conversations_become_ones_that_the_vendor_takes() {
    fn roles(entries: Vec<Entry>) -> String {
        let messages = messages(entries);
        let messages = messages.as_array().unwrap();
        for message in messages {
            let content = message["content"].as_array().unwrap();
            assert!(!content.is_empty());
            for block in content {
                let text = block.get("text").and_then(Value::as_str);
                assert!(text.is_none_or(|text| !text.trim().is_empty()), "{block}");
            }
        }
        let roles = messages
            .iter()
            .map(|message| message["role"].as_str().unwrap());
        roles.map(|role| &role[..1]).collect()
    }
    assert_eq!(roles(vec![]), "u");
    assert_eq!(roles(vec![says("a", vec![], None)]), "uau");
    assert_eq!(
        roles(vec![
            user("a"),
            says("b", vec![], None),
            says("c", vec![], None)
        ]),
        "uau"
    );
    assert_eq!(
        roles(vec![user("a"), says(" ", vec![], None), user("b")]),
        "u"
    );
    let asks = |text| says(text, vec![call(0, "", json!(null))], None);
    let answered = || result(0, "r", false);
    assert_eq!(roles(vec![user("a"), asks(""), answered()]), "uau");
    assert_eq!(roles(vec![user("a"), asks("")]), "u");
    assert_eq!(roles(vec![user("a"), asks("b")]), "uau");
    assert_eq!(
        roles(vec![
            asks(" "),
            answered(),
            says("b", vec![], None),
            user("c")
        ]),
        "uauau"
    );
    assert_eq!(
        roles(vec![
            user("\n"),
            Entry::Note {
                text: "n".to_owned()
            }
        ]),
        "u"
    );
}

#[test]
fn native_blocks_go_back_to_their_family_at_their_places() {
    let thought = |text: &str| json!({"type": "thinking", "thinking": text, "signature": "s"});
    let native = json!([
        {"place": {"text": 0, "calls": 0}, "block": thought("one")},
        {"place": {"text": 2, "calls": 0}, "block": {"type": "redacted_thinking", "data": "x"}},
        {"odd": true},
    ]);
    let said = says("hiyo", vec![call(0, "toolu_1", json!({}))], Some(native));
    let entries = vec![user("a"), said, result(0, "r", false)];
    let with = request(entries);
    let content = &sent(&with)["messages"][1]["content"];
    assert_eq!(content[0], thought("one"));
    assert_eq!(content[1], text("hi"));
    assert_eq!(content[2]["data"], "x");
    assert_eq!(content[3], text("yo"));
    assert_eq!(content[4]["type"], "tool_use");
    let foreign = serde_json::to_value(body(&with, "anthropic/other")).unwrap();
    let content = &foreign["messages"][1]["content"];
    assert_eq!(
        (&content[0], &content[1]["type"]),
        (&text("hiyo"), &json!("tool_use"))
    );
}

/// Adds a tool, so that all four marks can be set.
fn with_tools(entries: Vec<Entry>) -> Request {
    let tool = |name: &str| Tool {
        name: name.to_owned(),
        title: None,
        description: "Reads".to_owned(),
        input_schema: json!({"type": "object"}),
        output_schema: None,
        annotations: ToolAnnotations::default(),
        needs_tasks: false,
        view: None,
        runs_as_task: false,
    };
    Request {
        tools: Arc::from([tool("a"), tool("2b"), tool("a")]),
        ..request(entries)
    }
}

#[test]
fn four_marks_at_most_stand_on_what_the_next_request_repeats() {
    let mut entries = vec![user("one")];
    for index in 0..5 {
        entries.push(says("", vec![call(index, "", json!({}))], None));
        entries.push(result(index, "r", false));
        let sent = sent(&with_tools(entries.clone()));
        assert_eq!(sent.to_string().matches("cache_control").count(), 4);
        assert_eq!(sent["tools"].as_array().unwrap().len(), 2);
        assert!(sent["tools"][1].get("cache_control").is_some());
        assert_eq!(sent["tool_choice"], json!({"type": "auto"}));
        let messages = sent["messages"].as_array().unwrap();
        let marked = |at: usize| {
            let last = messages[at]["content"].as_array().unwrap().last().unwrap();
            last.get("cache_control").is_some()
        };
        assert!(marked(messages.len() - 1) && marked(messages.len() - 3));
    }
}

/// The cache matches a prefix by everything except the marks.
#[test]
fn what_was_sent_stays_the_same_to_the_byte_as_the_conversation_grows() {
    fn prefix(request: &Request) -> String {
        let text = serde_json::to_string(&body(request, "anthropic")).unwrap();
        let text = text.replace(r#","cache_control":{"type":"ephemeral"}"#, "");
        let end = text.find(r#"],"stream":true"#).unwrap();
        text[..end].to_owned()
    }
    let thought = json!([{"place": {"text": 0, "calls": 0}, "block": {"type": "thinking", "thinking": "t", "signature": "s"}}]);
    let all = [
        user("one"),
        says(
            "two",
            vec![call(0, "toolu_1", json!({"b": 1, "a": 2}))],
            Some(thought),
        ),
        result(0, "three", false),
        says("four", vec![], None),
        user("five"),
        says("six", vec![], None),
        user("seven"),
    ];
    let mut before = String::new();
    for whole in [1, 3, 5, 7] {
        let now = prefix(&with_tools(all[..whole].to_vec()));
        assert!(now.starts_with(&before), "{before}\n{now}");
        before = now;
    }
}

/// Twenty turns with parallel calls whose results arrive in another order.
#[test]
fn a_cache_finds_every_request_of_twenty_turns_in_the_one_after_it() {
    let thought = |name: &str, calls: usize| json!({"place": {"text": 0, "calls": calls}, "block": {"type": "thinking", "thinking": "", "signature": name}});
    let (mut entries, mut before) = (Vec::new(), String::new());
    for turn in 0..20 {
        entries.push(user(&format!("question {turn}")));
        let mut asked = vec![entries.clone()];
        let calls = [2 * turn, 2 * turn + 1];
        let native = json!([thought("a", 0), thought("b", 1)]);
        let ask = |index: usize| {
            call(
                index,
                &format!("toolu_{index}"),
                json!({"z": 1, "a": index}),
            )
        };
        entries.push(says("I look", calls.map(ask).to_vec(), Some(native)));
        let results = calls.iter().rev();
        entries.extend(results.map(|&index| result(index, "found", index % 3 == 0)));
        asked.push(entries.clone());
        for entries in asked {
            let request = with_tools(entries);
            let sent = serde_json::to_string(&body(&request, "anthropic")).unwrap();
            let marks = sent.matches("cache_control").count();
            assert!((3..=4).contains(&marks), "{marks} marks in turn {turn}");
            let now = sent.replace(r#","cache_control":{"type":"ephemeral"}"#, "");
            let end = now.find(r#"],"stream":true"#).unwrap();
            // A person's message may follow in the message of results, so the end of that message is left
            // out.
            let now = now[..end].trim_end_matches("]}").to_owned();
            assert!(now.starts_with(&before), "turn {turn}:\n{before}\n{now}");
            before = now;
        }
        entries.push(says("answer", vec![], None));
    }
}

#[test]
fn marks_say_how_long_the_cache_keeps_what_it_is_given() {
    let plan = Plan::default();
    let request = with_tools(vec![user("one"), says("two", vec![], None), user("three")]);
    let terms = Terms {
        plan: &plan,
        family: "anthropic",
        cache_ttl: Some("1h"),
        is_searching: false,
        compact_from: None,
    };
    let sent = serde_json::to_string(&super::body(&request, terms)).unwrap();
    let mark = r#""cache_control":{"type":"ephemeral","ttl":"1h"}"#;
    assert_eq!(sent.matches(mark).count(), 4, "{sent}");
}

#[test]
fn schemas_are_objects_that_say_so() {
    let empty = json!({"type": "object", "properties": {}});
    for schema in [json!(null), json!([]), json!(true)] {
        assert_eq!(*input_schema(&schema), empty);
    }
    assert_eq!(
        *input_schema(&json!({"properties": {"a": {}}})),
        json!({"type": "object", "properties": {"a": {}}})
    );
    let own = json!({"type": "object", "$schema": "x", "additionalProperties": false});
    assert_eq!(*input_schema(&own), own);
}

/// A compaction block is sent only if the request resumes from the newest one.
#[test]
fn what_was_compacted_goes_back_where_the_request_goes_on_from_it() {
    let block = json!({"type": "compaction", "content": "All of it."});
    let kept = json!([{"place": {"text": 0, "calls": 0}, "block": block}]);
    for (resumes, expected) in [(true, 2), (false, 1)] {
        let mut asked = request(vec![
            user("a"),
            says("b", vec![], Some(kept.clone())),
            user("c"),
        ]);
        asked.compacting = Some(Compacting {
            threshold: 60_000,
            resumes,
        });
        let content = sent(&asked)["messages"][1]["content"].clone();
        assert_eq!(content.as_array().map(Vec::len), Some(expected));
        assert_eq!(content[0] == block, resumes, "{content}");
    }
}
