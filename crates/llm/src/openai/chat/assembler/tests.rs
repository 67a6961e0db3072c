//! Tables for this file.

use std::collections::VecDeque;

use serde_json::json;

use super::{Assembler, Context};
use crate::request::names::{Names, fit};
use crate::stream::line::{in_and_out, one_line};
use crate::stream::{Assemble as _, MAX_CALLS};
use crate::transport::endpoint::KeyOwner;
use crate::{Error, ModelEvent};
use sepal_core::domain::{Tool, ToolAnnotations};

fn assembler() -> Assembler {
    Assembler::new(Context {
        owner: KeyOwner {
            provider: "p".to_owned(),
            key: None,
        },
        names: Names::default(),
        family: Some("f".to_owned()),
    })
}

fn run(payloads: &[&str]) -> Result<Vec<ModelEvent>, Error> {
    let mut assembler = assembler();
    let mut out = VecDeque::new();
    for payload in payloads {
        if assembler.push(payload, &mut out)? {
            break;
        }
    }
    assembler.end(&mut out);
    Ok(out.into())
}

/// Compares the events in the form of [`one_line`].
fn check(payloads: &[&str], expected: &str) {
    let shown = one_line(&run(payloads).unwrap(), in_and_out);
    assert_eq!(shown, expected, "{payloads:?}");
}

/// Asserts S3.40.
#[test]
fn thoughts_among_the_parts_of_an_answer_are_thoughts() {
    check(
        &[
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"so"}]},{"type":"text","text":"H\u00e4"}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":[{"type":"reference","reference_ids":[1]},{"type":"text","text":"llo"}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"!","tool_calls":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"total_tokens":7,"completion_tokens":2}}"#,
            "[DONE]",
        ],
        "(hm) (so) Hä llo ! #5/2 .stop",
    );
}

/// Asserts S1.4.
#[test]
fn usage_of_every_chunk_is_told_from_the_first_on_and_whole_at_the_end() {
    let chunk = |output| {
        format!(
            r#"{{"choices":[{{"delta":{{"content":"a"}}}}],"usage":{{"prompt_tokens":9,"completion_tokens":{output}}}}}"#
        )
    };
    let (mut assembler, mut out) = (assembler(), VecDeque::new());
    for output in 1..4 {
        assembler.push(&chunk(output), &mut out).unwrap();
    }
    assert_eq!(one_line(&out, in_and_out), "#9/1 a a a");
    assembler.end(&mut out);
    assert_eq!(one_line(&out, in_and_out), "a a a #9/3 .other");
}

fn calls(json: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{json}]}}}}]}}"#)
}

#[test]
fn an_error_in_place_of_a_chunk_is_told_in_its_own_words() {
    for payload in [
        r#"{"error":{"message":"no balance"}}"#,
        r#"{"object":"error","message":"no balance"}"#,
        r#"{"code":50507,"message":"no balance","data":null}"#,
        r#"{"code":"Arrearage","message":"no balance","request_id":"r"}"#,
        r#"{"detail":"no balance"}"#,
        r#"{"success":false,"msg":"no balance"}"#,
        r#"{"type":"error","error":{"code":"Arrearage","message":"no balance"}}"#,
    ] {
        let error = assembler().push(payload, &mut VecDeque::new()).unwrap_err();
        assert!(
            error.to_string().contains("no balance"),
            "{payload}: {error}"
        );
    }
    // Azure's first chunk has no choices.
    check(&[r#"{"choices":[],"prompt_filter_results":[]}"#], ".other");
}

#[test]
fn thoughts_between_tags_are_no_text() {
    let said = |text: &str| format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}"#);
    check(
        &[
            &said("<th"),
            &said("ink>"),
            &said("hm"),
            &said("</think>"),
            &said("yes"),
            r#"{"choices":[{"finish_reason":"stop"}]}"#,
        ],
        "(hm) yes .stop",
    );
    // The opening tag is missing, and the text was passed on before the closing tag came.
    check(
        &[
            &said("hm"),
            &said("</think>"),
            &said("yes"),
            r#"{"choices":[{"finish_reason":"stop"}]}"#,
        ],
        "hm <( yes .stop",
    );
}

/// Asserts S2.27.
#[test]
fn text_thoughts_and_reasons_are_read_as_servers_spell_them() {
    check(
        &[
            r#"{"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"hä"},"logprobs":null}]}"#,
            r#"{"choices":[{"index":1,"delta":{"content":"other"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#,
            "[DONE]",
            "never read",
        ],
        "hä #5/2 .stop",
    );
    check(
        &[
            r#"{"choices":[{"delta":{"reasoning_content":"hm"}}]}"#,
            r#"{"choices":[{"delta":{"reasoning":"mh","content":null}}]}"#,
            r#"{"choices":[{"delta":{"content":"no"},"finish_reason":"length"}]}"#,
        ],
        "(hm) (mh) no .length",
    );
    for reason in ["stop", "tool_calls", "length"] {
        let refused = r#"{"choices":[{"delta":{"refusal":"no"}}]}"#;
        let ended = format!(r#"{{"choices":[{{"finish_reason":"{reason}"}}]}}"#);
        check(&[refused, &ended], "no .refusal");
    }
    check(&[r#"{"choices":null}"#, r#"{"x":1}"#], ".other");
    check(
        &[r#"{"choices":[{"finish_reason":"content_filter"}]}"#],
        ".content_filter",
    );
    check(
        &[r#"{"choices":[{"delta":null,"finish_reason":"tool_calls"}]}"#],
        ".stop",
    );
    check(
        &[r#"{"choices":[{"delta":{"content":"a"},"finish_reason":""}]}"#],
        "a .other",
    );
}

#[test]
fn usage_is_found_in_odd_places_and_the_last_counts() {
    check(
        &[
            r#"{"choices":[],"x_groq":{"id":"r","usage":{"prompt_tokens":1,"completion_tokens":2}}}"#,
        ],
        "#1/2 .other",
    );
    check(
        &[
            r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#,
            r#"{"choices":[{"finish_reason":"stop","usage":{"prompt_tokens":3,"completion_tokens":4}}]}"#,
            r#"{"choices":[],"usage":{"odd":true}}"#,
        ],
        "#3/4 .stop",
    );
}

/// Asserts S3.32.
#[test]
fn a_whole_answer_is_read_like_a_stream() {
    check(
        &[
            r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"hi","tool_calls":[
            {"id":"a","type":"function","function":{"name":"t","arguments":"{}"}}]},
            "finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#,
        ],
        "hi 0:a/t 0+{} #1/2 .tool_calls",
    );
}

#[test]
fn what_the_server_wants_back_is_kept_with_calls_only() {
    let thought = r#"{"choices":[{"delta":{"reasoning_content":"hm"}}]}"#;
    let call = calls(
        r#"{"index":0,"id":"a","extra_content":{"s":"x"},"function":{"name":"t","arguments":"{}"}}"#,
    );
    check(&[thought], "(hm) .other");
    check(
        &[thought, &call],
        r#"(hm) 0:a/t 0+{} {"extra_content":[{"s":"x"}],"reasoning_content":"hm"} .tool_calls"#,
    );
}

#[test]
fn thoughts_are_kept_under_the_name_that_they_came_in() {
    let call = calls(r#"{"index":0,"id":"a","function":{"name":"t","arguments":"{}"}}"#);
    let thought = r#"{"choices":[{"delta":{"reasoning":"hm"}}]}"#;
    check(
        &[thought, &call],
        r#"(hm) 0:a/t 0+{} {"reasoning":"hm"} .tool_calls"#,
    );
    let detail = |text: &str, index: u8| {
        let detail = json!({"type": "reasoning.text", "text": text, "index": index});
        json!({"choices": [{"delta": {"reasoning": text, "reasoning_details": [detail]}}]})
            .to_string()
    };
    let signed = json!([{"type": "reasoning.text", "signature": "s", "index": 0}]);
    let signed = json!({"choices": [{"delta": {"content": "", "reasoning_details": signed}}]});
    check(
        &[&detail("h", 0), &detail("m", 0), &signed.to_string(), &call],
        r#"(h) (m) 0:a/t 0+{} {"reasoning_details":[{"index":0,"signature":"s","text":"hm","type":"reasoning.text"}]} .tool_calls"#,
    );
    let silent = json!([{"type": "reasoning.summary", "summary": "hm", "index": 0}]);
    let silent = json!({"choices": [{"delta": {"reasoning_details": silent}}]}).to_string();
    check(&[&silent], "(hm) .other");
    let odd = r#"{"choices":[{"delta":{"content":"a","reasoning_details":7}}]}"#;
    check(&[odd], "a .other");
}

fn choice(delta: &str, reason: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{delta},"finish_reason":{reason}}}]}}"#)
}

/// Known deviations of local servers, each as its own stream shows it.
#[test]
fn the_ways_of_local_servers_are_understood() {
    // Ollama: complete calls that all have index 0, and an end that says `stop`.
    let ollama = |id: &str| {
        let call = format!(
            r#"{{"id":"{id}","index":0,"type":"function","function":{{"name":"t","arguments":"{{}}"}}}}"#
        );
        choice(
            &format!(r#"{{"role":"assistant","content":"","tool_calls":[{call}]}}"#),
            "null",
        )
    };
    check(
        &[
            &ollama("a"),
            &ollama("b"),
            &choice(r#"{"content":""}"#, r#""stop""#),
        ],
        "0:a/t 0+{} 1:b/t 1+{} .tool_calls",
    );
    // vLLM: an empty list of calls, names that become null, usage in a separate chunk.
    check(
        &[
            &choice(
                r#"{"role":"assistant","content":null,"reasoning":"hm","tool_calls":[]}"#,
                "null",
            ),
            &calls(
                r#"{"id":"chatcmpl-tool-1","type":"function","index":0,"function":{"name":"t"}}"#,
            ),
            &calls(r#"{"id":null,"index":0,"function":{"name":null,"arguments":"{}"}}"#),
            &choice("{}", r#""stop","stop_reason":null"#),
            r#"{"choices":[],"usage":{"prompt_tokens":3,"total_tokens":5,"completion_tokens":2}}"#,
        ],
        r#"(hm) 0:chatcmpl-tool-1/t 0+{} {"reasoning":"hm"} #3/2 .tool_calls"#,
    );
}

/// Known deviations of local servers that run one model.
#[test]
fn the_ways_of_single_servers_are_understood() {
    // LM Studio: numeric ids, names that become empty, no usage.
    check(
        &[
            &calls(
                r#"{"index":0,"id":365174485,"type":"function","function":{"name":"t","arguments":""}}"#,
            ),
            &calls(r#"{"index":0,"type":"function","function":{"name":"","arguments":"{}"}}"#),
            &choice("{}", r#""tool_calls""#),
        ],
        "0:365174485/t 0+{} .tool_calls",
    );
    // llama.cpp: no ids, arguments as an object, usage and timings with the last chunk.
    check(
        &[
            &choice(r#"{"role":"assistant","content":null}"#, "null"),
            &calls(
                r#"{"index":0,"id":"","type":"function","function":{"name":"t","arguments":{"x":1}}}"#,
            ),
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool"}],"usage":{"prompt_tokens":3,"completion_tokens":2},"timings":{"prompt_n":1}}"#,
        ],
        r#"0:/t 0+{"x":1} #3/2 .tool_calls"#,
    );
}

#[test]
fn a_call_without_any_name_comes_to_its_end() {
    check(
        &[&calls(
            r#"{"index":0,"id":"a","function":{"name":"","arguments":"{}"}}"#,
        )],
        "0:a/ 0+{} .tool_calls",
    );
}

#[test]
fn an_alias_leads_back_to_the_tool() {
    let tool = Tool {
        name: "files.read".to_owned(),
        title: None,
        description: String::new(),
        input_schema: json!(null),
        output_schema: None,
        annotations: ToolAnnotations::default(),
        needs_tasks: false,
        view: None,
        runs_as_task: false,
    };
    let mut assembler = Assembler::new(Context {
        names: Names::of(&[tool]),
        ..assembler().context
    });
    let mut out = VecDeque::new();
    let call = json!({"id": "a", "function": {"name": fit("files.read"), "arguments": "{}"}});
    assembler.push(&calls(&call.to_string()), &mut out).unwrap();
    assert!(matches!(&out[0], ModelEvent::CallStarted { name, .. } if name == "files.read"));
}

#[test]
fn errors_in_the_stream_and_broken_chunks_are_told_apart() {
    fn check(payload: &str, is_right: fn(&Error) -> bool) {
        let error = run(&[r#"{"choices":[{"delta":{"content":"a"}}]}"#, payload]).unwrap_err();
        assert!(is_right(&error), "{payload}: {error:?}");
    }
    check(r#"{"error":{"message":"x","type":"server_error"}}"#, |e| {
        matches!(e, Error::Unavailable { .. })
    });
    check(r#"{"error":"x"}"#, |e| {
        matches!(e, Error::Unavailable { .. })
    });
    check(r#"{"object":"error","message":"x","code":429}"#, |e| {
        matches!(e, Error::RateLimited { .. })
    });
    check(r#"{"choices":[{"finish_reason":"error"}]}"#, |e| {
        matches!(e, Error::Unavailable { .. })
    });
    check(r#"{"choices":[{"delta":{"con"#, |e| {
        matches!(e, Error::Cut { .. })
    });
    check("nonsense", |e| matches!(e, Error::BadAnswer { .. }));
    check(r#"{"choices":7}"#, |e| matches!(e, Error::BadAnswer { .. }));
    let deep = format!(r#"{{"x":{}"#, "[".repeat(100_000));
    assert!(run(&[&deep]).is_err());
    let many: Vec<String> = (0..=MAX_CALLS)
        .map(|i| calls(&format!(r#"{{"index":{i}}}"#)))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(matches!(run(&many), Err(Error::BadAnswer { .. })));
}
