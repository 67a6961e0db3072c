//! Tables for this folder.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::Assembler;
use crate::request::names::Names;
use crate::stream::line::{in_and_out, one_line};
use crate::stream::{Assemble as _, MAX_CALLS};
use crate::transport::endpoint::KeyOwner;
use crate::transport::verdict::Verdict;
use crate::{Error, ModelEvent};

fn run(payloads: &[Value]) -> Result<Vec<ModelEvent>, Error> {
    let owner = KeyOwner {
        provider: "p".to_owned(),
        key: None,
    };
    let mut assembler = Assembler::new(owner, Names::default(), "f".to_owned());
    let mut out = VecDeque::new();
    for payload in payloads {
        if assembler.push(&payload.to_string(), &mut out)? {
            assembler.end(&mut out);
            return Ok(out.into());
        }
    }
    Err(assembler.short())
}

/// Compares the events in the form of [`one_line`].
fn check(payloads: &[Value], expected: &str) {
    let shown = one_line(&run(payloads).unwrap(), in_and_out);
    assert_eq!(shown, expected, "{payloads:?}");
}

#[test]
fn a_search_for_tools_is_told_and_kept_with_what_it_loaded() {
    let call = json!({"type": "tool_search_call", "id": "tsc", "call_id": null, "execution": "server",
        "status": "completed", "arguments": {"paths": ["mcp__garden"]}, "created_by": "x"});
    let mut begun = call.clone();
    begun["status"] = json!("in_progress");
    begun["arguments"] = json!({});
    let output = json!({"type": "tool_search_output", "id": "tso", "call_id": null, "execution": "server",
        "status": "completed", "tools": [{"type": "namespace", "name": "mcp__garden", "tools": [{"name": "paint"}]}]});
    let asked = json!({"type": "function_call", "id": "fc", "call_id": "c", "name": "paint",
        "namespace": "mcp__garden", "arguments": "{}"});
    check(
        &[
            added(0, &begun),
            done(0, &call),
            added(1, &output),
            done(1, &output),
            added(2, &asked),
            done(2, &asked),
            json!({"type": "response.completed", "response": {"status": "completed"}}),
        ],
        concat!(
            "(Searched the tools for \"mcp__garden\" and found paint.) 0:c/paint 0+{} ",
            r#"[{"block":{"arguments":{"paths":["mcp__garden"]},"execution":"server","id":"tsc","status":"completed","type":"tool_search_call"},"place":{"calls":0,"text":0}},"#,
            r#"{"block":{"execution":"server","id":"tso","status":"completed","tools":[{"name":"mcp__garden","tools":[{"name":"paint"}],"type":"namespace"}],"type":"tool_search_output"},"place":{"calls":0,"text":0}}] "#,
            ".tool_calls",
        ),
    );
}

fn added(index: u64, item: &Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn done(index: u64, item: &Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

fn delta(kind: &str, index: u64, delta: &str) -> Value {
    json!({"type": format!("response.{kind}.delta"), "output_index": index, "delta": delta})
}

fn text(index: u64, piece: &str) -> Value {
    delta("output_text", index, piece)
}

fn arguments(index: u64, piece: &str) -> Value {
    delta("function_call_arguments", index, piece)
}

fn message(phase: Option<&str>) -> Value {
    json!({"type": "message", "id": "msg", "role": "assistant", "content": [], "phase": phase})
}

fn call(id: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "t", "arguments": arguments})
}

fn thought(id: &str) -> Value {
    json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": "e", "status": null})
}

fn completed() -> Value {
    json!({"type": "response.completed", "response": {"status": "completed", "output": [],
        "usage": {"input_tokens": 5, "output_tokens": 2}}})
}

fn incomplete(reason: &str) -> Value {
    json!({"type": "response.incomplete", "response": {"status": "incomplete",
        "incomplete_details": {"reason": reason}}})
}

#[test]
fn text_thoughts_and_calls_come_in_their_order() {
    check(
        &[
            json!({"type": "response.created", "response": {"status": "in_progress", "output": [], "error": null}}),
            added(0, &json!({"type": "reasoning", "id": "rs", "summary": []})),
            json!({"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 0}),
            delta("reasoning_summary_text", 0, "hm"),
            json!({"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 1}),
            delta("reasoning_summary_text", 0, "mh"),
            done(0, &thought("rs")),
            added(1, &message(None)),
            text(1, "hä"),
            text(1, "llo"),
            json!({"type": "response.output_text.done", "output_index": 1, "text": "hällo"}),
            done(1, &message(None)),
            added(2, &call("a", "")),
            added(3, &call("b", "")),
            arguments(2, r#"{"x":"#),
            arguments(3, "{}"),
            arguments(2, "1}"),
            json!({"type": "response.function_call_arguments.done", "output_index": 2, "arguments": "{\"x\":1}"}),
            done(2, &call("a", r#"{"x":1}"#)),
            done(3, &call("b", "{}")),
            json!({"type": "response.brand_new", "output_index": {"odd": 1}, "item": 7}),
            completed(),
        ],
        concat!(
            "(hm) (\n\n) (mh) hä llo 0:a/t 1:b/t 0+{\"x\": 1+{} 0+1} ",
            r#"[{"block":{"encrypted_content":"e","id":"rs","summary":[],"type":"reasoning"},"place":{"calls":0,"text":0}}] "#,
            "#5/2 .tool_calls",
        ),
    );
}

#[test]
fn what_was_not_streamed_is_read_from_the_end_of_its_item() {
    let said = json!({"type": "message", "content": [{"type": "output_text", "text": "hi"}]});
    let summary = json!({"type": "reasoning", "id": "rs", "encrypted_content": "e",
        "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]});
    check(
        &[
            done(0, &json!({"type": "reasoning", "summary": []})),
            added(1, &json!({"type": "message"})),
            done(1, &said),
            done(2, &call("a", r#"{"x":1}"#)),
            added(3, &call("b", "{}")),
            done(3, &json!({"type": "function_call"})),
            added(4, &call("c", "")),
            json!({"type": "response.function_call_arguments.done", "output_index": 4, "arguments": "{\"y\":2}"}),
            done(4, &call("c", r#"{"y":2}"#)),
            completed(),
        ],
        r#"hi 0:a/t 0+{"x":1} 1:b/t 1+{} 2:c/t 2+{"y":2} #5/2 .tool_calls"#,
    );
    let answer = json!({"id": "resp", "object": "response", "status": "completed", "error": null,
        "output": [summary, said, call("a", "{}")], "usage": {"input_tokens": 1, "output_tokens": 2}});
    let whole = format!(
        "(a) (\n\n) (b) hi 0:a/t 0+{{}} [{{\"block\":{summary},\"place\":{{\"calls\":0,\"text\":0}}}}] #1/2 .tool_calls"
    );
    check(std::slice::from_ref(&answer), &whole);
    let only_end = json!({"type": "response.completed", "response": answer});
    check(&[only_end], &whole);
}

#[test]
fn a_server_without_numbers_is_understood_by_ids_or_by_order() {
    let item = |kind: &str, item: &Value| json!({"type": format!("response.output_item.{kind}"), "item": item});
    let piece = |json: &str, id: Option<&str>| json!({"type": "response.function_call_arguments.delta", "item_id": id, "delta": json});
    check(
        &[
            item("added", &call("a", "")),
            item("added", &call("b", "")),
            piece("{}", Some("fc_a")),
            piece("{}", Some("fc_b")),
            item("done", &call("a", "{}")),
            item("done", &call("b", "{}")),
            completed(),
        ],
        "0:a/t 1:b/t 0+{} 1+{} #5/2 .tool_calls",
    );
    check(
        &[
            item("added", &json!({"type": "function_call", "name": "t"})),
            piece("{}", None),
            item(
                "done",
                &json!({"type": "function_call", "name": "t", "arguments": "{}"}),
            ),
            item(
                "done",
                &json!({"type": "function_call", "name": "t", "arguments": {"x": 1}}),
            ),
            completed(),
        ],
        r#"0:/t 0+{} 1:/t 1+{"x":1} #5/2 .tool_calls"#,
    );
    let plain = json!({"type": "response.output_text.delta", "delta": "hi"});
    check(&[plain.clone(), plain, completed()], "hi hi #5/2 .stop");
}

/// Asserts S2.27.
#[test]
fn reasons_are_read_as_the_vendor_spells_them() {
    let said = || [added(0, &message(None)), text(0, "a")];
    let ended = |end: Value| [said().as_slice(), &[end]].concat();
    check(&ended(incomplete("max_output_tokens")), "a .length");
    check(&ended(incomplete("content_filter")), "a .content_filter");
    check(&ended(incomplete("brand_new")), "a .other");
    check(
        &ended(json!({"type": "response.cancelled", "response": {"status": "cancelled"}})),
        "a .other",
    );
    check(&ended(json!({"type": "response.completed"})), "a .stop");
    let call = [added(0, &call("a", "")), incomplete("max_output_tokens")];
    check(&call, "0:a/t .length");
    check(
        &[
            added(0, &message(None)),
            delta("refusal", 0, "I will not"),
            completed(),
        ],
        "I will not #5/2 .refusal",
    );
    let refusal = json!({"type": "message", "content": [{"type": "refusal", "refusal": "no"}]});
    check(&[done(0, &refusal), completed()], "no #5/2 .refusal");
    assert!(matches!(run(&said()), Err(Error::Cut { .. })));
}

/// Asserts S3.8.
#[test]
fn thoughts_and_phases_are_kept_at_their_places() {
    let second = json!({"type": "reasoning", "id": "r2", "summary": [], "encrypted_content": "f"});
    check(
        &[
            added(0, &thought("r1")),
            done(0, &thought("r1")),
            added(1, &message(Some("commentary"))),
            text(1, "look"),
            done(1, &message(Some("commentary"))),
            added(2, &call("a", "{}")),
            done(2, &call("a", "{}")),
            done(3, &second),
            added(4, &message(None)),
            text(4, "done"),
            done(4, &message(Some("final_answer"))),
            completed(),
        ],
        concat!(
            "look 0:a/t 0+{} \n\n done ",
            r#"[{"block":{"encrypted_content":"e","id":"r1","summary":[],"type":"reasoning"},"place":{"calls":0,"text":0}},"#,
            r#"{"block":{"phase":"commentary","type":"message"},"place":{"calls":0,"length":4,"text":0}},"#,
            r#"{"block":{"encrypted_content":"f","id":"r2","summary":[],"type":"reasoning"},"place":{"calls":1,"text":4}},"#,
            r#"{"block":{"phase":"final_answer","type":"message"},"place":{"calls":1,"length":4,"text":6}}] "#,
            "#5/2 .tool_calls",
        ),
    );
}

#[test]
fn errors_in_the_stream_and_broken_events_are_told_apart() {
    let word = |payload: Value| Verdict::word(&run(&[text(0, "a"), payload]).unwrap_err());
    let failed = |code: &str| {
        let error = json!({"code": code, "message": "x"});
        json!({"type": "response.failed", "response": {"status": "failed", "error": error}})
    };
    assert_eq!(word(failed("server_error")), "unavailable");
    assert_eq!(word(failed("rate_limit_exceeded")), "limited");
    assert_eq!(word(failed("invalid_prompt")), "request");
    assert_eq!(word(failed("context_length_exceeded")), "overflow");
    let flat =
        json!({"type": "error", "code": "rate_limit_exceeded", "message": "x", "param": null});
    assert_eq!(word(flat), "limited");
    let nested = json!({"type": "error", "error": {"type": "server_error", "message": "x"}});
    assert_eq!(word(nested), "unavailable");
    assert_eq!(word(json!({"error": {"message": "x"}})), "unavailable");
    assert_eq!(word(json!("nonsense")), "other");
    assert_eq!(
        word(json!({"type": "response.completed", "response": 7})),
        "other"
    );
    let many: Vec<Value> = (0..=MAX_CALLS as u64)
        .map(|index| added(index, &call(&index.to_string(), "")))
        .collect();
    assert!(matches!(run(&many), Err(Error::BadAnswer { .. })));
}

#[test]
fn what_the_vendor_compacted_is_told_and_kept_as_it_came() {
    let item =
        json!({"type": "compaction", "id": "cmp", "encrypted_content": "s", "created_by": null});
    let begun = json!({"type": "compaction", "id": "cmp"});
    check(
        &[
            added(0, &begun),
            done(0, &item),
            delta("output_text", 1, "a"),
            json!({"type": "response.completed", "response": {"status": "completed"}}),
        ],
        concat!(
            r#"a ~?~0>0 [{"block":{"created_by":null,"encrypted_content":"s","id":"cmp","type":"compaction"},"#,
            r#""place":{"calls":0,"text":0}}] .stop"#,
        ),
    );
}
