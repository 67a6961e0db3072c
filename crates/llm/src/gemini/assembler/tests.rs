//! Tables for this file.

use std::collections::VecDeque;

use serde_json::json;

use super::Assembler;
use crate::request::names::{Names, fit};
use crate::stream::line::one_line;
use crate::stream::{Assemble as _, MAX_CALLS};
use crate::transport::endpoint::KeyOwner;
use crate::{Error, ModelEvent};
use sepal_core::domain::{TokenUsage, Tool, ToolAnnotations};

fn assembler(names: Names) -> Assembler {
    let owner = KeyOwner {
        provider: "p".to_owned(),
        key: None,
    };
    Assembler::new(owner, names, "f".to_owned())
}

fn run(payloads: &[&str]) -> Result<Vec<ModelEvent>, Error> {
    let mut assembler = assembler(Names::default());
    let mut out = VecDeque::new();
    for payload in payloads {
        if assembler.push(payload, &mut out)? {
            break;
        }
    }
    assembler.end(&mut out);
    Ok(out.into())
}

/// Formats usage as `in(cached)/out(thoughts)`.
fn used(usage: &TokenUsage) -> String {
    format!(
        "{}({})/{}({})",
        usage.input_tokens, usage.cached_tokens, usage.output_tokens, usage.reasoning_tokens
    )
}

/// Compares the events in the form of [`one_line`].
fn check(payloads: &[&str], expected: &str) {
    let shown = one_line(&run(payloads).unwrap(), used);
    assert_eq!(shown, expected, "{payloads:?}");
}

fn parts(parts: &str) -> String {
    format!(r#"{{"candidates":[{{"content":{{"parts":[{parts}],"role":"model"}},"index":0}}]}}"#)
}

fn ended(reason: &str) -> String {
    format!(r#"{{"candidates":[{{"finishReason":"{reason}","index":0}}]}}"#)
}

#[test]
fn text_thoughts_and_usage_are_read() {
    check(
        &[
            &parts(r#"{"text":"hm","thought":true}"#),
            &parts(r#"{"text":"Hä"}"#),
            r#"{"candidates":[{"content":{"parts":[{"text":"other"}]},"index":1}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"llo"}],"role":"model"},"finishReason":"STOP","index":0,"safetyRatings":[{"x":1}]}],
               "usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":3,"totalTokenCount":33,"cachedContentTokenCount":4,
               "thoughtsTokenCount":20,"promptTokensDetails":[{"modality":"TEXT","tokenCount":10}]},"modelVersion":"m","responseId":"r"}"#,
        ],
        "(hm) Hä llo #10(4)/23(20) .stop",
    );
    check(
        &[
            r#"{"usageMetadata":{"promptTokenCount":10,"toolUsePromptTokenCount":5,"cachedContentTokenCount":99}}"#,
            r#"{"usageMetadata":{"totalTokenCount":"odd"}}"#,
            &ended("STOP"),
        ],
        "#15(15)/0(0) .stop",
    );
}

#[test]
fn calls_come_whole_and_mostly_without_ids() {
    check(
        &[
            &parts(
                r#"{"text":"I look"},{"functionCall":{"name":"t","args":{"x":1}}},{"functionCall":{"name":"u"}}"#,
            ),
            &parts(r#"{"functionCall":{"id":"fc1","name":"t","args":null}}"#),
            &ended("STOP"),
        ],
        concat!(
            r#"I look 0:/t 0+{"x":1} 1:/u 1+{} 2:fc1/t 2+{} "#,
            r#"[{"call":2,"id":"fc1","place":{"calls":0,"text":0}}] .tool_calls"#,
        ),
    );
}

/// Streamed arguments in the form that Vertex sends.
#[test]
fn arguments_in_pieces_are_put_together() {
    fn check_args(pieces: &[&str], expected: &str) {
        let begin = parts(r#"{"functionCall":{"name":"t","willContinue":true}}"#);
        let piece = |piece: &&str| {
            parts(&format!(
                r#"{{"functionCall":{{"partialArgs":[{piece}],"willContinue":true}}}}"#
            ))
        };
        let mut all = vec![begin];
        all.extend(pieces.iter().map(piece));
        all.push(parts(r#"{"functionCall":{}}"#));
        all.push(ended("STOP"));
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        check(&all, &format!("0:/t 0+{expected} .tool_calls"));
    }
    check_args(&[], "{}");
    check_args(
        &[
            r#"{"jsonPath":"$.location","stringValue":"Bos","willContinue":true}"#,
            r#"{"jsonPath":"$.location","stringValue":"ton, \"MA\"","willContinue":true}"#,
            r#"{"jsonPath":"$.location","stringValue":""}"#,
            r#"{"jsonPath":"$.brightness","numberValue":50}"#,
        ],
        r#"{"brightness":50,"location":"Boston, \"MA\""}"#,
    );
    check_args(
        &[
            r#"{"jsonPath":"$.a","numberValue":-0.5},{"jsonPath":"$.b","numberValue":3.0}"#,
            r#"{"jsonPath":"$.c","boolValue":false},{"jsonPath":"$.d","nullValue":null}"#,
            r#"{"jsonPath":"$.e","nullValue":"NULL_VALUE"},{"jsonPath":"$.f","stringValue":""}"#,
        ],
        r#"{"a":-0.5,"b":3,"c":false,"d":null,"e":null,"f":""}"#,
    );
    check_args(
        &[
            r#"{"jsonPath":"$.list[0].x","stringValue":"a"}"#,
            r#"{"jsonPath":"$.list[1].x","stringValue":"b","willContinue":true}"#,
            r#"{"jsonPath":"$.list[1].x","stringValue":"c"}"#,
            r#"{"jsonPath":"$['a.b']['it\\'s']","boolValue":true}"#,
            r#"{"jsonPath":"$[\"q\"]","numberValue":1}"#,
        ],
        r#"{"a.b":{"it's":true},"list":[{"x":"a"},{"x":"bc"}],"q":1}"#,
    );
}

#[test]
fn calls_in_pieces_stand_beside_whole_ones_and_keep_their_signature() {
    check(
        &[
            &parts(r#"{"functionCall":{"name":"t","willContinue":true},"thoughtSignature":"s"}"#),
            &parts(
                r#"{"functionCall":{"partialArgs":[{"jsonPath":"$.x","numberValue":1}],"willContinue":true}}"#,
            ),
            &parts(r#"{"functionCall":{}}"#),
            &parts(
                r#"{"functionCall":{"name":"u","id":"i","partialArgs":[{"jsonPath":"$.y","boolValue":true}]}}"#,
            ),
            &parts(r#"{"functionCall":{"name":"w","args":{"z":2}}},{"functionCall":{}}"#),
            &ended("STOP"),
        ],
        concat!(
            r#"0:/t 0+{"x":1} 1:i/u 1+{"y":true} 2:/w 2+{"z":2} "#,
            r#"[{"call":0,"place":{"calls":0,"text":0},"thoughtSignature":"s"},"#,
            r#"{"call":1,"id":"i","place":{"calls":0,"text":0}}] .tool_calls"#,
        ),
    );
}

#[test]
fn a_call_in_pieces_that_the_end_cut_off_is_not_whole() {
    let begin = parts(r#"{"functionCall":{"name":"t","willContinue":true}}"#);
    check(&[&begin, &ended("MAX_TOKENS")], "0:/t 0+{ .length");
    let piece = parts(
        r#"{"functionCall":{"partialArgs":[{"jsonPath":"$.x","stringValue":"ab","willContinue":true}],"willContinue":true}}"#,
    );
    check(
        &[&begin, &piece, &ended("MAX_TOKENS")],
        r#"0:/t 0+{"x":"ab" .length"#,
    );
    check(
        &[&begin, &piece, &ended("STOP")],
        r#"0:/t 0+{"x":"ab" .tool_calls"#,
    );
}

#[test]
fn a_piece_that_fits_nowhere_ends_the_answer() {
    for path in [
        "$.x[7]", "$.x.y", "$", "", "$.", "$[", "$[-1]", "$..x", "$.*",
    ] {
        let first = r#"{"functionCall":{"name":"t","partialArgs":[{"jsonPath":"$.x","numberValue":1}],"willContinue":true}}"#;
        let piece =
            json!({"functionCall": {"partialArgs": [{"jsonPath": path, "boolValue": true}]}});
        let ended = run(&[&parts(first), &parts(&piece.to_string())]);
        assert!(
            matches!(ended, Err(Error::BadAnswer { .. })),
            "{path}: {ended:?}"
        );
    }
    let deep = "a.".repeat(1_000) + "a";
    let piece = json!({"functionCall": {"name": "t", "partialArgs": [{"jsonPath": deep, "boolValue": true}]}});
    assert!(matches!(
        run(&[&parts(&piece.to_string())]),
        Err(Error::BadAnswer { .. })
    ));
}

#[test]
fn signatures_are_kept_with_their_parts() {
    check(
        &[
            &parts(r#"{"text":"why","thought":true,"thoughtSignature":"s0"}"#),
            &parts(r#"{"text":"ab"}"#),
            &parts(r#"{"functionCall":{"name":"t","args":{}},"thoughtSignature":"s1"}"#),
            &parts(r#"{"text":"cd","thoughtSignature":"s2"}"#),
            &parts(r#"{"text":"","thoughtSignature":"s3"}"#),
            &ended("STOP"),
        ],
        concat!(
            "(why) ab 0:/t 0+{} cd ",
            r#"[{"place":{"calls":0,"text":0},"thought":"why","thoughtSignature":"s0"},"#,
            r#"{"call":0,"place":{"calls":0,"text":0},"thoughtSignature":"s1"},"#,
            r#"{"place":{"calls":1,"length":2,"text":2},"thoughtSignature":"s2"},"#,
            r#"{"place":{"calls":1,"text":4},"thoughtSignature":"s3"}] .tool_calls"#,
        ),
    );
}

/// Asserts S3.2, S3.32, S3.40.
#[test]
fn reasons_are_read_as_the_vendor_spells_them() {
    for (reason, expected) in [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("PROHIBITED_CONTENT", "content_filter"),
        ("BLOCKLIST", "content_filter"),
        ("SPII", "content_filter"),
        ("OTHER", "other"),
        ("BRAND_NEW", "other"),
        ("FINISH_REASON_UNSPECIFIED", "other"),
    ] {
        let detail = match expected {
            "content_filter" => format!("!{reason} "),
            _ => String::new(),
        };
        check(&[&ended(reason)], &format!("{detail}.{expected}"));
    }
    let blocked = r#"{"promptFeedback":{"blockReason":"SAFETY","safetyRatings":[]},"usageMetadata":{"promptTokenCount":4}}"#;
    check(&[blocked], "#4(0)/0(0) !SAFETY .content_filter");
    check(&[r#"{"promptFeedback":{"safetyRatings":[]}}"#], ".other");
}

#[test]
fn unknown_parts_and_fields_are_skipped() {
    check(
        &[
            r#"{"brandNew":[1]}"#,
            r#"{"candidates":null,"promptFeedback":null,"error":null}"#,
            r#"{"candidates":[{"content":{"role":"model"}},{"content":null,"groundingMetadata":{}}]}"#,
            &parts(
                r#"{"executableCode":{"code":"1"}},{"inlineData":{"data":"x"}},{"text":"a","thought":null},{"text":7}"#,
            ),
            &ended("STOP"),
        ],
        "a 7 .stop",
    );
}

#[test]
fn a_list_of_all_chunks_is_read_like_a_stream() {
    let list = format!("[{},\n{}]", parts(r#"{"text":"a"}"#), ended("STOP"));
    check(&[&list], "a .stop");
}

#[test]
fn halves_of_a_surrogate_pair_do_not_end_an_answer() {
    check(
        &[
            &parts(r#"{"text":"a\ud83d"}"#),
            &parts(r#"{"text":"\ude00"}"#),
            &parts(r#"{"text":"\ud83d\ude00"}"#),
            &ended("STOP"),
        ],
        "a\u{fffd} \u{fffd} 😀 .stop",
    );
}

#[test]
fn an_alias_leads_back_to_the_tool() {
    let tool = Tool {
        name: "2fa.code".to_owned(),
        title: None,
        description: String::new(),
        input_schema: json!(null),
        output_schema: None,
        annotations: ToolAnnotations::default(),
        needs_tasks: false,
        view: None,
        runs_as_task: false,
    };
    let mut assembler = assembler(Names::of(&[tool]));
    let mut out = VecDeque::new();
    let call = json!({"functionCall": {"name": fit("2fa.code"), "args": {}}});
    assembler.push(&parts(&call.to_string()), &mut out).unwrap();
    assert!(matches!(&out[0], ModelEvent::CallStarted { name, .. } if name == "2fa.code"));
}

#[test]
fn errors_in_the_stream_and_broken_chunks_are_told_apart() {
    fn check(payload: &str, is_right: fn(&Error) -> bool) {
        let error = run(&[&parts(r#"{"text":"a"}"#), payload]).unwrap_err();
        assert!(is_right(&error), "{payload}: {error:?}");
    }
    let overloaded =
        r#"{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}"#;
    check(overloaded, |e| matches!(e, Error::Unavailable { .. }));
    check(&format!("[{overloaded}]"), |e| {
        matches!(e, Error::Unavailable { .. })
    });
    check(
        r#"{"error":{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED"}}"#,
        |e| matches!(e, Error::RateLimited { .. }),
    );
    check(r#"{"error":"plain"}"#, |e| {
        matches!(e, Error::Unavailable { .. })
    });
    check(&ended("MALFORMED_FUNCTION_CALL"), |e| {
        matches!(e, Error::Unavailable { .. })
    });
    check(r#"{"candidates":[{"con"#, |e| {
        matches!(e, Error::Cut { .. })
    });
    check(r#"[{"candidates":[]},"#, |e| matches!(e, Error::Cut { .. }));
    check("nonsense", |e| matches!(e, Error::BadAnswer { .. }));
    check(r#"{"candidates":7}"#, |e| {
        matches!(e, Error::BadAnswer { .. })
    });
    let deep = format!(r#"{{"x":{}"#, "[".repeat(100_000));
    assert!(run(&[&deep]).is_err());
    let calls = vec![r#"{"functionCall":{"name":"t"}}"#; MAX_CALLS + 1].join(",");
    assert!(matches!(
        run(&[&parts(&calls)]),
        Err(Error::BadAnswer { .. })
    ));
}
