//! Servers of others that speak Chat Completions: what they are told of thinking, and what of it they
//! want back.

use axum::body::Bytes;
use sepal::domain::Effort;
use serde_json::{Value, json};

use super::{call, collect, left_out, provider, request, result, said, user};
use crate::model_stub::{ModelStub, Reply, Vendor};

fn efforts(stub: &ModelStub) -> Vec<Option<Value>> {
    let asked = stub.requests().into_iter();
    asked
        .map(|asked| asked.body.get("reasoning_effort").cloned())
        .collect()
}

#[tokio::test]
async fn an_effort_is_told_until_the_server_says_that_it_takes_none() {
    let stub = ModelStub::start().await;
    let provider = provider(&stub, "k");
    let ask = |effort| {
        let mut request = request(Vendor::Chat, vec![user("hi")]);
        request.effort = Some(effort);
        request
    };
    stub.will_say("a");
    assert_eq!(left_out(&provider, ask(Effort::Max)).await, [""; 0]);
    let refusal = r#"{"detail":[{"type":"extra_forbidden","loc":["body","reasoning_effort"],"msg":"Extra inputs are not permitted"}]}"#;
    stub.will_fail(422, &[], refusal)
        .then_say("b")
        .then_say("c");
    let told = left_out(&provider, ask(Effort::Low)).await;
    assert_eq!(
        told,
        ["effort `low` is left out: the model `stub` takes none"]
    );
    assert_eq!(left_out(&provider, ask(Effort::Low)).await, [""; 0]);
    assert_eq!(
        efforts(&stub),
        [Some(json!("high")), Some(json!("low")), None, None]
    );
}

/// A stream of one call that was thought about in pieces.
fn thoughtful(pieces: &[Value]) -> Reply {
    let delta = |delta: Value| json!({"choices": [{"index": 0, "delta": delta}]});
    let function = json!({"name": "read_file", "arguments": "{}"});
    let call = json!([{"index": 0, "id": "c1", "type": "function", "function": function}]);
    let thoughts = pieces.iter().map(|piece| {
        delta(json!({"content": "", "reasoning": piece["text"], "reasoning_details": [piece]}))
    });
    let rest = [
        delta(json!({ "tool_calls": call })),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
    ];
    let frames = thoughts
        .chain(rest)
        .map(|chunk| Bytes::from(format!("data: {chunk}\n\n")));
    Reply::raw("text/event-stream", frames.collect())
}

#[tokio::test]
async fn reasoning_details_go_back_in_a_tool_loop_as_they_came() {
    let stub = ModelStub::start().await;
    let text = |text: &str| json!({"type": "reasoning.text", "text": text, "format": "anthropic-claude-v1", "index": 0});
    let signature = json!({"type": "reasoning.text", "signature": "s", "format": "anthropic-claude-v1", "index": 0});
    let sealed =
        json!({"type": "reasoning.encrypted", "data": "d", "id": "c1", "format": null, "index": 1});
    stub.will(thoughtful(&[
        text("I "),
        text("read"),
        signature,
        sealed.clone(),
    ]))
    .then_say("Done");
    let provider = provider(&stub, "k");
    let mut entries = vec![user("read")];
    let answer = collect(&provider, request(Vendor::Chat, entries.clone())).await;
    let answer = answer.unwrap();
    assert_eq!(answer.reasoning, "I read");
    let asked = call(0, "c1", "read_file", json!({}));
    entries.push(said("", vec![asked.clone()], answer.native));
    entries.push(result(&asked, "r"));
    collect(&provider, request(Vendor::Chat, entries))
        .await
        .unwrap();
    let sent = stub.requests().pop().unwrap().body["messages"][2].clone();
    let mut whole = text("I read");
    whole["signature"] = json!("s");
    assert_eq!(sent["reasoning_details"], json!([whole, sealed]));
    assert_eq!(sent.get("reasoning"), None, "once is enough");
}
