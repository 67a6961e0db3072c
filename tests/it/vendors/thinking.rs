//! How much a model may think, what it takes none of, and answers that their vendor paused.

use axum::body::Bytes;
use futures::StreamExt as _;
use sepal::domain::{Effort, Entry};
use sepal::llm::{Finish, ModelEvent, Request};
use serde_json::{Value, json};

use super::{call, collect, provider, request, result, said, user};
use crate::model_stub::{ModelStub, Reply, STUB_KEY, Vendor};

fn asked(vendor: Vendor, model: &str, effort: Option<Effort>) -> Request {
    Request {
        model: model.to_owned(),
        temperature: Some(0.2),
        effort,
        ..request(vendor, vec![user("hi")])
    }
}

/// What is sent for each generation of models, with a temperature that most of them refuse.
#[tokio::test]
async fn every_generation_of_models_takes_what_it_is_told_of_thinking() {
    let mut sent = Vec::new();
    for (vendor, models) in [
        (
            Vendor::Messages,
            [
                "claude-3-haiku-20240307",
                "claude-sonnet-4-5-20250929",
                "claude-opus-4-6",
                "claude-opus-4-8",
                "claude-sonnet-5-5",
                "claude-opus-5-5",
            ]
            .as_slice(),
        ),
        (
            Vendor::Gemini,
            &[
                "gemini-2.0-flash",
                "gemini-2.5-pro",
                "gemini-2.5-flash",
                "gemini-3.5-flash-lite",
                "gemini-3.8-flash",
            ],
        ),
    ] {
        let stub = ModelStub::start_as(vendor).await;
        let provider = provider(&stub, STUB_KEY);
        for model in models {
            let mut of_model = Vec::new();
            for effort in [
                None,
                Some(Effort::Off),
                Some(Effort::Medium),
                Some(Effort::Max),
            ] {
                stub.will_say("ok");
                collect(&provider, asked(vendor, model, effort))
                    .await
                    .unwrap();
                let asked = stub.requests().pop().unwrap();
                let named = effort.map_or_else(|| "none".to_owned(), |effort| effort.to_string());
                of_model.push(format!("{named}: {}", told(&asked.body, &asked.headers)));
            }
            sent.push(format!("{model}\n  {}", of_model.join("\n  ")));
        }
    }
    insta::assert_snapshot!(sent.join("\n"));
}

/// The parts of a request that are about thinking.
fn told(body: &Value, headers: &axum::http::HeaderMap) -> String {
    let names = [
        "max_tokens",
        "temperature",
        "thinking",
        "output_config",
        "generationConfig",
    ];
    let parts = names
        .iter()
        .filter_map(|name| Some(format!("{name} {}", body.get(*name)?)));
    let beta = headers.get("anthropic-beta");
    let beta = beta.map(|beta| format!("beta {}", beta.to_str().unwrap()));
    parts.chain(beta).collect::<Vec<_>>().join(", ")
}

/// What nobody knew is learned from the refusal, left out from then on, and said once.
#[tokio::test]
async fn a_parameter_that_a_model_refuses_is_left_out_and_said_once() {
    for (vendor, model, refused) in [
        (Vendor::Messages, "claude-nova-4-5", 3),
        (Vendor::Gemini, "gemini-3-flash-preview", 1),
    ] {
        let stub = ModelStub::start_as(vendor).await;
        let provider = provider(&stub, STUB_KEY);
        let mut left_out = Vec::new();
        for round in 0..3 {
            let mut request = asked(vendor, model, Some(Effort::Minimal));
            if round == 0 {
                // Alone, so that it is not left out for being sent with thoughts.
                request.effort = None;
            }
            stub.will_say("ok");
            let mut stream = provider.stream(request).await.unwrap();
            let mut is_over = false;
            while let Some(event) = stream.next().await {
                let event = event.unwrap();
                is_over = matches!(event, ModelEvent::Finished(_));
                if let ModelEvent::LeftOut(text) = event {
                    left_out.push(text);
                }
            }
            assert!(is_over);
        }
        assert_eq!(stub.take_refusals().len(), refused, "{vendor:?}");
        assert_eq!(
            stub.requests().len(),
            3 + refused,
            "nothing is refused twice"
        );
        let mut once = left_out.clone();
        once.dedup();
        assert_eq!(once, left_out);
        let is_said = left_out
            .iter()
            .any(|text| text.contains("takes no temperature"));
        assert_eq!(is_said, vendor == Vendor::Messages, "{left_out:?}");
    }
}

/// Another refusal is told as ever.
#[tokio::test]
async fn a_refusal_that_names_no_parameter_is_not_asked_again() {
    let stub = ModelStub::start_as(Vendor::Messages).await;
    let refusal = json!({"type": "error", "error": {"type": "invalid_request_error",
        "message": "messages.0.content.0: thinking and temperature are mentioned here"}});
    stub.will_fail(400, &[], &refusal.to_string());
    let request = asked(Vendor::Messages, "claude-opus-4-6", Some(Effort::High));
    assert!(collect(&provider(&stub, STUB_KEY), request).await.is_err());
    assert_eq!(stub.requests().len(), 1);
}

/// A budget needs a turn that began with thoughts, which another vendor's model did not leave.
#[tokio::test]
async fn a_turn_that_another_model_began_goes_on_without_a_budget() {
    let stub = ModelStub::start_as(Vendor::Messages).await;
    let read = call(0, "c0", "read_file", json!({}));
    let mut entries = vec![
        user("read"),
        said("", vec![read.clone()], None),
        result(&read, "R"),
    ];
    let provider = provider(&stub, STUB_KEY);
    for is_thinking in [false, true] {
        stub.will_say("ok");
        let model = "claude-sonnet-4-5-20250929";
        let mut request = asked(Vendor::Messages, model, Some(Effort::High));
        request.entries = entries.clone().into();
        collect(&provider, request).await.unwrap();
        let body = stub.requests().pop().unwrap().body;
        assert_eq!(body.get("thinking").is_some(), is_thinking, "{body}");
        // A person's next message begins a turn of its own.
        entries.push(user("and now?"));
        entries.push(said("well", vec![], None));
        entries.push(user("tell me"));
    }
}

fn paused(thought: &str, text: &str, reason: &str) -> Reply {
    let call = json!({"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}});
    let mut blocks = vec![
        json!({"type": "thinking", "thinking": thought, "signature": "stub-signature"}),
        json!({"type": "text", "text": text}),
    ];
    if reason == "pause_turn" {
        blocks.push(call);
    }
    let usage = json!({"input_tokens": 3, "output_tokens": 1});
    let mut events =
        vec![json!({"type": "message_start", "message": {"content": [], "usage": usage}})];
    for (index, block) in blocks.iter().enumerate() {
        events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        if block["type"] == "server_tool_use" {
            let delta = json!({"type": "input_json_delta", "partial_json": "{\"q\": 1}"});
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 4}}));
    events.push(json!({"type": "message_stop"}));
    let frames = events
        .iter()
        .map(|event| Bytes::from(format!("data: {event}\n\n")));
    Reply::raw("text/event-stream", frames.collect())
}

#[tokio::test]
async fn a_paused_answer_goes_back_as_it_came_and_is_one_answer() {
    let stub = ModelStub::start_as(Vendor::Messages).await;
    stub.will(paused("one", "It ", "pause_turn"))
        .then(paused("two", "goes ", "pause_turn"))
        .then(paused("three", "on.", "end_turn"));
    let request = request(Vendor::Messages, vec![user("hi")]);
    let answer = collect(&provider(&stub, STUB_KEY), request).await.unwrap();
    assert_eq!(
        (answer.text.as_str(), answer.finish),
        ("It goes on.", Some(Finish::Stop))
    );
    assert_eq!(answer.reasoning, "onetwothree");
    let usage = answer.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (9, 12));
    let asked = stub.requests();
    assert_eq!(asked.len(), 3);
    let thought =
        |text: &str| json!({"type": "thinking", "thinking": text, "signature": "stub-signature"});
    let text = |text: &str| json!({"type": "text", "text": text});
    let search =
        json!({"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"q": 1}});
    assert_eq!(
        asked[2].body["messages"][1],
        json!({"role": "assistant", "content": [
            thought("one"), text("It "), search, thought("two"), text("goes "), search,
        ]})
    );
    assert_eq!(asked[2].body["messages"][0], asked[0].body["messages"][0]);
}

#[tokio::test]
async fn a_pause_without_end_ends_and_a_refused_going_on_is_told() {
    let stub = ModelStub::start_as(Vendor::Messages).await;
    let provider = provider(&stub, STUB_KEY);
    for _ in 0..9 {
        stub.will(paused("t", "x", "pause_turn"));
    }
    let asked = || request(Vendor::Messages, vec![user("hi")]);
    let answer = collect(&provider, asked()).await.unwrap();
    assert_eq!(
        (answer.text.len(), answer.finish),
        (9, Some(Finish::Paused))
    );
    assert_eq!(stub.requests().len(), 9);
    // The call that never got a result does not go back with the next message.
    let entries: Vec<Entry> = vec![
        user("hi"),
        said(&answer.text, vec![], answer.native),
        user("go on"),
    ];
    stub.will_say("ok");
    collect(&provider, request(Vendor::Messages, entries))
        .await
        .unwrap();
    let body = stub.requests().pop().unwrap().body.to_string();
    assert!(!body.contains("server_tool_use"), "{body}");
    stub.will(paused("t", "x", "pause_turn"))
        .will_fail(529, &[], "busy");
    let error = collect(&provider, asked()).await.unwrap_err();
    assert!(error.to_string().contains("busy"), "{error}");
}
