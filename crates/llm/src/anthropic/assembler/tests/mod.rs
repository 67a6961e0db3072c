//! Tables for this file.

mod ends;

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

/// Formats usage as `in(cached,written)/out`.
fn used(usage: &TokenUsage) -> String {
    format!(
        "{}({},{})/{}",
        usage.input_tokens, usage.cached_tokens, usage.cache_write_tokens, usage.output_tokens
    )
}

/// Compares the events in the form of [`one_line`].
fn check(payloads: &[&str], expected: &str) {
    let shown = one_line(&run(payloads).unwrap(), used);
    assert_eq!(shown, expected, "{payloads:?}");
}

const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":100,"cache_read_input_tokens":7,"output_tokens":1,"service_tier":"standard"}}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

fn begin(index: u64, block: &str) -> String {
    format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#)
}

fn delta(index: u64, delta: &str) -> String {
    format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#)
}

fn stop(index: u64) -> String {
    format!(r#"{{"type":"content_block_stop","index":{index}}}"#)
}

fn ended(reason: &str) -> String {
    format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}","stop_sequence":null}},"usage":{{"output_tokens":15}}}}"#
    )
}

fn check_all(payloads: &[String], expected: &str) {
    let payloads: Vec<&str> = payloads.iter().map(String::as_str).collect();
    check(&payloads, expected);
}

/// Asserts S1.4.
#[test]
fn what_a_request_took_is_told_at_its_beginning() {
    let mut out = VecDeque::new();
    let mut assembler = assembler(Names::default());
    assert!(!assembler.push(START, &mut out).unwrap());
    assert_eq!(one_line(&out, used), "#132(7,100)/1");
}

#[test]
fn text_and_usage_are_read_and_pings_are_skipped() {
    check_all(
        &[
            START.to_owned(),
            begin(0, r#"{"type":"text","text":""}"#),
            r#"{"type":"ping"}"#.to_owned(),
            delta(0, r#"{"type":"text_delta","text":"Hä"}"#),
            delta(0, r#"{"type":"citations_delta","citation":{"x":1}}"#),
            delta(0, r#"{"type":"text_delta","text":"llo"}"#),
            stop(0),
            ended("end_turn"),
            STOP.to_owned(),
            "never read".to_owned(),
        ],
        "Hä llo #132(7,100)/15 .stop",
    );
}

#[test]
fn unknown_events_blocks_and_fields_are_skipped() {
    check_all(
        &[
            r#"{"type":"brand_new","delta":7,"message":[],"index":"x","usage":{}}"#.to_owned(),
            r#"{"type":7}"#.to_owned(),
            r#"{"x":1}"#.to_owned(),
            begin(
                0,
                r#"{"type":"server_tool_use","id":"s","name":"web_search","input":{}}"#,
            ),
            delta(
                0,
                r#"{"type":"input_json_delta","partial_json":"{\"q\":1}"}"#,
            ),
            stop(0),
            begin(1, r#"{"type":"text","text":"a","later":true}"#),
            ended("end_turn"),
            STOP.to_owned(),
        ],
        "a #0(0,0)/15 .stop",
    );
}

#[test]
fn a_search_for_tools_is_told_and_kept_with_what_it_found() {
    let result = r#"{"type":"tool_search_tool_result","tool_use_id":"s1","content":{"type":"tool_search_tool_search_result","tool_references":[{"type":"tool_reference","tool_name":"paint"},{"type":"tool_reference","tool_name":"dig"}]}}"#;
    check_all(
        &[
            begin(
                0,
                r#"{"type":"server_tool_use","id":"s1","name":"tool_search_tool_bm25","input":{}}"#,
            ),
            delta(
                0,
                r#"{"type":"input_json_delta","partial_json":"{\"query\":\"fences\"}"}"#,
            ),
            stop(0),
            begin(1, result),
            stop(1),
            begin(
                2,
                r#"{"type":"tool_use","id":"c","name":"paint","input":{}}"#,
            ),
            stop(2),
            ended("tool_use"),
            STOP.to_owned(),
        ],
        concat!(
            "(\n\nSearched the tools for \"fences\" and found paint, dig.\n\n) 0:c/paint ",
            r#"[{"block":{"id":"s1","input":{"query":"fences"},"name":"tool_search_tool_bm25","type":"server_tool_use"},"place":{"calls":0,"text":0}},"#,
            r#"{"block":{"content":{"tool_references":[{"tool_name":"paint","type":"tool_reference"},{"tool_name":"dig","type":"tool_reference"}],"type":"tool_search_tool_search_result"},"#,
            r#""tool_use_id":"s1","type":"tool_search_tool_result"},"place":{"calls":0,"text":0}}] "#,
            "#0(0,0)/15 .tool_calls",
        ),
    );
}

#[test]
fn calls_side_by_side_keep_their_arguments_apart() {
    let call = |id: &str| format!(r#"{{"type":"tool_use","id":"{id}","name":"t","input":{{}}}}"#);
    let json = |text: &str| {
        format!(
            r#"{{"type":"input_json_delta","partial_json":{}}}"#,
            json!(text)
        )
    };
    check_all(
        &[
            begin(0, r#"{"type":"text","text":"I look"}"#),
            stop(0),
            begin(1, &call("toolu_a")),
            delta(1, &json("")),
            delta(1, &json("{\"x\": ")),
            begin(2, &call("toolu_b")),
            delta(2, &json("{\"y\": 2")),
            delta(1, &json("1}")),
            delta(2, &json("}")),
            stop(1),
            stop(2),
            begin(3, &call("toolu_c")),
            stop(3),
            ended("tool_use"),
            STOP.to_owned(),
        ],
        r#"I look 0:toolu_a/t 0+{"x":  1:toolu_b/t 1+{"y": 2 0+1} 1+} 2:toolu_c/t #0(0,0)/15 .tool_calls"#,
    );
}

#[test]
fn arguments_that_come_with_the_beginning_count_if_no_others_follow() {
    let call = r#"{"type":"tool_use","id":"a","name":"t","input":{"x":1}}"#;
    check_all(
        &[begin(0, call), stop(0), ended("tool_use")],
        r#"0:a/t 0+{"x":1} #0(0,0)/15 .tool_calls"#,
    );
    check_all(
        &[
            begin(0, call),
            delta(0, r#"{"type":"input_json_delta","partial_json":"{}"}"#),
            ended("end_turn"),
        ],
        "0:a/t 0+{} #0(0,0)/15 .tool_calls",
    );
}

#[test]
fn thoughts_are_kept_where_they_stood_if_they_are_signed() {
    check_all(
        &[
            begin(0, r#"{"type":"thinking","thinking":"","signature":""}"#),
            delta(0, r#"{"type":"thinking_delta","thinking":"hm"}"#),
            delta(0, r#"{"type":"thinking_delta","thinking":"m"}"#),
            delta(0, r#"{"type":"signature_delta","signature":"EqQ="}"#),
            stop(0),
            begin(1, r#"{"type":"redacted_thinking","data":"xyz"}"#),
            stop(1),
            begin(2, r#"{"type":"text","text":"ok"}"#),
            begin(
                3,
                r#"{"type":"thinking","thinking":"more","signature":"s2"}"#,
            ),
            begin(
                4,
                r#"{"type":"thinking","thinking":"unsigned","signature":""}"#,
            ),
            ended("end_turn"),
            STOP.to_owned(),
        ],
        concat!(
            "(hm) (m) ok (more) (unsigned) ",
            r#"[{"block":{"signature":"EqQ=","thinking":"hmm","type":"thinking"},"place":{"calls":0,"text":0}},"#,
            r#"{"block":{"data":"xyz","type":"redacted_thinking"},"place":{"calls":0,"text":0}},"#,
            r#"{"block":{"signature":"s2","thinking":"more","type":"thinking"},"place":{"calls":0,"text":2}}] "#,
            "#0(0,0)/15 .stop",
        ),
    );
}

/// Asserts S0.43, S3.2, S3.32.
#[test]
fn reasons_are_read_as_the_vendor_spells_them() {
    for (reason, expected) in [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "context_window"),
        ("refusal", "refusal"),
        ("pause_turn", "pause"),
        ("brand_new", "other"),
    ] {
        check(&[&ended(reason)], &format!("#0(0,0)/15 .{expected}"));
    }
    check(&[STOP], ".other");
}

#[test]
fn thoughts_that_are_not_shown_are_kept_by_their_signature() {
    let open = r#"{"type":"thinking","thinking":"","signature":""}"#;
    let call =
        |id: &str| format!(r#"{{"type":"tool_use","id":"{id}","name":"read","input":{{}}}}"#);
    let signed = |name: &str| format!(r#"{{"type":"signature_delta","signature":"{name}"}}"#);
    let kept = |name: &str, calls: usize| {
        format!(
            r#"{{"block":{{"signature":"{name}","thinking":"","type":"thinking"}},"place":{{"calls":{calls},"text":0}}}}"#
        )
    };
    check_all(
        &[
            begin(0, open),
            delta(0, &signed("s1")),
            stop(0),
            begin(1, &call("a")),
            stop(1),
            begin(2, open),
            delta(2, &signed("s2")),
            stop(2),
            begin(3, &call("b")),
            begin(4, &call("c")),
            ended("tool_use"),
            STOP.to_owned(),
        ],
        &format!(
            "0:a/read 1:b/read 2:c/read [{},{}] #0(0,0)/15 .tool_calls",
            kept("s1", 0),
            kept("s2", 1)
        ),
    );
}

#[test]
fn usage_grows_and_is_never_lost() {
    check(
        &[
            r#"{"type":"message_start","message":{"usage":{"input_tokens":0,"output_tokens":0}}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":9,"cache_read_input_tokens":4,"output_tokens":3}}"#,
            r#"{"type":"message_delta","delta":{},"usage":{"output_tokens":0,"input_tokens":"odd"}}"#,
        ],
        "#13(4,0)/3 .stop",
    );
    check(
        &[r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":null}"#],
        ".stop",
    );
}

#[test]
fn a_whole_answer_is_read_like_a_stream() {
    check(
        &[r#"{"id":"m","type":"message","role":"assistant","content":[
            {"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"hi"},
            {"type":"tool_use","id":"a","name":"t","input":{"x":1}}],
            "stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}"#],
        concat!(
            r#"(hm) hi 0:a/t 0+{"x":1} [{"block":{"signature":"s","thinking":"hm","type":"thinking"},"#,
            r#""place":{"calls":0,"text":0}}] #1(0,0)/2 .tool_calls"#,
        ),
    );
}

#[test]
fn halves_of_a_surrogate_pair_do_not_end_an_answer() {
    check_all(
        &[
            delta(0, r#"{"type":"text_delta","text":"a\ud83d"}"#),
            delta(0, r#"{"type":"text_delta","text":"\ude00"}"#),
            delta(0, r#"{"type":"text_delta","text":"\ud83d\ude00"}"#),
            ended("end_turn"),
        ],
        "a\u{fffd} \u{fffd} 😀 #0(0,0)/15 .stop",
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
    let mut assembler = assembler(Names::of(&[tool]));
    let mut out = VecDeque::new();
    let block = json!({"type": "tool_use", "id": "a", "name": fit("files.read"), "input": {}});
    assembler
        .push(&begin(0, &block.to_string()), &mut out)
        .unwrap();
    assert!(matches!(&out[0], ModelEvent::CallStarted { name, .. } if name == "files.read"));
}

#[test]
fn errors_in_the_stream_and_broken_events_are_told_apart() {
    fn check(payload: &str, is_right: fn(&Error) -> bool) {
        let error = run(&[START, payload]).unwrap_err();
        assert!(is_right(&error), "{payload}: {error:?}");
    }
    check(
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        |e| matches!(e, Error::Unavailable { .. }),
    );
    check(
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"x"}}"#,
        |e| matches!(e, Error::RateLimited { .. }),
    );
    check(r#"{"type":"error"}"#, |e| {
        matches!(e, Error::Unavailable { .. })
    });
    check(r#"{"error":{"message":"x"}}"#, |e| {
        matches!(e, Error::Unavailable { .. })
    });
    check(r#"{"type":"content_block_del"#, |e| {
        matches!(e, Error::Cut { .. })
    });
    check("nonsense", |e| matches!(e, Error::BadAnswer { .. }));
    check(r#"{"type":"content_block_delta","delta":7}"#, |e| {
        matches!(e, Error::BadAnswer { .. })
    });
    let deep = format!(r#"{{"x":{}"#, "[".repeat(100_000));
    assert!(run(&[&deep]).is_err());
    let call = r#"{"type":"tool_use","id":"a","name":"t","input":{}}"#;
    let many: Vec<String> = (0..=MAX_CALLS as u64)
        .map(|index| begin(index, call))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(matches!(run(&many), Err(Error::BadAnswer { .. })));
}
