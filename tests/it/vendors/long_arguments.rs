//! Calls with very long arguments: reading them takes as long as they are, and no longer.

use std::time::{Duration, Instant};

use axum::body::Bytes;
use serde_json::{Value, json};

use super::{provider, request, user};
use crate::model_stub::{ModelStub, Reply, STUB_KEY, Vendor};

/// Bytes of one piece of the arguments.
const PIECE: usize = 64;

/// One call whose only argument is a text of that many bytes, in small pieces.
fn call_of(vendor: Vendor, bytes: usize) -> Reply {
    let pieces = bytes / PIECE;
    let piece = "x".repeat(PIECE);
    let mut events = Vec::with_capacity(pieces + 4);
    match vendor {
        Vendor::Chat => {
            let delta = |delta: Value| json!({"choices": [{"index": 0, "delta": delta}]});
            let call = |function: Value| {
                delta(json!({"tool_calls": [{"index": 0, "id": "c", "function": function}]}))
            };
            let more = |json: &str| {
                delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": json}}]}))
            };
            events.push(call(
                json!({"name": "read_file", "arguments": "{\"path\":\""}),
            ));
            events.extend((0..pieces).map(|_| more(&piece)));
            events.push(more("\"}"));
            events.push(
                json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
            );
        }
        Vendor::Responses => {
            let more = |json: &str| json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": json});
            let call = json!({"type": "function_call", "id": "fc", "call_id": "c", "name": "read_file", "arguments": ""});
            events.push(
                json!({"type": "response.output_item.added", "output_index": 0, "item": call}),
            );
            events.push(more("{\"path\":\""));
            events.extend((0..pieces).map(|_| more(&piece)));
            events.push(more("\"}"));
            events.push(json!({"type": "response.completed", "response": {"status": "completed", "output": []}}));
        }
        Vendor::Messages => {
            let more = |json: &str| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": json}});
            let call = json!({"type": "tool_use", "id": "c", "name": "read_file", "input": {}});
            events.push(json!({"type": "content_block_start", "index": 0, "content_block": call}));
            events.push(more("{\"path\":\""));
            events.extend((0..pieces).map(|_| more(&piece)));
            events.push(more("\"}"));
            events.push(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}));
        }
        Vendor::Gemini => {
            let part = |call: Value| json!({"candidates": [{"content": {"parts": [{"functionCall": call}]}}]});
            let more = |text: &str| {
                part(
                    json!({"partialArgs": [{"jsonPath": "$.path", "stringValue": text, "willContinue": true}], "willContinue": true}),
                )
            };
            events.push(part(json!({"name": "read_file", "willContinue": true})));
            events.extend((0..pieces).map(|_| more(&piece)));
            events.push(part(json!({})));
            events.push(json!({"candidates": [{"finishReason": "STOP"}]}));
        }
    }
    let frames: Vec<String> = events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    Reply::raw("text/event-stream", vec![Bytes::from(frames.concat())])
}

async fn time(stub: &ModelStub, bytes: usize) -> Duration {
    stub.will(call_of(stub.vendor, bytes));
    let asked = request(stub.vendor, vec![user("hi")]);
    let since = Instant::now();
    let answer = super::collect(&provider(stub, STUB_KEY), asked)
        .await
        .unwrap();
    let took = since.elapsed();
    let args = answer.calls[0].args.as_ref().unwrap();
    assert_eq!(args["path"].as_str().unwrap().len(), bytes / PIECE * PIECE);
    took
}

/// Ten times the bytes may take thirty times as long, where a look back at each piece would take a
/// hundred. The best of several tries counts, so that a busy machine changes nothing.
#[tokio::test]
async fn a_megabyte_of_arguments_is_read_in_time_that_grows_with_its_length() {
    for vendor in Vendor::ALL {
        let stub = ModelStub::start_as(vendor).await;
        let mut best = [Duration::MAX; 2];
        for _ in 0..8 {
            for (best, bytes) in best.iter_mut().zip([100_000, 1_000_000]) {
                *best = time(&stub, bytes).await.min(*best);
            }
            if best[1] < best[0] * 30 {
                break;
            }
        }
        assert!(best[1] < best[0] * 30, "{vendor:?}: {best:?}");
    }
}
