//! OpenAI's Responses: what its models take none of, and what is learned of that.

use std::sync::Arc;

use axum::body::Bytes;
use sepal::domain::{Effort, Entry, Native};
use sepal::llm::{Provider, Request};
use serde_json::{Value, json};

use super::{left_out, provider, request, said, tool, user};
use crate::model_stub::{ModelStub, Reply, STUB_KEY, Vendor};

/// A stand-in and a provider that asks it.
async fn open() -> (ModelStub, Arc<dyn Provider>) {
    let stub = ModelStub::start_as(Vendor::Responses).await;
    let provider = provider(&stub, STUB_KEY);
    (stub, provider)
}

fn asking(model: &str, change: impl FnOnce(&mut Request)) -> Request {
    let mut request = request(Vendor::Responses, vec![user("hi")]);
    model.clone_into(&mut request.model);
    change(&mut request);
    request
}

/// A refusal of one parameter, as the vendor spells it.
fn unsupported(param: &str, code: &str, message: &str) -> Reply {
    let error =
        json!({"message": message, "type": "invalid_request_error", "param": param, "code": code});
    Reply::fail(400, &[], &json!({ "error": error }).to_string())
}

fn bodies(stub: &ModelStub, pointer: &str) -> Vec<Option<Value>> {
    let asked = stub.requests().into_iter();
    asked
        .map(|asked| asked.body.pointer(pointer).cloned())
        .collect()
}

#[tokio::test]
async fn what_a_model_refuses_by_name_is_left_out_from_then_on_and_said_once() {
    let (stub, provider) = open().await;
    let no_temperature = "Unsupported parameter: 'temperature' is not supported with this model.";
    stub.will(unsupported(
        "temperature",
        "unsupported_parameter",
        no_temperature,
    ))
    .then_say("a")
    .then_say("b");
    let ask = || asking("gpt-6-luna", |request| request.temperature = Some(0.5));
    let told = left_out(&provider, ask()).await;
    assert_eq!(
        told,
        ["temperature 0.5 is left out: the model `gpt-6-luna` takes none"]
    );
    assert_eq!(left_out(&provider, ask()).await, [""; 0]);
    assert_eq!(
        bodies(&stub, "/temperature"),
        [Some(json!(0.5)), None, None]
    );
    // Another model is asked for itself.
    stub.will_say("c");
    let other = asking("gpt-6-sol", |request| request.temperature = Some(0.5));
    assert_eq!(left_out(&provider, other).await, [""; 0]);
    assert_eq!(bodies(&stub, "/temperature")[3], Some(json!(0.5)));
}

#[tokio::test]
async fn an_effort_falls_back_to_the_nearest_word_that_is_taken() {
    let (stub, provider) = open().await;
    let refuse = |word: &str| {
        let words = format!(
            "Unsupported value: '{word}' is not supported with the model. Supported values are: 'low', 'medium', and 'high'."
        );
        unsupported("reasoning.effort", "unsupported_value", &words)
    };
    stub.will(refuse("max"))
        .then(refuse("xhigh"))
        .then_say("a")
        .then_say("b");
    let ask = || asking("gpt-6-luna", |request| request.effort = Some(Effort::Max));
    for _ in 0..2 {
        assert_eq!(left_out(&provider, ask()).await, [""; 0]);
    }
    let words = bodies(&stub, "/reasoning/effort");
    let words: Vec<&str> = words
        .iter()
        .map(|word| word.as_ref().unwrap().as_str().unwrap())
        .collect();
    assert_eq!(words, ["max", "xhigh", "high", "high"]);
}

#[tokio::test]
async fn a_model_that_is_known_not_to_think_is_not_asked_to() {
    let (stub, provider) = open().await;
    stub.will_say("a").then_say("b").then_say("c");
    let ask = || asking("gpt-4o", |request| request.effort = Some(Effort::High));
    let told = left_out(&provider, ask()).await;
    assert_eq!(
        told,
        ["effort `high` is left out: the model `gpt-4o` takes none"]
    );
    assert_eq!(left_out(&provider, ask()).await, [""; 0]);
    let cold = asking("o3", |request| request.temperature = Some(0.0));
    let told = left_out(&provider, cold).await;
    assert_eq!(
        told,
        ["temperature 0 is left out: the model `o3` takes none"]
    );
}

#[tokio::test]
async fn summaries_and_schemas_to_the_letter_can_be_done_without() {
    let (stub, provider) = open().await;
    let closed =
        json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
    let unverified = "Your organization must be verified to generate reasoning summaries.";
    let schema = "Invalid schema for function 't'";
    stub.will(unsupported(
        "reasoning.summary",
        "unsupported_value",
        unverified,
    ))
    .then(unsupported(
        "tools[0].parameters",
        "invalid_function_parameters",
        schema,
    ))
    .then_say("a")
    .then_say("b");
    let tools: Arc<[_]> = Arc::from([tool("t", closed)]);
    let ask = || asking("gpt-6-luna", |request| request.tools = Arc::clone(&tools));
    for _ in 0..2 {
        assert_eq!(
            left_out(&provider, ask()).await,
            [""; 0],
            "nobody asked for it"
        );
    }
    let strict = bodies(&stub, "/tools/0/strict");
    assert_eq!(
        strict,
        [true, true, false, false].map(|strict| Some(json!(strict)))
    );
    let summaries = bodies(&stub, "/reasoning/summary");
    assert_eq!(summaries, [Some(json!("auto")), None, None, None]);
}

/// Thoughts that the vendor cannot read, or cannot any more, cost no turn; newer ones still go back.
#[tokio::test]
async fn thoughts_of_another_key_are_left_out_of_one_request_only() {
    let (stub, provider) = open().await;
    let stale = "The encrypted content for item rs_1 could not be verified.";
    stub.will(unsupported("input", "invalid_encrypted_content", stale))
        .then_say("a")
        .then_say("b");
    let block = json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "stub-signature"});
    let native = Native {
        family: "openai/stub".to_owned(),
        blocks: json!([{"place": {"text": 0, "calls": 0}, "block": block}]),
        compacts: false,
    };
    let entries: Vec<Entry> = vec![user("hi"), said("ho", vec![], Some(native)), user("on")];
    for _ in 0..2 {
        let ask = request(Vendor::Responses, entries.clone());
        assert_eq!(left_out(&provider, ask).await, [""; 0]);
    }
    let kinds = bodies(&stub, "/input/1/type");
    let kinds: Vec<Value> = kinds.into_iter().flatten().collect();
    assert_eq!(kinds, ["reasoning", "message", "reasoning"]);
}

/// A refusal that names nothing we sent is told as it is, after one request.
#[tokio::test]
async fn any_other_refusal_is_asked_once() {
    let (stub, provider) = open().await;
    stub.will(unsupported(
        "input[0].content",
        "invalid_value",
        "bad temperature in words",
    ));
    let asked = provider.stream(asking("gpt-5.1", |request| request.temperature = Some(0.5)));
    assert!(asked.await.is_err());
    assert_eq!(stub.requests().len(), 1);
}

/// The vendor's stream as a proxy may cut it: the end of each item says again what came before.
#[tokio::test]
async fn a_compatible_server_without_numbers_is_understood() {
    let (stub, provider) = open().await;
    let frames = [
        json!({"type": "response.output_text.delta", "delta": "hi"}),
        json!({"type": "response.completed", "response": {"usage": {"input_tokens": 1, "output_tokens": 1}}}),
    ];
    let frames = frames.map(|frame| Bytes::from(format!("data: {frame}\n\n")));
    stub.will(Reply::raw("text/event-stream", frames.to_vec()));
    let answer = super::collect(&provider, asking("gpt-5.1", |_| {}))
        .await
        .unwrap();
    assert_eq!(answer.text, "hi");
}
