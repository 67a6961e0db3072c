//! Tables for this folder.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Dialect, Host, Omitted, Strictness, body, omitted, tools};
use crate::Request;
use crate::openai::omitted::Lesson;
use sepal_core::domain::{CallId, Effort, Entry, ModelCall, Native, Tool, ToolAnnotations};

fn vendor(omitted: &Omitted) -> Dialect<'_> {
    Dialect {
        is_vendor: true,
        host: Host::Other,
        family: "openai",
        omitted,
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

fn sent(request: &Request, dialect: Dialect<'_>) -> Value {
    let tools = tools(&request.tools, Strictness::Possible).unwrap();
    serde_json::to_value(body(request, tools.as_deref(), dialect)).unwrap()
}

/// Asserts S0.45.
#[test]
fn a_plain_request_holds_only_what_is_set() {
    let request = request(vec![Entry::User {
        seq: 1,
        text: "hi".to_owned(),
        attachments: vec![],
    }]);
    assert_eq!(
        sent(&request, vendor(&Omitted::default())),
        json!({
            "model": "m", "stream": true, "stream_options": {"include_usage": true},
            "messages": [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hi"}],
        })
    );
}

/// Asserts S2.18.
#[test]
fn limits_are_named_as_the_server_knows_them_and_zero_is_none() {
    let mut request = request(vec![]);
    request.temperature = Some(0.0);
    request.max_tokens = Some(9);
    let own = sent(&request, vendor(&Omitted::default()));
    assert_eq!(
        (&own["max_completion_tokens"], &own["temperature"]),
        (&json!(9), &json!(0.0))
    );
    assert!(own.get("max_tokens").is_none());
    let mut refused = Omitted::default();
    refused.learn(Lesson::Part(omitted::Part::StreamOptions));
    let other = Dialect {
        is_vendor: false,
        family: "x",
        ..vendor(&refused)
    };
    let compatible = sent(&request, other);
    assert_eq!(compatible["max_tokens"], json!(9));
    assert!(compatible.get("stream_options").is_none());
    // A proxy in front of the vendor reports that it accepts only the newer name.
    let mut renamed = Omitted::default();
    renamed.learn(Lesson::Part(omitted::Part::MaxTokens));
    let renamed = sent(
        &request,
        Dialect {
            omitted: &renamed,
            ..other
        },
    );
    assert_eq!(renamed["max_completion_tokens"], json!(9));
    assert!(renamed.get("max_tokens").is_none());
    request.max_tokens = Some(0);
    assert!(
        sent(&request, vendor(&Omitted::default()))
            .get("max_completion_tokens")
            .is_none()
    );
}

#[test]
fn what_a_budget_covers_shortens_an_answer_and_lengthens_none() {
    let mut request = request(vec![]);
    for (told, covered, limit) in [
        (None, Some(300), json!(300)),
        (Some(9), Some(300), json!(9)),
        (Some(400), Some(300), json!(300)),
        (Some(0), None, Value::Null),
    ] {
        (request.max_tokens, request.affordable) = (told, covered);
        let own = sent(&request, vendor(&Omitted::default()));
        assert_eq!(own["max_completion_tokens"], limit, "{told:?} {covered:?}");
    }
}

/// Asserts S3.8, S3.21, S3.33, S3.46.
#[test]
fn calls_results_and_native_blocks_take_their_places() {
    let said = Entry::Assistant {
        text: String::new(),
        calls: vec![ModelCall {
            id: CallId::new(1, 0),
            provider_id: "abc".to_owned(),
            name: "files.read".to_owned(),
            args: json!({"path": "a"}),
        }],
        native: Some(Native {
            family: "openai".to_owned(),
            blocks: json!({"reasoning_content": "hm", "extra_content": [{"s": 1}]}),
            compacts: false,
        }),
    };
    let result = Entry::ToolResult {
        call_id: CallId::new(1, 0),
        provider_id: "abc".to_owned(),
        name: "files.read".to_owned(),
        text: "text".to_owned(),
        is_error: false,
        attachments: vec![],
    };
    let mut request = request(vec![said, result]);
    request.tools = Arc::from([Tool {
        name: "files.read".to_owned(),
        title: None,
        description: "Reads".to_owned(),
        input_schema: Value::Null,
        output_schema: None,
        annotations: ToolAnnotations::default(),
        needs_tasks: false,
        view: None,
        runs_as_task: false,
    }]);
    let sent = sent(&request, vendor(&Omitted::default()));
    let name = &sent["tools"][0]["function"]["name"];
    let parameters = json!({"type": "object", "properties": {}});
    let function = json!({"name": name, "description": "Reads", "parameters": parameters});
    let tool = json!({"type": "function", "function": function});
    assert_eq!(sent["tools"], json!([tool]));
    assert_eq!(sent["tool_choice"], json!("auto"));
    assert_eq!(
        sent["messages"].as_array().unwrap()[1..],
        [
            json!({"role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": [{
                "id": "abc", "type": "function", "extra_content": {"s": 1},
                "function": {"name": name, "arguments": "{\"path\":\"a\"}"},
            }]}),
            json!({"role": "tool", "tool_call_id": "abc", "content": "text"}),
        ]
    );
    let none = Omitted::default();
    let foreign = Dialect {
        family: "openai-compatible/x",
        ..vendor(&none)
    };
    let sent = self::sent(&request, foreign);
    assert!(sent["messages"][1].get("reasoning_content").is_none());
}

#[test]
fn thoughts_go_back_as_they_came_or_not_at_all() {
    let said = |blocks: Value| Entry::Assistant {
        text: "a".to_owned(),
        calls: vec![],
        native: Some(Native {
            family: "openai".to_owned(),
            blocks,
            compacts: false,
        }),
    };
    let details = json!([{"type": "reasoning.text", "text": "hm", "signature": "s", "index": 0}]);
    for (blocks, expected) in [
        (json!({"reasoning": "hm"}), json!({"reasoning": "hm"})),
        (
            json!({"reasoning_details": details}),
            json!({"reasoning_details": details}),
        ),
        // Blocks that the Responses API left.
        (
            json!([{"place": {"text": 0, "calls": 0}, "block": {"type": "reasoning"}}]),
            json!({}),
        ),
    ] {
        let request = request(vec![said(blocks.clone())]);
        let mut omitted = Omitted::default();
        let mut sent = sent(&request, vendor(&omitted))["messages"][1].clone();
        sent.as_object_mut()
            .unwrap()
            .retain(|name, _| name.starts_with("reasoning"));
        assert_eq!(sent, expected, "{blocks}");
        omitted.learn(Lesson::Part(omitted::Part::Thoughts));
        let without = self::sent(&request, vendor(&omitted));
        assert_eq!(
            without["messages"][1],
            json!({"role": "assistant", "content": "a"})
        );
    }
}

#[test]
fn a_whole_request_is_this() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false});
    let tool = |name: &str, input_schema: Value| Tool {
        name: name.to_owned(),
        title: None,
        description: "Reads".to_owned(),
        input_schema,
        output_schema: None,
        annotations: ToolAnnotations::default(),
        needs_tasks: false,
        view: None,
        runs_as_task: false,
    };
    let mut request = request(vec![Entry::User {
        seq: 1,
        text: "hi".to_owned(),
        attachments: vec![],
    }]);
    request.tools = Arc::from([tool("read", schema), tool("write", Value::Null)]);
    request.effort = Some(Effort::High);
    request.max_tokens = Some(5);
    insta::assert_json_snapshot!(sent(&request, vendor(&Omitted::default())));
}

fn at(host: Host, omitted: &Omitted) -> Dialect<'_> {
    Dialect {
        is_vendor: false,
        host,
        family: "x",
        omitted,
    }
}

/// A call with an empty result, then a message of a person, then one of the model.
fn called(provider_id: &str) -> Request {
    let call = ModelCall {
        id: CallId::new(1, 0),
        provider_id: provider_id.to_owned(),
        name: "t".to_owned(),
        args: json!({}),
    };
    let result = Entry::ToolResult {
        call_id: call.id.clone(),
        provider_id: provider_id.to_owned(),
        name: "t".to_owned(),
        text: " ".to_owned(),
        is_error: false,
        attachments: vec![],
    };
    let said = |text: &str, calls| Entry::Assistant {
        text: text.to_owned(),
        calls,
        native: None,
    };
    let user = Entry::User {
        seq: 1,
        text: "hi".to_owned(),
        attachments: vec![],
    };
    let mut request = request(vec![
        user.clone(),
        said("", vec![call]),
        result,
        user,
        said("yes", vec![]),
    ]);
    request.tools = Arc::from([Tool {
        name: "t".to_owned(),
        title: None,
        description: String::new(),
        input_schema: Value::Null,
        output_schema: None,
        annotations: ToolAnnotations::default(),
        needs_tasks: false,
        view: None,
        runs_as_task: false,
    }]);
    request
}

/// The roles of the messages, in order.
fn roles(body: &Value) -> Vec<&str> {
    let messages = body["messages"].as_array().unwrap().iter();
    messages
        .map(|message| message["role"].as_str().unwrap())
        .collect()
}

/// Asserts S3.40.
#[test]
fn mistral_gets_short_ids_and_an_answer_after_every_tool() {
    let omitted = Omitted::default();
    let body = sent(&called("call_abc"), at(Host::Mistral, &omitted));
    assert_eq!(
        roles(&body),
        [
            "system",
            "user",
            "assistant",
            "tool",
            "assistant",
            "user",
            "assistant",
            "user"
        ]
    );
    let id = body["messages"][2]["tool_calls"][0]["id"].as_str().unwrap();
    assert!(
        id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()),
        "{id}"
    );
    assert_eq!(body["messages"][3]["tool_call_id"], id);
    assert!(body.get("stream_options").is_none(), "{body}");
    assert_eq!(body["tool_choice"], "auto");
    let body = sent(&called("D681PevKs"), at(Host::Mistral, &omitted));
    assert_eq!(body["messages"][3]["tool_call_id"], "D681PevKs", "its own");
}

/// Asserts S3.40.
#[test]
fn cohere_gets_no_choice_of_tools_and_no_empty_result() {
    let omitted = Omitted::default();
    let body = sent(&called("t0"), at(Host::Cohere, &omitted));
    let expected = ["system", "user", "assistant", "tool", "user", "assistant"];
    assert_eq!(roles(&body), expected);
    assert_eq!(body["messages"][3]["content"], "(no output)");
    assert!(body.get("tool_choice").is_none(), "{body}");
    let other = sent(&called("t0"), at(Host::Other, &omitted));
    assert_eq!(other["messages"][3]["content"], " ");
}
