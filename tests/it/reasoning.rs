//! What a model thinks aloud: part of the journal, and no part of what the next request reads.

use serde_json::{Value, json};

use crate::model_stub::Reply;
use crate::rest::Client;
use crate::support::{Person, Said, TestApp, TestSocket};

/// An answer of Chat Completions that is thought about first.
fn thoughtful(thought: &str, text: &str, call: Option<&str>) -> Reply {
    let mut deltas = vec![json!({ "reasoning_content": thought })];
    deltas.push(json!({ "content": text }));
    deltas.extend(call.map(|name| {
        let function = json!({ "name": name, "arguments": "{}" });
        json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}]})
    }));
    let reason = if call.is_some() { "tool_calls" } else { "stop" };
    let choice = |delta: &Value, reason: Option<&str>| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
    let mut chunks: Vec<Value> = deltas.iter().map(|delta| choice(delta, None)).collect();
    chunks.push(choice(&json!({}), Some(reason)));
    let frames = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
    let frames = frames.chain(["data: [DONE]\n\n".to_owned()]);
    Reply::raw("text/event-stream", frames.map(Into::into).collect())
}

/// The reasoning of each event that has some, by the event's name.
fn thoughts(events: &Value) -> Vec<(String, Value)> {
    let events = events.as_array().unwrap().iter();
    let told = events.filter_map(|event| {
        let rest = event["args"].as_array().unwrap().last().unwrap();
        let thought = rest.get("reasoning")?;
        Some((event["event"].as_str().unwrap().to_owned(), thought.clone()))
    });
    told.collect()
}

async fn read_again(app: &TestApp, ana: &Person, session: &str) -> Vec<(String, Value)> {
    let socket = TestSocket::open(app.address, ana, Some(session)).await;
    let shown = thoughts(&socket.ready["state"]["transcript"]["events"]);
    let rest = Client::with_key(app, &ana.key);
    let page = rest
        .get(&format!("/api/sessions/{session}/events?limit=100"))
        .await;
    assert_eq!(
        thoughts(&page.ok(200)["items"]),
        shown,
        "REST tells the same"
    );
    shown
}

#[tokio::test]
async fn what_was_thought_outlives_the_page_the_gateway_and_a_stop() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    app.model
        .will(thoughtful("look first", "Looking.", Some("no_such_tool")))
        .then(thoughtful("now I know", "It is noon.", None));
    socket.say("What time is it?").await;
    let lived = socket.wait_for("agent:response").await;
    assert_eq!(lived.rest()["reasoning"]["text"], "now I know", "{lived:?}");
    app.model
        .will(thoughtful("never said", "so far", None))
        .stall();
    socket.say("go on").await;
    app.model.stalled().await;
    socket
        .wait_where(|said: &Said| said.name == "agent:delta" && said.text() == "never said")
        .await;
    assert_eq!(socket.ask("agent:cancel", &[]).await["ok"], true);
    socket.wait_for("agent:cancelled").await;
    app.model.release();

    let session = socket.session();
    let expected = [
        ("agent:message", "look first"),
        ("agent:response", "now I know"),
        ("agent:cancelled", "never said"),
    ];
    let texts = |shown: &[(String, Value)]| -> Vec<(String, String)> {
        let text = |thought: &Value| thought["text"].as_str().unwrap().to_owned();
        shown
            .iter()
            .map(|(name, thought)| (name.clone(), text(thought)))
            .collect()
    };
    let expected = expected.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let shown = read_again(&app, &ana, &session).await;
    assert_eq!(texts(&shown), expected);
    assert!(shown[1].1["durationMs"].is_u64(), "{shown:?}");
    drop(socket);
    let app = app.restart().await;
    assert_eq!(read_again(&app, &ana, &session).await, shown);
    app.stop().await;
}

#[tokio::test]
async fn a_long_thought_is_kept_up_to_its_limit_and_says_what_is_missing() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    // Three bytes a letter, so that the limit falls into the middle of one.
    let thought = "…".repeat(60_000);
    app.model.will(thoughtful(&thought, "Done.", None));
    socket.say("think").await;
    let answered = socket.wait_for("agent:response").await;
    let kept = answered.rest()["reasoning"]["text"].as_str().unwrap();
    assert_eq!(kept.len(), 65_535, "whole letters within 64 KiB");
    assert!(thought.starts_with(kept));
    let left_out = answered.rest()["reasoning"]["leftOutBytes"].as_u64();
    assert_eq!(left_out, Some(180_000 - 65_535));
    let shown = read_again(&app, &ana, &socket.session()).await;
    assert_eq!(shown[0].1, answered.rest()["reasoning"]);
}

#[tokio::test]
async fn an_answer_without_a_thought_has_no_field_of_it() {
    let app = TestApp::start().await;
    let mut ana = app.socket("acme").await;
    app.model.will_say("Hello");
    ana.say("hello").await;
    let answered = ana.wait_for("agent:response").await;
    assert_eq!(answered.rest().get("reasoning"), None);
}
