//! What goes over the wire and comes back.

use axum::body::Bytes;
use sepal::domain::{Code, Entry, ModelCall, TokenUsage};
use sepal::llm::{Error, Finish, Refusal};
use serde_json::{Value, json};

use super::{VENDORS, call, collect, provider, request, result, said, tell, tool, user};
use crate::model_stub::{ModelStub, Reply, STUB_KEY, Vendor};

#[tokio::test]
async fn text_usage_and_the_reason_come_whole() {
    for vendor in VENDORS {
        let stub = ModelStub::start_as(vendor).await;
        stub.will_say("Hello, wörld and 😀");
        let answer = tell(&stub).await.unwrap();
        assert_eq!(answer.text, "Hello, wörld and 😀", "{vendor:?}");
        assert_eq!(answer.finish, Some(Finish::Stop));
        let (written, thought) = match vendor {
            Vendor::Chat | Vendor::Messages => (2, 0),
            Vendor::Responses | Vendor::Gemini => (0, 3),
        };
        let expected = TokenUsage {
            input_tokens: 11,
            cached_tokens: 5,
            cache_write_tokens: written,
            cache_write_long_tokens: 0,
            output_tokens: 7,
            reasoning_tokens: thought,
            is_estimated: false,
        };
        assert_eq!(answer.usage, Some(expected), "{vendor:?}");
        let asked = stub.requests().remove(0);
        assert!(!asked.uri.to_string().contains(STUB_KEY), "{}", asked.uri);
        let expected = (vendor == Vendor::Responses).then(|| format!("Bearer {STUB_KEY}"));
        assert_eq!(asked.authorization, expected);
    }
}

#[tokio::test]
async fn calls_go_out_and_come_back_paired_with_what_their_vendor_signed() {
    for vendor in VENDORS {
        let stub = ModelStub::start_as(vendor).await;
        let read = |path: &str| ("read_file", json!({"path": path, "deep": {"a": [1, null]}}));
        stub.will(Reply::answer(
            "I read three.",
            &[read("a"), read("b"), read("ö")],
        ))
        .then_say("Done");
        let provider = provider(&stub, STUB_KEY);
        let mut entries = vec![user("read")];
        let answer = collect(&provider, request(vendor, entries.clone()))
            .await
            .unwrap();
        assert_eq!(
            (answer.text.as_str(), answer.finish),
            ("I read three.", Some(Finish::Calls))
        );
        let calls: Vec<ModelCall> = answer
            .calls
            .iter()
            .enumerate()
            .map(|(at, asked)| {
                call(
                    at,
                    &asked.provider_id,
                    &asked.name,
                    asked.args.clone().unwrap(),
                )
            })
            .collect();
        assert_eq!(calls[2].args["path"], "ö");
        assert!(answer.native.is_some(), "{vendor:?}");
        entries.push(said(&answer.text, calls.clone(), answer.native));
        for call in calls.iter().rev() {
            entries.push(user("and hurry"));
            entries.push(result(call, &format!("content of {}", call.args["path"])));
        }
        let answer = collect(&provider, request(vendor, entries)).await.unwrap();
        assert_eq!(answer.text, "Done", "{vendor:?}");
    }
}

#[tokio::test]
async fn what_another_vendor_or_history_left_is_still_a_valid_request() {
    for vendor in VENDORS {
        let stub = ModelStub::start_as(vendor).await;
        stub.will_say("ok");
        let calls = vec![
            call(0, "functions.read:0", "files.read file", json!("{oops")),
            call(1, "same", "2fa", json!(null)),
            call(2, "same", "read", json!([1])),
        ];
        let foreign = sepal::domain::Native {
            family: "openai".to_owned(),
            blocks: json!([{"place": {"text": 0, "calls": 0}, "block": {"type": "thinking"}, "thoughtSignature": "x"}]),
            compacts: false,
        };
        let gone = call(9, "gone", "x", json!({}));
        let mut request = request(
            vendor,
            vec![
                result(&gone, ""),
                said("", vec![], None),
                user(""),
                said(" \n", calls.clone(), Some(foreign)),
                result(&calls[0], ""),
                Entry::Note {
                    text: "n".to_owned(),
                },
                said("I said", vec![], None),
                said("more", vec![], None),
            ],
        );
        // Signatures are asked for by newer models only.
        if vendor == Vendor::Gemini {
            request.model = "gemini-2.0-flash".to_owned();
        }
        let wild = json!({"$schema": "x", "type": "object", "additionalProperties": false, "$defs": {"p": {"type": ["string", "null"]}},
            "properties": {"a": {"$ref": "#/$defs/p"}, "b": {"oneOf": [{"const": 1}, {"type": "array"}]}, "c": true, "d": {"enum": [1, "x", ""]}}});
        let long = "x".repeat(99);
        let unfit = ["files.read file", "ö", "", &long, "twice", "twice", "2fa"];
        request.tools = unfit.map(|name| tool(name, wild.clone())).into();
        request.max_tokens = Some(0);
        collect(&provider(&stub, STUB_KEY), request).await.unwrap();
        let body = stub.requests().remove(0).body;
        let tools = body
            .pointer("/tools/0/functionDeclarations")
            .unwrap_or(&body["tools"]);
        assert_eq!(tools.as_array().unwrap().len(), 6, "{vendor:?}");
    }
}

fn whole(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Chat | Vendor::Messages => concat!(
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1}}}\n\n",
            ": a comment\n\nevent: ping\ndata: {\"type\": \"ping\"}\n\n",
            "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
            "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"wör\"}}\n\n",
            "event: unknown\nid: 3\ndata: {\"type\":\"brand_new\",\"x\":[{}]}\n\n",
            "data: {\"type\":\"content_block_delta\",\"index\":0,\ndata: \"delta\":{\"type\":\"text_delta\",\"text\":\"ld 😀\"}}\n\n",
            "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n",
            "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        ),
        Vendor::Responses => concat!(
            "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"status\":\"in_progress\"}}\n\n",
            "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"message\"}}\n\n",
            ": a comment\n\nevent: unknown\nid: 3\ndata: {\"type\":\"response.brand_new\",\"item\":[{}]}\n\n",
            "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"wör\"}\n\n",
            "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\ndata: \"delta\":\"ld 😀\"}\n\n",
            "data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":1,\"output_tokens\":2},\"status\":\"completed\"}}\n\n",
        ),
        Vendor::Gemini => concat!(
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"wör\"}],\"role\":\"model\"},\"index\":0}]}\n\n",
            ": a comment\n\nevent: unknown\nid: 3\ndata: {\"brandNew\":[{}]}\n\n",
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"ld 😀\"}]},\ndata: \"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":1,\"candidatesTokenCount\":2}}\n\n",
        ),
    }
}

#[tokio::test]
async fn a_stream_may_be_split_at_every_byte_and_written_in_every_style() {
    for vendor in VENDORS {
        let plain = whole(vendor);
        let crlf = plain.replace('\n', "\r\n");
        let stub = ModelStub::start_as(vendor).await;
        for text in [plain, &crlf, plain.trim_end()] {
            let bytes = text.bytes().map(|byte| Bytes::from(vec![byte])).collect();
            for frames in [vec![Bytes::from(text.to_owned())], bytes] {
                stub.will(Reply::raw("text/event-stream", frames));
                let answer = tell(&stub).await.unwrap();
                assert_eq!(
                    (answer.text.as_str(), answer.finish),
                    ("wörld 😀", Some(Finish::Stop)),
                    "{vendor:?} {text}"
                );
                assert_eq!(answer.usage.unwrap().total(), 3);
            }
        }
    }
}

/// Every cut of a stream is a cut, until the model has said that it is done.
#[tokio::test]
async fn a_stream_that_ends_early_is_cut_wherever_it_ends() {
    for vendor in VENDORS {
        let stub = ModelStub::start_as(vendor).await;
        let text = whole(vendor);
        let done = match vendor {
            Vendor::Chat | Vendor::Messages => text.find("end_turn\"}").unwrap(),
            Vendor::Responses => text.find("\"completed\"}").unwrap(),
            Vendor::Gemini => text.find("STOP").unwrap(),
        };
        for at in (0..done).step_by(7) {
            let head = text.as_bytes()[..at].to_vec();
            stub.will(Reply::raw("text/event-stream", vec![Bytes::from(head)]));
            let error = tell(&stub).await.unwrap_err();
            assert!(
                matches!(error, Error::Cut { .. } | Error::BadAnswer { .. }),
                "{vendor:?} {at}: {error:?}"
            );
            // Half a character is no text; everything else is a cut.
            let is_text = std::str::from_utf8(&text.as_bytes()[..at]).is_ok();
            assert!(
                !is_text || matches!(error, Error::Cut { .. }),
                "{at}: {error:?}"
            );
        }
        stub.will_say("one two three").will_cut_after(3);
        let error = tell(&stub).await.unwrap_err();
        assert!(
            matches!(
                error,
                Error::Cut {
                    source: Some(_),
                    ..
                }
            ),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn an_error_in_the_middle_and_a_page_instead_of_an_answer_are_told() {
    for vendor in VENDORS {
        let stub = ModelStub::start_as(vendor).await;
        let head = &whole(vendor)[..whole(vendor).find(": a comment").unwrap()];
        let tail = match vendor {
            Vendor::Chat | Vendor::Messages => {
                "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"
            }
            Vendor::Responses => {
                "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"Overloaded\",\"param\":null}\n\n"
            }
            Vendor::Gemini => {
                "data: {\"error\":{\"code\":503,\"message\":\"Overloaded\",\"status\":\"UNAVAILABLE\"}}\n\n"
            }
        };
        let text = format!("{head}{tail}");
        stub.will(Reply::raw("text/event-stream", vec![Bytes::from(text)]));
        let error = tell(&stub).await.unwrap_err();
        assert_eq!(error.code(), Code::ProviderUnavailable, "{error:?}");
        assert!(error.to_string().contains("Overloaded"), "{error}");
        let page = Bytes::from_static(b"\n<html>hello</html>");
        stub.will(Reply::raw("text/html", vec![page]));
        assert!(matches!(tell(&stub).await, Err(Error::BadAnswer { .. })));
    }
}

#[tokio::test]
async fn a_plain_document_instead_of_a_stream_is_read() {
    let messages = json!({"type": "message", "role": "assistant", "content": [{"type": "text", "text": "hi"}],
        "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 2}});
    let chunk = json!({"candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2}});
    let response = json!({"object": "response", "status": "completed", "error": null, "output": [
        {"type": "message", "content": [{"type": "output_text", "text": "hi"}]}],
        "usage": {"input_tokens": 1, "output_tokens": 2}});
    for (vendor, body) in [
        (Vendor::Responses, response),
        (Vendor::Messages, messages),
        (Vendor::Gemini, chunk.clone()),
        (Vendor::Gemini, json!([chunk])),
    ] {
        let stub = ModelStub::start_as(vendor).await;
        let body = Bytes::from(body.to_string());
        stub.will(Reply::raw("application/json", vec![body]));
        let answer = tell(&stub).await.unwrap();
        assert_eq!(
            (answer.text.as_str(), answer.usage.unwrap().total()),
            ("hi", 3)
        );
    }
    let stub = ModelStub::start_as(Vendor::Gemini).await;
    let body = json!([{"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED"}}]);
    stub.will(Reply::raw(
        "application/json",
        vec![Bytes::from(body.to_string())],
    ));
    assert_eq!(
        tell(&stub).await.unwrap_err().code(),
        Code::ProviderRateLimited
    );
}

/// Some relays begin anew in the middle: nothing is said twice, and no call is lost.
#[tokio::test]
async fn a_message_that_begins_twice_is_one_answer() {
    let stub = ModelStub::start_as(Vendor::Messages).await;
    let text = whole(Vendor::Messages);
    let (head, rest) = text.split_at(text.find(": a comment").unwrap());
    let twice = format!("{head}{head}{rest}");
    for bytes in [
        vec![Bytes::from(twice.clone())],
        twice.bytes().map(|byte| Bytes::from(vec![byte])).collect(),
    ] {
        stub.will(Reply::raw("text/event-stream", bytes));
        let answer = tell(&stub).await.unwrap();
        assert_eq!(answer.text, "wörld 😀");
        assert_eq!(answer.usage.unwrap().total(), 3);
    }
}

#[tokio::test]
async fn a_connection_is_used_again() {
    for vendor in VENDORS {
        let stub = ModelStub::start_as(vendor).await;
        stub.will_say("a b")
            .then_say("c")
            .then_call("read_file", json!({}));
        let provider = provider(&stub, STUB_KEY);
        for _ in 0..3 {
            let request = request(vendor, vec![user("hi")]);
            collect(&provider, request).await.unwrap();
        }
        let peers: Vec<_> = stub.requests().iter().map(|asked| asked.peer).collect();
        assert_eq!(peers, [peers[0]; 3], "{vendor:?}");
    }
}

#[tokio::test]
async fn a_list_of_models_is_read_page_by_page() {
    let of = |id: &str| json!({"type": "model", "id": id, "display_name": id.to_uppercase()});
    let stub = ModelStub::start_as(Vendor::Messages).await;
    stub.lists(json!({"data": [of("claude-a")], "has_more": true, "last_id": "claude-a"}))
        .lists_after(
            "claude-a",
            json!({"data": [of("claude-b")], "has_more": false, "last_id": "claude-b"}),
        );
    let listed = provider(&stub, STUB_KEY).models().await.unwrap().models;
    let ids: Vec<&str> = listed.iter().map(|model| model.id.as_str()).collect();
    assert_eq!(ids, ["claude-a", "claude-b"]);
    assert_eq!(listed[0].name.as_deref(), Some("CLAUDE-A"));

    let of = |id: &str, method: &str| json!({"name": format!("models/{id}"), "displayName": id, "inputTokenLimit": 9, "supportedGenerationMethods": [method]});
    let stub = ModelStub::start_as(Vendor::Gemini).await;
    stub.lists(json!({"models": [of("gemini-a", "generateContent"), of("embed", "embedContent")], "nextPageToken": "p2"}))
        .lists_after("p2", json!({"models": [of("gemini-b", "generateContent")], "nextPageToken": ""}));
    let listed = provider(&stub, STUB_KEY).models().await.unwrap().models;
    let ids: Vec<&str> = listed.iter().map(|model| model.id.as_str()).collect();
    assert_eq!(ids, ["gemini-a", "gemini-b"]);
    assert_eq!(listed[0].context_window, Some(9));
}

/// A page that promises itself as the next one ends the list.
#[tokio::test]
async fn endless_pages_end() {
    let page = json!({"data": [{"id": "claude-a"}], "has_more": true, "last_id": "x"});
    let stub = ModelStub::start_as(Vendor::Messages).await;
    stub.lists(page);
    let listed = provider(&stub, STUB_KEY).models().await.unwrap().models;
    assert_eq!(listed.len(), 2);
}

#[tokio::test]
async fn wrong_keys_and_unknown_models_are_told_in_the_vendors_words() {
    for vendor in VENDORS {
        let stub = ModelStub::start_as(vendor).await;
        let wrong = provider(&stub, "sk-wrong");
        let error = collect(&wrong, request(vendor, vec![user("hi")]))
            .await
            .unwrap_err();
        let is_key = |error: &Error| {
            matches!(
                error,
                Error::Rejected {
                    refusal: Refusal::Key,
                    ..
                }
            )
        };
        assert!(is_key(&error), "{vendor:?} {error:?}");
        assert!(is_key(&wrong.models().await.unwrap_err()), "{vendor:?}");
        let mut unknown = request(vendor, vec![user("hi")]);
        unknown.model = "gpt-9".to_owned();
        let error = collect(&provider(&stub, STUB_KEY), unknown)
            .await
            .unwrap_err();
        assert!(
            matches!(&error, Error::Rejected { refusal: Refusal::Address, said, .. } if said.contains("gpt-9")),
            "{vendor:?} {error:?}"
        );
        assert_eq!(stub.take_refusals().len(), 2);
        stub.lists(json!({"data": 7, "models": 7}));
        let error = provider(&stub, STUB_KEY).models().await.unwrap_err();
        assert!(matches!(error, Error::BadAnswer { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn refusals_keep_the_vendors_words_and_never_the_key() {
    for vendor in VENDORS {
        let stub = ModelStub::start_as(vendor).await;
        stub.will_fail(500, &[], &format!("<p>broken for {STUB_KEY}</p>"));
        let error = tell(&stub).await.unwrap_err();
        assert!(error.to_string().contains("broken for [key]"), "{error}");
        assert!(!format!("{error:?}").contains(STUB_KEY), "{error:?}");
        stub.will_fail(429, &[("retry-after", "2")], "");
        let error = tell(&stub).await.unwrap_err();
        assert_eq!(error.retry_after().map(|wait| wait.as_secs()), Some(2));
        stub.will(vendor.overloaded());
        let error = tell(&stub).await.unwrap_err();
        assert_eq!(error.code(), Code::ProviderUnavailable, "{vendor:?}");
        stub.will(vendor.overflow());
        let error = tell(&stub).await.unwrap_err();
        assert_eq!(error.code(), Code::ContextOverflow, "{vendor:?}");
    }
}

#[tokio::test]
async fn anthropic_is_told_a_limit_always_and_all_the_rest_only_when_set() {
    for vendor in VENDORS {
        let stub = ModelStub::start_as(vendor).await;
        stub.will_say("a").then_say("b");
        let provider = provider(&stub, STUB_KEY);
        let mut request = request(vendor, vec![user("hi")]);
        collect(&provider, request.clone()).await.unwrap();
        request.temperature = Some(0.5);
        request.max_tokens = Some(77);
        collect(&provider, request).await.unwrap();
        let asked = stub.requests();
        let of = |at: usize, pointer: &str| asked[at].body.pointer(pointer).cloned();
        let sent: Vec<Option<Value>> = match vendor {
            Vendor::Chat | Vendor::Messages => {
                assert_eq!(of(0, "/max_tokens"), Some(json!(8_192)));
                vec![
                    of(0, "/temperature"),
                    of(1, "/max_tokens"),
                    of(1, "/temperature"),
                ]
            }
            Vendor::Responses => vec![
                of(0, "/max_output_tokens"),
                of(1, "/max_output_tokens"),
                of(1, "/temperature"),
            ],
            Vendor::Gemini => vec![
                of(0, "/generationConfig"),
                of(1, "/generationConfig/maxOutputTokens"),
                of(1, "/generationConfig/temperature"),
            ],
        };
        assert_eq!(
            sent,
            [None, Some(json!(77)), Some(json!(0.5))],
            "{vendor:?}"
        );
    }
}
