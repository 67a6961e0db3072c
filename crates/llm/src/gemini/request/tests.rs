//! Tables for this file.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::Body;
use super::thinking::plan;
use crate::Request;
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
            family: "gemini".to_owned(),
            blocks,
            compacts: false,
        }),
    }
}

fn call(index: usize, args: Value) -> ModelCall {
    ModelCall {
        id: CallId::new(1, index),
        provider_id: "toolu_of_another".to_owned(),
        name: "read".to_owned(),
        args,
    }
}

fn result(index: usize, text: &str, is_error: bool) -> Entry {
    Entry::ToolResult {
        call_id: CallId::new(1, index),
        provider_id: String::new(),
        name: "read".to_owned(),
        text: text.to_owned(),
        is_error,
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
        model: "gemini-2.5-flash".to_owned(),
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
    super::body(request, &plan(request, &BTreeSet::new()), family)
}

fn sent(request: &Request) -> Value {
    serde_json::to_value(body(request, "gemini")).unwrap()
}

/// Asserts S3.9.
#[test]
fn a_plain_request_holds_only_what_is_set() {
    let mut request = request(vec![user("hi")]);
    assert_eq!(
        sent(&request),
        json!({
            "systemInstruction": {"parts": [{"text": "be kind"}]},
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        })
    );
    request.temperature = Some(0.0);
    request.max_tokens = Some(9);
    let config = json!({"temperature": 0.0, "maxOutputTokens": 9});
    assert_eq!(sent(&request)["generationConfig"], config);
    request.max_tokens = Some(0);
    request.temperature = None;
    assert!(sent(&request).get("generationConfig").is_none());
}

#[test]
fn tools_are_declared_once_in_the_form_that_gemini_takes() {
    let mut request = request(vec![user("hi")]);
    let schema = json!({"type": "object", "additionalProperties": false, "properties": {"a": {"type": "string"}}});
    request.tools = Arc::from([
        tool("read", schema),
        tool("none", json!(null)),
        tool("read", json!(null)),
        tool("2fa", json!({})),
    ]);
    let sent = sent(&request);
    let declared = sent["tools"][0]["functionDeclarations"].as_array().unwrap();
    assert_eq!(
        declared[..2],
        [
            json!({"name": "read", "description": "Reads", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}),
            json!({"name": "none", "description": "Reads"}),
        ]
    );
    assert_eq!(declared.len(), 3);
    assert!(declared[2]["name"].as_str().unwrap().starts_with("_2fa_"));
    assert_eq!(
        sent["toolConfig"],
        json!({"functionCallingConfig": {"mode": "AUTO"}})
    );
}

/// Asserts S3.8.
#[test]
fn one_batch_is_answered_in_one_message_and_people_speak_after_it() {
    let calls = vec![call(0, json!({"path": "a"})), call(1, json!("{oops"))];
    let sent = sent(&request(vec![
        user("read"),
        says("I look", calls, None),
        result(1, "no such file", true),
        user("hurry"),
        result(0, "A", false),
    ]));
    assert_eq!(
        sent["contents"],
        json!([
            {"role": "user", "parts": [{"text": "read"}]},
            {"role": "model", "parts": [
                {"text": "I look"},
                {"functionCall": {"name": "read", "args": {"path": "a"}}},
                {"functionCall": {"name": "read", "args": {"arguments": "{oops"}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "read", "response": {"output": "A"}}},
                {"functionResponse": {"name": "read", "response": {"error": "no such file"}}},
                {"text": "hurry"},
            ]},
        ])
    );
}

#[test]
fn odd_conversations_become_ones_that_the_vendor_takes() {
    fn roles(entries: Vec<Entry>) -> String {
        let sent = sent(&request(entries));
        let contents = sent["contents"].as_array().unwrap();
        assert!(
            contents
                .iter()
                .all(|c| !c["parts"].as_array().unwrap().is_empty())
        );
        let roles = contents.iter().map(|c| c["role"].as_str().unwrap());
        roles.map(|role| &role[..1]).collect()
    }
    assert_eq!(roles(vec![]), "u");
    assert_eq!(roles(vec![says("a", vec![], None)]), "umu");
    assert_eq!(
        roles(vec![
            user("a"),
            says("b", vec![], None),
            says("c", vec![], None)
        ]),
        "umu"
    );
    let asks = || says(" ", vec![call(0, json!(null))], None);
    let answered = || result(0, "r", false);
    assert_eq!(roles(vec![user("a"), asks(), answered()]), "umu");
    assert_eq!(roles(vec![user("a"), asks()]), "u");
    assert_eq!(
        roles(vec![asks(), answered(), says("b", vec![], None), user("c")]),
        "umumu"
    );
}

#[test]
fn signatures_and_ids_go_back_to_their_family_with_their_parts() {
    let native = json!([
        {"place": {"text": 0, "calls": 0}, "thought": "why", "thoughtSignature": "s0"},
        {"call": 0, "id": "fc1", "place": {"text": 0, "calls": 0}, "thoughtSignature": "s1"},
        {"place": {"text": 2, "length": 2, "calls": 1}, "thoughtSignature": "s2"},
        {"place": {"text": 4, "calls": 2}, "thoughtSignature": "s3"},
        7,
    ]);
    let calls = vec![call(0, json!({})), call(1, json!({}))];
    let entries = vec![
        user("a"),
        says("abcd", calls, Some(native)),
        result(0, "0", false),
        result(1, "1", false),
    ];
    let with = request(entries);
    let contents = sent(&with)["contents"].clone();
    let expected = [
        json!({"text": "why", "thought": true, "thoughtSignature": "s0"}),
        json!({"text": "ab"}),
        json!({"functionCall": {"id": "fc1", "name": "read", "args": {}}, "thoughtSignature": "s1"}),
        json!({"text": "cd", "thoughtSignature": "s2"}),
        json!({"functionCall": {"name": "read", "args": {}}}),
        json!({"text": "", "thoughtSignature": "s3"}),
    ];
    assert_eq!(contents[1]["parts"], json!(expected));
    assert_eq!(contents[2]["parts"][0]["functionResponse"]["id"], "fc1");
    let foreign = serde_json::to_string(&body(&with, "gemini/other")).unwrap();
    assert!(
        !foreign.contains("Signature") && !foreign.contains("fc1"),
        "{foreign}"
    );
}

/// The vendor documents a signature for calls that its model did not make.
#[test]
fn calls_of_another_vendors_model_are_signed_as_such_for_models_that_want_signatures() {
    fn signatures(model: &str, native: Option<Value>) -> Value {
        let calls = vec![call(0, json!({})), call(1, json!({}))];
        let mut request = request(vec![
            user("a"),
            says("", calls, native),
            result(0, "0", false),
            result(1, "1", false),
        ]);
        request.model = model.to_owned();
        let parts = sent(&request)["contents"][1]["parts"].clone();
        let signatures = parts.as_array().unwrap().iter();
        signatures
            .map(|part| part["thoughtSignature"].clone())
            .collect()
    }
    let foreign = json!(["skip_thought_signature_validator", null]);
    assert_eq!(signatures("gemini-3.8-flash", None), foreign);
    assert_eq!(signatures("gemini-2.5-pro", None), json!([null, null]));
    for call in 0..2 {
        let own =
            json!([{"call": call, "place": {"text": 0, "calls": 0}, "thoughtSignature": "s"}]);
        let mut expected = json!([null, null]);
        expected[call] = json!("s");
        assert_eq!(signatures("gemini-3.8-flash", Some(own)), expected);
    }
}

/// Twenty turns with parallel calls; every third comes from another vendor.
#[test]
fn a_cache_finds_every_request_of_twenty_turns_in_the_one_after_it() {
    let (mut entries, mut before) = (Vec::new(), String::new());
    for turn in 0..20 {
        entries.push(user(&format!("question {turn}")));
        let mut asked = vec![entries.clone()];
        let calls = [2 * turn, 2 * turn + 1];
        let signed = json!([
            {"place": {"text": 0, "calls": 0}, "thought": "hm", "thoughtSignature": "t"},
            {"call": 0, "place": {"text": 0, "calls": 0}, "thoughtSignature": "s"},
        ]);
        let ask = |index: usize| call(index, json!({"z": 1, "a": index}));
        let native = (turn % 3 > 0).then_some(signed);
        entries.push(says("I look", calls.map(ask).to_vec(), native));
        let results = calls.iter().rev();
        entries.extend(results.map(|&index| result(index, "found", index % 3 == 0)));
        asked.push(entries.clone());
        for entries in asked {
            let mut request = request(entries);
            request.model = "gemini-3.8-flash".to_owned();
            request.tools = Arc::from([tool("read", json!({"properties": {"b": {}, "a": {}}}))]);
            let now = serde_json::to_string(&body(&request, "gemini")).unwrap();
            let now = now.strip_suffix("]}").unwrap().trim_end_matches("]}");
            assert!(now.starts_with(&before), "turn {turn}:\n{before}\n{now}");
            now.clone_into(&mut before);
        }
        entries.push(says("answer", vec![], None));
    }
}

#[test]
fn what_was_sent_stays_the_same_to_the_byte_as_the_conversation_grows() {
    fn prefix(request: &Request) -> String {
        let text = serde_json::to_string(&body(request, "gemini")).unwrap();
        text.strip_suffix("]}").unwrap().to_owned()
    }
    let signed = json!([{"call": 0, "place": {"text": 0, "calls": 0}, "thoughtSignature": "s"}]);
    let all = [
        user("one"),
        says("two", vec![call(0, json!({"b": 1, "a": 2}))], Some(signed)),
        result(0, "three", false),
        says("four", vec![], None),
        user("five"),
    ];
    let mut before = String::new();
    for whole in [1, 3, 5] {
        let mut request = request(all[..whole].to_vec());
        request.tools = Arc::from([tool("read", json!({"properties": {"b": {}, "a": {}}}))]);
        let now = prefix(&request);
        assert!(now.starts_with(&before), "{before}\n{now}");
        before = now;
    }
}
