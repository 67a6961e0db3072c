//! A stand-in is only worth its name if it refuses what the vendor refuses.

use reqwest::RequestBuilder;
use serde_json::{Value, json};

use crate::model_stub::{ModelStub, STUB_KEY, Vendor};
use crate::support::TestApp;

fn post(stub: &ModelStub) -> RequestBuilder {
    let http = TestApp::http();
    let base = stub.base_url();
    match stub.vendor {
        Vendor::Chat | Vendor::Messages => http
            .post(format!("{base}/v1/messages"))
            .header("x-api-key", STUB_KEY)
            .header("anthropic-version", "2023-06-01"),
        Vendor::Responses => http.post(format!("{base}/responses")).bearer_auth(STUB_KEY),
        Vendor::Gemini => http
            .post(format!(
                "{base}/v1beta/models/gemini-3-pro-preview:streamGenerateContent?alt=sse"
            ))
            .header("x-goog-api-key", STUB_KEY),
    }
}

/// That the stand-in refuses it, in its vendor's form.
async fn refused(stub: &ModelStub, request: RequestBuilder, status: u16) {
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status().as_u16(), status);
    let body: Value = answer.json().await.unwrap();
    let message = &body["error"]["message"];
    assert!(message.is_string(), "{body}");
    assert_eq!(stub.take_refusals().len(), 1, "{body}");
}

fn messages_body(change: &[(&str, Value)]) -> Value {
    let user = json!({"role": "user", "content": [{"type": "text", "text": "x"}]});
    let mut body =
        json!({"model": "claude-x", "max_tokens": 5, "stream": true, "messages": [user]});
    for (name, value) in change {
        body[*name] = value.clone();
    }
    body
}

fn bad_messages() -> Vec<Value> {
    let text = |text: &str| json!({"type": "text", "text": text});
    let user = |content: Value| json!({"role": "user", "content": content});
    let model = |content: Value| json!({"role": "assistant", "content": content});
    let hi = || user(json!([text("hi")]));
    let asks = |id: &str| json!({"type": "tool_use", "id": id, "name": "t", "input": {}});
    let answers = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "r"});
    let cases = [
        json!([]),
        json!([model(json!([text("a")])), hi()]),
        json!([hi(), hi()]),
        json!([hi(), model(json!([text("prefill")]))]),
        json!([user(json!([text(" ")]))]),
        json!([user(json!([]))]),
        json!([user(json!([answers("a")]))]),
        json!([hi(), model(json!([asks("a")])), hi()]),
        json!([
            hi(),
            model(json!([asks("a"), asks("b")])),
            user(json!([answers("a")]))
        ]),
        json!([
            hi(),
            model(json!([asks("a")])),
            user(json!([text("first"), answers("a")]))
        ]),
        json!([
            hi(),
            model(json!([asks("a:b")])),
            user(json!([answers("a:b")]))
        ]),
        json!([
            hi(),
            model(json!([{"type": "thinking", "thinking": "x", "signature": ""}])),
            hi()
        ]),
    ];
    cases
        .iter()
        .map(|case| messages_body(&[("messages", case.clone())]))
        .collect()
}

/// What no model takes, or not this one.
fn bad_thinking() -> Vec<Value> {
    let asked = |model: &str, change: &[(&str, Value)]| {
        let all = [("model", json!(model)), ("max_tokens", json!(4_096))];
        messages_body(&[&all, change].concat())
    };
    let budget = |tokens: u32| json!({"type": "enabled", "budget_tokens": tokens});
    let effort = |effort: &str| ("output_config", json!({ "effort": effort }));
    let mark =
        json!([{"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "2h"}}]);
    let content = json!({"role": "user", "content": mark});
    let (old, new, newest) = ("claude-sonnet-4-5", "claude-opus-4-6", "claude-opus-5-5");
    vec![
        asked(old, &[("thinking", budget(1_023))]),
        asked(old, &[("thinking", budget(4_096))]),
        asked(
            old,
            &[("thinking", budget(2_048)), ("temperature", json!(0.5))],
        ),
        asked(old, &[("thinking", json!({"type": "adaptive"}))]),
        asked(old, &[effort("low")]),
        asked(new, &[effort("minimal")]),
        asked(
            new,
            &[(
                "thinking",
                json!({"type": "adaptive", "budget_tokens": 2_048}),
            )],
        ),
        asked(newest, &[("thinking", budget(2_048))]),
        asked(newest, &[("thinking", json!({"type": "disabled"}))]),
        asked(newest, &[("temperature", json!(1.0))]),
        asked(new, &[("messages", json!([content]))]),
    ]
}

#[tokio::test]
async fn anthropics_stand_in_refuses_what_anthropic_refuses() {
    let stub = ModelStub::start_as(Vendor::Messages).await;
    let tool = |name: &str, schema: Value| json!([{"name": name, "input_schema": schema}]);
    let mut bodies = bad_messages();
    let object = json!({"type": "object"});
    bodies.extend([
        messages_body(&[("max_tokens", json!(0))]),
        messages_body(&[("stream_options", json!({}))]),
        messages_body(&[("tools", json!([]))]),
        messages_body(&[("tool_choice", json!({"type": "auto"}))]),
        messages_body(&[("tools", tool("a.b", object))]),
        messages_body(&[("tools", tool("a", json!({})))]),
        messages_body(&[("system", json!([{"type": "text", "text": ""}]))]),
    ]);
    bodies.extend(bad_thinking());
    let mut without = messages_body(&[]);
    without.as_object_mut().unwrap().remove("max_tokens");
    bodies.push(without);
    for body in bodies {
        refused(&stub, post(&stub).json(&body), 400).await;
    }
    let url = format!("{}/v1/messages", stub.base_url());
    let fine = messages_body(&[]);
    let http = TestApp::http();
    let no_version = http.post(&url).header("x-api-key", STUB_KEY).json(&fine);
    refused(&stub, no_version, 400).await;
    let no_key = http
        .post(&url)
        .header("anthropic-version", "2023-06-01")
        .json(&fine);
    refused(&stub, no_key, 401).await;
    let unknown = messages_body(&[("model", json!("gpt-9"))]);
    refused(&stub, post(&stub).json(&unknown), 404).await;
    stub.will_say("ok");
    let answer = post(&stub).json(&fine).send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 200);
}

fn gemini_body(contents: &Value) -> Value {
    json!({"contents": contents})
}

fn with_parameters(schema: &Value) -> Value {
    let hi = json!([{"role": "user", "parts": [{"text": "hi"}]}]);
    let parameters = json!({"type": "object", "properties": {"a": schema}});
    let declared = json!([{"name": "t", "description": "", "parameters": parameters}]);
    json!({"contents": hi, "tools": [{"functionDeclarations": declared}]})
}

fn bad_contents() -> Vec<Value> {
    let user = |parts: Value| json!({"role": "user", "parts": parts});
    let model = |parts: Value| json!({"role": "model", "parts": parts});
    let hi = || user(json!([{"text": "hi"}]));
    let asks =
        || json!({"functionCall": {"name": "t", "args": {}}, "thoughtSignature": "stub-signature"});
    let answers = || json!({"functionResponse": {"name": "t", "response": {"output": "r"}}});
    let unsigned = json!({"functionCall": {"name": "t", "args": {}}});
    let cases = [
        json!([]),
        json!([model(json!([{"text": "a"}])), hi()]),
        json!([hi(), hi()]),
        json!([hi(), model(json!([{"text": "a"}]))]),
        json!([user(json!([{"text": ""}]))]),
        json!([user(json!([]))]),
        json!([user(json!([answers()]))]),
        json!([hi(), model(json!([asks()])), hi()]),
        json!([
            hi(),
            model(json!([asks(), asks()])),
            user(json!([answers()]))
        ]),
        json!([hi(), model(json!([unsigned])), user(json!([answers()]))]),
        json!([user(
            json!([{"text": "a", "functionCall": {"name": "t", "args": {}}}])
        )]),
        json!([{"role": "user", "parts": [{"text": "a"}], "name": "x"}]),
    ];
    cases.iter().map(gemini_body).collect()
}

/// Requests of thinking that no model of Gemini takes, or not that one.
fn bad_thinking_of_gemini() -> Vec<Value> {
    let forms = [
        json!({"thinkingLevel": "low", "thinkingBudget": 128}),
        json!({"thinkingLevel": "minimal"}),
        json!({"thinkingLevel": "enormous"}),
        json!({"thinkingBudget": 128}),
        json!({"effort": "low"}),
    ];
    let body = |thinking: &Value| {
        let mut body = with_parameters(&json!({"type": "string"}));
        body["generationConfig"] = json!({ "thinkingConfig": thinking });
        body
    };
    forms.iter().map(body).collect()
}

#[tokio::test]
async fn geminis_stand_in_refuses_what_gemini_refuses() {
    let stub = ModelStub::start_as(Vendor::Gemini).await;
    let mut bodies = bad_contents();
    bodies.extend(
        [
            json!({"type": "string", "additionalProperties": false}),
            json!({"$ref": "#/$defs/x"}),
            json!({"type": ["string", "null"]}),
            json!({"oneOf": [{"type": "string"}]}),
            json!({"anyOf": [{"type": "string"}], "description": "d"}),
            json!({"type": "integer", "enum": [1]}),
            json!({"type": "array"}),
            json!({"type": "object", "properties": {}}),
            json!({"description": "no type"}),
        ]
        .iter()
        .map(with_parameters),
    );
    bodies.extend(bad_thinking_of_gemini());
    let mut odd = with_parameters(&json!({"type": "string"}));
    odd["tools"][0]["functionDeclarations"][0]["name"] = json!("2fa");
    bodies.push(odd);
    for body in bodies {
        refused(&stub, post(&stub).json(&body), 400).await;
    }
    let fine = with_parameters(&json!({"type": "string"}));
    let http = TestApp::http();
    let models = format!("{}/v1beta/models", stub.base_url());
    let stream = format!("{models}/gemini-x:streamGenerateContent");
    let keyed = |url: String| {
        http.post(url)
            .header("x-goog-api-key", STUB_KEY)
            .json(&fine)
    };
    refused(
        &stub,
        http.post(format!("{stream}?alt=sse")).json(&fine),
        400,
    )
    .await;
    refused(
        &stub,
        keyed(format!("{stream}?alt=sse&key={STUB_KEY}")),
        400,
    )
    .await;
    refused(&stub, keyed(stream), 400).await;
    refused(
        &stub,
        keyed(format!("{models}/gpt-9:streamGenerateContent?alt=sse")),
        404,
    )
    .await;
    stub.will_say("ok");
    let answer = post(&stub).json(&fine).send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 200);
}

fn responses_body(change: &[(&str, Value)]) -> Value {
    let user = json!({"type": "message", "role": "user", "content": "x"});
    let mut body = json!({"model": "gpt-5.1", "input": [user], "store": false, "stream": true});
    for (name, value) in change {
        body[*name] = value.clone();
    }
    body
}

fn bad_input() -> Vec<Value> {
    let message =
        |role: &str, text: &str| json!({"type": "message", "role": role, "content": text});
    let asks =
        |id: &str| json!({"type": "function_call", "call_id": id, "name": "t", "arguments": "{}"});
    let answers = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "r"});
    let thought = |sealed: &str| json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": sealed});
    let fine = || thought("stub-signature");
    let unsealed = json!({"type": "reasoning", "id": "rs", "summary": []});
    let mut numbered = asks("a");
    numbered["arguments"] = json!({});
    let mut own = asks("a");
    own["id"] = json!("fc_1");
    let cases = [
        json!([]),
        json!([message("user", " ")]),
        json!([message("assistant", "")]),
        json!([message("system", "x")]),
        json!([answers("a")]),
        json!([asks("a")]),
        json!([asks("a"), message("user", "x"), answers("a")]),
        json!([asks("a"), asks("b"), answers("a")]),
        json!([
            asks("a"),
            asks("b"),
            answers("a"),
            message("assistant", "x"),
            answers("b")
        ]),
        json!([asks("a"), asks("a"), answers("a")]),
        json!([answers("a"), asks("a")]),
        json!([numbered, answers("a")]),
        json!([own, answers("a")]),
        json!([fine()]),
        json!([fine(), message("user", "x")]),
        json!([thought("another"), message("assistant", "x")]),
        json!([unsealed, message("assistant", "x")]),
        json!([{"type": "item_reference", "id": "msg"}]),
    ];
    cases
        .iter()
        .map(|case| responses_body(&[("input", case.clone())]))
        .collect()
}

#[tokio::test]
async fn the_stand_in_of_responses_refuses_what_openai_refuses() {
    let stub = ModelStub::start_as(Vendor::Responses).await;
    let closed =
        json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
    let tool = |name: &str, schema: &Value, strict: Value| json!({"type": "function", "name": name, "description": "", "parameters": schema, "strict": strict});
    let tools = |tools: Value| responses_body(&[("tools", tools)]);
    let open = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let mut bodies = bad_input();
    bodies.extend([
        responses_body(&[("messages", json!([]))]),
        responses_body(&[("store", json!(true))]),
        responses_body(&[("max_output_tokens", json!(5))]),
        responses_body(&[("instructions", json!(""))]),
        responses_body(&[("prompt_cache_key", json!("x".repeat(65)))]),
        responses_body(&[("reasoning", json!({"effort": "extreme"}))]),
        responses_body(&[("tool_choice", json!("auto"))]),
        tools(json!([])),
        tools(json!([tool("a.b", &closed, json!(true))])),
        tools(json!([
            tool("a", &closed, json!(true)),
            tool("a", &closed, json!(true))
        ])),
        tools(json!([tool("a", &open, json!(true))])),
        tools(json!([tool("a", &open, Value::Null)])),
        tools(json!([tool("a", &json!({}), json!(false))])),
        responses_body(&[("model", json!("gpt-5")), ("temperature", json!(1))]),
    ]);
    let plain =
        |name: &str, value: Value| responses_body(&[("model", json!("gpt-4o")), (name, value)]);
    bodies.extend([
        plain("include", json!(["reasoning.encrypted_content"])),
        plain("reasoning", json!({"effort": "low"})),
    ]);
    for body in bodies {
        refused(&stub, post(&stub).json(&body), 400).await;
    }
    let url = format!("{}/responses", stub.base_url());
    let http = TestApp::http();
    refused(&stub, http.post(&url).json(&responses_body(&[])), 401).await;
    let unknown = responses_body(&[("model", json!("gpt-9"))]);
    refused(&stub, post(&stub).json(&unknown), 404).await;
    stub.will_say("ok");
    let fine = responses_body(&[("tools", json!([tool("a", &closed, json!(true))]))]);
    let answer = post(&stub).json(&fine).send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 200);
}
