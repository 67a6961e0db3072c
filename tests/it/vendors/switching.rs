//! A conversation goes on with a model of another vendor, and back: in every pair.

use std::collections::HashMap;
use std::sync::Arc;

use sepal::domain::{Attachment, BlobId, Entry, MediaType, ModelCall};
use sepal::llm::{Answer, Content, Contents, Encoded};
use serde_json::{Value, json};

use super::{call, collect, provider, request, result, said, user};
use crate::model_stub::{ModelStub, Reply, STUB_KEY, Vendor};

/// An answer that was thought about, with two calls at once.
fn thoughtful(vendor: Vendor) -> Reply {
    let read = |path: &str| ("read_file", json!({"path": path}));
    if vendor != Vendor::Chat {
        return Reply::answer("I read.", &[read("a"), read("b")]);
    }
    let delta = |delta: Value| json!({"choices": [{"index": 0, "delta": delta}]});
    let asks = |index: usize| {
        let function = json!({"name": "read_file", "arguments": r#"{"path":"a"}"#});
        delta(
            json!({"tool_calls": [{"index": index, "id": format!("c{index}"), "type": "function", "function": function}]}),
        )
    };
    let chunks = [
        delta(json!({"reasoning_content": "I need tools"})),
        delta(json!({"content": "I read."})),
        asks(0),
        asks(1),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
    ];
    let frames = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
    Reply::raw("text/event-stream", frames.map(Into::into).collect())
}

/// An answer as it stands in the journal, its calls with their results, and one call that never came
/// back.
fn journaled(answer: Answer, iteration: usize) -> Vec<Entry> {
    let first = 10 * iteration;
    let asked = answer.calls.into_iter().enumerate();
    let mut calls: Vec<ModelCall> = asked
        .map(|(at, asked)| {
            call(
                first + at,
                &asked.provider_id,
                &asked.name,
                asked.args.unwrap(),
            )
        })
        .collect();
    let mut results: Vec<Entry> = calls.iter().rev().map(|call| result(call, "r")).collect();
    if let Some(Entry::ToolResult { attachments, .. }) = results.last_mut() {
        attachments.push(picture());
    }
    calls.push(call(first + 5, "orphan", "read_file", json!({})));
    let mut entries = vec![said(&answer.text, calls, answer.native)];
    entries.extend(results);
    entries.push(result(
        &call(first + 6, "gone", "x", json!({})),
        "an orphan too",
    ));
    entries
}

fn picture() -> Attachment {
    Attachment {
        id: BlobId::of(b"abc"),
        name: "cat.png".to_owned(),
        media_type: MediaType::Png,
        bytes: 3,
        width: Some(1),
        height: Some(1),
        source: None,
    }
}

/// What a person said with a picture.
fn shown(text: &str) -> Entry {
    Entry::User {
        seq: 1,
        text: text.to_owned(),
        attachments: vec![picture()],
    }
}

/// Newer models of Gemini want every call of the running turn signed; this one does not.
fn model(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Gemini => "gemini-2.0-flash",
        Vendor::Chat | Vendor::Responses | Vendor::Messages => vendor.model(),
    }
}

async fn ask(stub: &ModelStub, entries: &[Entry]) -> Answer {
    let mut request = request(stub.vendor, entries.to_vec());
    model(stub.vendor).clone_into(&mut request.model);
    let encoded = Content::Encoded(Arc::new(Encoded::new(MediaType::Png, b"abc")));
    request.contents = Contents::new(HashMap::from([(picture().id, encoded)]));
    collect(&provider(stub, STUB_KEY), request).await.unwrap()
}

#[tokio::test]
async fn thoughts_orphans_and_parallel_calls_of_one_vendor_are_history_for_another() {
    let pairs = Vendor::ALL
        .into_iter()
        .flat_map(|from| Vendor::ALL.map(|to| (from, to)));
    for (from, to) in pairs {
        let (first, second) = (
            ModelStub::start_as(from).await,
            ModelStub::start_as(to).await,
        );
        first.will(thoughtful(from)).then_say("Back");
        second.will(thoughtful(to)).then_say("There");
        let mut entries = vec![shown("read")];
        entries.extend(journaled(ask(&first, &entries).await, 1));
        entries.extend(journaled(ask(&second, &entries).await, 2));
        entries.push(user("go on"));
        let answer = ask(&first, &entries).await;
        assert_eq!(answer.text, "Back", "{from:?} {to:?}");
        entries.push(said(&answer.text, vec![], answer.native));
        entries.push(user("and now?"));
        assert_eq!(
            ask(&second, &entries).await.text,
            "There",
            "{from:?} {to:?}"
        );
        check_seals(&first, &second);
    }
}

/// The field in which a vendor's seal stands.
fn seal(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Responses => "\"encrypted_content\":",
        Vendor::Messages => "\"signature\":",
        Vendor::Chat => "\"reasoning_content\":",
        Vendor::Gemini => "\"thoughtSignature\":",
    }
}

/// What a vendor signed goes back to it, and to nobody else.
fn check_seals(first: &ModelStub, second: &ModelStub) {
    for (stub, of_other) in [(first, second), (second, first)] {
        let body = stub.requests().pop().unwrap().body.to_string();
        let pair = format!("{:?} beside {:?}", stub.vendor, of_other.vendor);
        assert!(body.contains(seal(stub.vendor)), "{pair} {body}");
        if of_other.vendor != stub.vendor {
            assert!(!body.contains(seal(of_other.vendor)), "{pair} {body}");
        }
        assert!(body.contains("YWJj"), "the picture: {pair} {body}");
        assert!(!body.contains("orphan"), "{pair} {body}");
    }
}
