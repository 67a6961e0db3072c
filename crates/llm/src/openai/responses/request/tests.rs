//! Tables for this folder.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Omitted, Part, Strictness, body, tools};
use crate::openai::omitted::Lesson;
use crate::{Compacting, Request};
use sepal_core::domain::{CallId, Effort, Entry, ModelCall, Native, Tool, ToolAnnotations};

fn user(text: &str) -> Entry {
    Entry::User {
        seq: 1,
        text: text.to_owned(),
        attachments: vec![],
    }
}

fn says(text: &str, calls: Vec<ModelCall>, blocks: Option<Value>) -> Entry {
    Entry::Assistant {
        text: text.to_owned(),
        calls,
        native: blocks.map(|blocks| Native {
            family: "openai".to_owned(),
            blocks,
            compacts: false,
        }),
    }
}

fn call(iteration: i64, index: usize) -> ModelCall {
    ModelCall {
        id: CallId::new(iteration, index),
        provider_id: format!("fc{iteration}_{index}"),
        name: "files.read".to_owned(),
        args: json!({"path": "a"}),
    }
}

fn result(of: &ModelCall, text: &str) -> Entry {
    Entry::ToolResult {
        call_id: of.id.clone(),
        provider_id: of.provider_id.clone(),
        name: of.name.clone(),
        text: text.to_owned(),
        is_error: false,
        attachments: vec![],
    }
}

fn tool(name: &str, input_schema: Value) -> Tool {
    Tool {
        name: name.to_owned(),
        title: None,
        description: "Reads".to_owned(),
        input_schema,
        output_schema: None,
        annotations: ToolAnnotations::default(),
        needs_tasks: false,
        view: None,
        runs_as_task: false,
    }
}

fn request(entries: Vec<Entry>) -> Request {
    Request {
        model: "gpt-5.1".to_owned(),
        system: Some("be kind".into()),
        entries: entries.into(),
        ..Request::default()
    }
}

fn written(request: &Request, omitted: &Omitted) -> String {
    let tools = tools(&request.tools, Strictness::Possible).unwrap();
    serde_json::to_string(&body(request, tools.as_deref(), ("openai", omitted))).unwrap()
}

fn sent(request: &Request, omitted: &Omitted) -> Value {
    serde_json::from_str(&written(request, omitted)).unwrap()
}

fn input(entries: Vec<Entry>) -> Value {
    sent(&request(entries), &Omitted::default())["input"].clone()
}

fn thought(id: &str, text: usize, calls: usize) -> Value {
    json!({"place": {"text": text, "calls": calls},
        "block": {"type": "reasoning", "id": id, "summary": [], "encrypted_content": "e"}})
}

fn item(id: &str) -> Value {
    json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": "e"})
}

fn said(role: &str, text: &str) -> Value {
    json!({"type": "message", "role": role, "content": text})
}

fn asked(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "files_read_1b1f0f3a", "arguments": "{\"path\":\"a\"}"})
}

fn answered(id: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": "r"})
}

/// Replaces the names of calls, which contain a hash that the tests of names cover.
fn unnamed(mut items: Value) -> Value {
    for item in items.as_array_mut().unwrap() {
        if let Some(name) = item.get_mut("name") {
            *name = json!("files_read_1b1f0f3a");
        }
    }
    items
}

/// Asserts S0.45, S3.46.
#[test]
fn a_whole_request_is_this() {
    let (one, two) = (call(1, 0), call(1, 1));
    let strict = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false});
    let mut request = request(vec![
        user("look"),
        says(
            "I look.",
            vec![one.clone(), two.clone()],
            Some(json!([thought("rs", 0, 0)])),
        ),
        result(&two, "second"),
        result(&one, "first"),
        Entry::Note {
            text: "it ran".to_owned(),
        },
    ]);
    request.tools = Arc::from([tool("read", strict), tool("write", Value::Null)]);
    request.effort = Some(Effort::High);
    request.max_tokens = Some(5);
    insta::assert_json_snapshot!(sent(&request, &Omitted::known(&request, true)));
}

#[test]
fn a_plain_request_holds_only_what_is_set() {
    let mut plain = request(vec![user("hi")]);
    plain.model = "gpt-4o".to_owned();
    plain.max_tokens = Some(0);
    let mut body = sent(&plain, &Omitted::known(&plain, true));
    let key = body.as_object_mut().unwrap().remove("prompt_cache_key");
    assert_eq!(key.unwrap().as_str().map(str::len), Some(32));
    assert_eq!(
        body,
        json!({"model": "gpt-4o", "instructions": "be kind", "input": [said("user", "hi")],
            "store": false, "stream": true})
    );
}

#[test]
fn thoughts_return_to_their_places_and_never_stand_alone() {
    let (one, two) = (call(1, 0), call(1, 1));
    let told = |text: &str, calls: Vec<ModelCall>, blocks: Value| {
        let results = calls.iter().map(|call| result(call, "r"));
        let results: Vec<Entry> = results.collect();
        let mut entries = vec![user("hi"), says(text, calls, Some(blocks))];
        entries.extend(results);
        unnamed(input(entries)).as_array().unwrap()[1..].to_vec()
    };
    assert_eq!(
        told(
            "hiyo",
            vec![one.clone(), two.clone()],
            json!([
                thought("r1", 0, 0),
                thought("r2", 2, 1),
                thought("r3", 4, 2)
            ]),
        ),
        [
            item("r1"),
            said("assistant", "hi"),
            asked("fc1_0"),
            item("r2"),
            said("assistant", "yo"),
            asked("fc1_1"),
            answered("fc1_0"),
            answered("fc1_1"),
        ]
    );
    // The text is blank or missing.
    assert!(told(" \n", vec![], json!([thought("r1", 0, 0)])).is_empty());
    assert_eq!(
        told("a", vec![], json!([thought("r1", 1, 0)])),
        [said("assistant", "a")]
    );
    // A call without its result leaves an unpaired thought.
    let entries = vec![
        says(
            "a",
            vec![one.clone(), two],
            Some(json!([thought("r1", 1, 1)])),
        ),
        result(&one, "r"),
    ];
    assert_eq!(
        unnamed(input(entries)),
        json!([said("assistant", "a"), asked("fc1_0"), answered("fc1_0")])
    );
}

#[test]
fn the_phase_of_a_message_goes_back_with_it() {
    let phase = |text: usize, length: usize, phase: &str| {
        json!({"place": {"text": text, "length": length, "calls": 0},
        "block": {"type": "message", "phase": phase}})
    };
    let blocks = json!([phase(0, 2, "commentary"), phase(4, 2, "final_answer")]);
    assert_eq!(
        input(vec![says("hi\n\nyo", vec![], Some(blocks))]),
        json!([
            {"type": "message", "role": "assistant", "content": "hi", "phase": "commentary"},
            {"type": "message", "role": "assistant", "content": "yo", "phase": "final_answer"},
        ])
    );
}

#[test]
fn blocks_of_others_and_of_the_other_interface_stay_here() {
    let foreign = |family: &str, blocks: Value| Entry::Assistant {
        text: "a".to_owned(),
        calls: vec![],
        native: Some(Native {
            family: family.to_owned(),
            blocks,
            compacts: false,
        }),
    };
    for (family, blocks) in [
        ("anthropic", json!([thought("r", 0, 0)])),
        ("openai-compatible/x", json!([thought("r", 0, 0)])),
        ("openai", json!({"reasoning_content": "hm"})),
        (
            "openai",
            json!([{"block": {"type": "reasoning"}}, {"place": 7, "block": {}}, 7]),
        ),
    ] {
        let sent = input(vec![foreign(family, blocks)]);
        assert_eq!(sent, json!([said("assistant", "a")]), "{family}");
    }
}

#[test]
fn what_is_refused_is_left_out() {
    let mut request = request(vec![
        user("hi"),
        says("a", vec![], Some(json!([thought("r", 0, 0)]))),
        user("ho"),
    ]);
    request.temperature = Some(0.5);
    request.effort = Some(Effort::Low);
    request.tools = Arc::from([tool("t", Value::Null)]);
    let mut omitted = Omitted::default();
    for (part, pointer) in [
        (Part::Summary, "/reasoning/summary"),
        (Part::Effort, "/reasoning"),
        (Part::Temperature, "/temperature"),
        (Part::Encrypted, "/include"),
        (Part::CacheKey, "/prompt_cache_key"),
        (Part::ToolChoice, "/tool_choice"),
        (Part::Thoughts, "/input/3"),
    ] {
        assert!(
            sent(&request, &omitted).pointer(pointer).is_some(),
            "{part:?}"
        );
        omitted.learn(Lesson::Part(part));
        assert!(
            sent(&request, &omitted).pointer(pointer).is_none(),
            "{part:?}"
        );
    }
}

/// The vendor caches the common beginning of requests, byte by byte.
#[test]
fn the_prefix_stays_the_same_over_twenty_turns() {
    let strict = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let tools: Arc<[Tool]> = Arc::from([tool("files.read", Value::Null), tool("b", strict)]);
    let mut entries = Vec::new();
    let mut before: Option<String> = None;
    for turn in 0..20_i64 {
        let (one, two) = (call(turn, 0), call(turn, 1));
        entries.push(user(&format!("question {turn}")));
        for end in 0..2 {
            if end == 1 {
                let blocks = Some(json!([thought(&format!("r{turn}"), 0, 0)]));
                entries.push(says("I look", vec![one.clone(), two.clone()], blocks));
                entries.push(result(&two, "second"));
                entries.push(result(&one, "first"));
            }
            let mut request = request(entries.clone());
            request.tools = Arc::clone(&tools);
            let body = written(&request, &Omitted::default());
            let end_of_input = body.find(r#"],"reasoning""#).unwrap();
            let begun = &body[..end_of_input];
            if let Some(before) = before.replace(begun.to_owned()) {
                assert!(begun.starts_with(&before), "turn {turn}");
            }
            let key = sent(&request, &Omitted::default())["prompt_cache_key"].clone();
            assert_eq!(
                key,
                json!(super::cache_key(&self::request(vec![user("question 0")])))
            );
        }
        entries.push(says("done", vec![], Some(json!([thought("r", 0, 0)]))));
    }
}

/// A compaction item is sent only if the request resumes from the newest one.
#[test]
fn what_was_compacted_goes_back_where_the_request_goes_on_from_it() {
    let item = json!({"type": "compaction", "id": "cmp", "encrypted_content": "s"});
    let kept = json!([{"place": {"text": 0, "calls": 0}, "block": item}]);
    let mut omitted = Omitted::default();
    omitted.learn(Lesson::Part(Part::Compaction));
    for (resumes, omitted, is_sent, is_asked) in [
        (true, &omitted, true, true),
        (false, &omitted, false, false),
        (false, &Omitted::default(), false, true),
    ] {
        let request = Request {
            entries: [user("a"), says("b", vec![], Some(kept.clone())), user("c")].into(),
            compacting: Some(Compacting {
                threshold: 60_000,
                resumes,
            }),
            ..Request::default()
        };
        let sent = serde_json::to_value(body(&request, None, ("openai", omitted))).unwrap();
        assert_eq!(sent["input"][1] == item, is_sent, "{sent}");
        let asked = json!([{"type": "compaction", "compact_threshold": 60_000}]);
        assert_eq!(sent["context_management"] == asked, is_asked, "{sent}");
    }
}
