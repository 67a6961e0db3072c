//! Answers that do not end as they should: cut off within a call, or stopped by the vendor's filter.

use axum::body::Bytes;
use serde_json::{Value, json};

use super::{Reply, Vendor, responses};

impl Vendor {
    /// An answer of one call whose arguments came so far when the longest answer was reached.
    pub(crate) fn cut_call(self, tool: &str, args_so_far: &str) -> Reply {
        self.ended(tool, args_so_far, [false, true])
    }

    /// An answer of one whole call that the vendor's filter then stopped.
    pub(crate) fn filtered_call(self, tool: &str, args: &Value) -> Reply {
        self.ended(tool, &args.to_string(), [true, false])
    }

    fn ended(self, tool: &str, args: &str, [is_filtered, is_cut]: [bool; 2]) -> Reply {
        let word =
            |filtered: &'static str, cut: &'static str| if is_filtered { filtered } else { cut };
        match self {
            Self::Chat => chat_ended(tool, args, word("content_filter", "length")),
            Self::Responses => responses::ended(tool, args, is_filtered),
            Self::Messages => {
                let call =
                    json!({"type": "tool_use", "id": "toolu_stub_0", "name": tool, "input": {}});
                let reason = word("refusal", "max_tokens");
                let details = word(r#"{"type": "refusal", "category": "cyber"}"#, "null");
                let details: Value = serde_json::from_str(details).unwrap();
                events(&[
                    json!({"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 1}}}),
                    json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "I begin"}}),
                    json!({"type": "content_block_stop", "index": 0}),
                    json!({"type": "content_block_start", "index": 1, "content_block": call}),
                    json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": args}}),
                    json!({"type": "content_block_stop", "index": 1}),
                    json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_details": details}, "usage": {"output_tokens": 7}}),
                    json!({"type": "message_stop"}),
                ])
            }
            Self::Gemini => {
                let parts = |part: Value, reason: Option<&str>| {
                    let mut candidate =
                        json!({"content": {"parts": [part], "role": "model"}, "index": 0});
                    if let Some(reason) = reason {
                        candidate["finishReason"] = json!(reason);
                    }
                    json!({"candidates": [candidate]})
                };
                // Its calls come in pieces only where arguments are streamed.
                let call = if is_cut {
                    json!({"name": tool, "willContinue": true, "partialArgs": if args.is_empty() {
                        json!([])
                    } else {
                        json!([{"jsonPath": "$.path", "stringValue": "a", "willContinue": true}])
                    }})
                } else {
                    json!({"name": tool, "args": serde_json::from_str::<Value>(args).unwrap()})
                };
                events(&[
                    parts(json!({"text": "I begin"}), None),
                    parts(
                        json!({"functionCall": call, "thoughtSignature": "stub-signature"}),
                        None,
                    ),
                    parts(json!({"text": ""}), Some(word("SAFETY", "MAX_TOKENS"))),
                ])
            }
        }
    }
}

fn events(events: &[Value]) -> Reply {
    let frame = |event: &Value| Bytes::from(format!("data: {event}\n\n"));
    Reply::raw("text/event-stream", events.iter().map(frame).collect())
}

fn chat_ended(tool: &str, args: &str, reason: &str) -> Reply {
    let delta = |delta: Value, reason: Option<&str>| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
    let call = json!({"tool_calls": [{"index": 0, "id": "call_stub_0", "type": "function",
                    "function": {"name": tool, "arguments": ""}}]});
    let piece = json!({"tool_calls": [{"index": 0, "function": {"arguments": args}}]});
    events(&[
        delta(json!({"content": "I begin"}), None),
        delta(call, None),
        delta(piece, None),
        delta(json!({}), Some(reason)),
    ])
}
