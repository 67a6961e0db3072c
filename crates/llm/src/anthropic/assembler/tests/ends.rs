//! Refusals, pauses, vendor-run tools and the total usage.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{START, STOP, assembler, begin, check, check_all, delta, ended, run, stop};
use crate::anthropic::assembler::{MAX_PAUSES, Pause};
use crate::request::names::Names;
use crate::stream::Assemble as _;
use crate::{Collector, Finish, ModelEvent};

#[test]
fn a_refusal_is_told_with_its_category_and_never_with_the_key() {
    fn check_details(details: &str, expected: &str) {
        let ended = format!(
            r#"{{"type":"message_delta","delta":{{"stop_reason":"refusal","stop_details":{details}}},"usage":{{"output_tokens":1}}}}"#
        );
        check(&[&ended], &format!("#0(0,0)/1 {expected}.refusal"));
    }
    check_details(
        r#"{"type":"refusal","category":"cyber","explanation":null}"#,
        "!cyber ",
    );
    check_details(
        r#"{"type":"refusal","category":"bio","explanation":"It may do harm."}"#,
        "!bio: It may do harm. ",
    );
    check_details(r#"{"category":null}"#, "");
    check_details("null", "");
    check_details("7", "");
}

/// Blocks of vendor-run tools are kept with the message, but a call without its result is not.
#[test]
fn what_the_vendors_own_tools_did_is_kept() {
    let call = r#"{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}"#;
    let result = r#"{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}"#;
    let piece = r#"{"type":"input_json_delta","partial_json":"{\"q\":1}"}"#;
    check_all(
        &[
            begin(0, call),
            delta(0, piece),
            stop(0),
            begin(1, result),
            stop(1),
            begin(2, r#"{"type":"text","text":"a"}"#),
            begin(
                3,
                r#"{"type":"server_tool_use","id":"s2","name":"x","input":{}}"#,
            ),
            ended("end_turn"),
            STOP.to_owned(),
        ],
        concat!(
            r#"a [{"block":{"id":"s1","input":{"q":1},"name":"web_search","type":"server_tool_use"},"place":{"calls":0,"text":0}},"#,
            r#"{"block":{"content":[],"tool_use_id":"s1","type":"web_search_tool_result"},"place":{"calls":0,"text":0}}] "#,
            "#0(0,0)/15 .stop",
        ),
    );
}

#[test]
fn a_paused_answer_goes_on_as_one_and_its_usage_is_the_sum() {
    let pause = Pause::default();
    let mut assembler = assembler(Names::default()).pausing(Arc::clone(&pause));
    let mut out = VecDeque::new();
    let thought = r#"{"type":"thinking","thinking":"hm","signature":"s"}"#;
    for round in 0..=MAX_PAUSES {
        let text = format!(r#"{{"type":"text","text":"{round}"}}"#);
        let payloads = [
            START.to_owned(),
            begin(0, thought),
            begin(1, &text),
            ended("pause_turn"),
        ];
        for payload in payloads {
            assert!(!assembler.push(&payload, &mut out).unwrap());
        }
        let is_over = assembler.push(STOP, &mut out).unwrap();
        assert_eq!(
            is_over,
            round == MAX_PAUSES,
            "it is asked to go on so often"
        );
        let said = pause.lock().unwrap().take();
        assert_eq!(said.is_none(), is_over);
        if let Some(said) = said {
            let so_far: String = (0..=round).map(|round| round.to_string()).collect();
            assert_eq!(said.text, so_far);
            assert_eq!(said.blocks.as_array().unwrap().len(), round as usize + 1);
        }
    }
    assembler.end(&mut out);
    let mut collector = Collector::default();
    for event in &out {
        collector.push(event);
    }
    let answer = collector.finish();
    assert_eq!(answer.text, "012345678");
    assert_eq!(answer.finish, Some(Finish::Paused));
    let usage = answer.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (132 * 9, 15 * 9));
}

#[test]
fn a_pause_with_calls_waits_for_their_results() {
    let pause = Pause::default();
    let mut assembler = assembler(Names::default()).pausing(Arc::clone(&pause));
    let mut out = VecDeque::new();
    let call = begin(
        0,
        r#"{"type":"tool_use","id":"t","name":"read","input":{}}"#,
    );
    for payload in [call, ended("pause_turn")] {
        assert!(!assembler.push(&payload, &mut out).unwrap());
    }
    assert!(assembler.push(STOP, &mut out).unwrap());
    assembler.end(&mut out);
    assert_eq!(out.back(), Some(&ModelEvent::Finished(Finish::Calls)));
}

/// Some relays start a stream again in its middle: the text so far is kept and no call is duplicated.
#[test]
fn a_second_beginning_of_a_message_changes_nothing() {
    check_all(
        &[
            START.to_owned(),
            begin(0, r#"{"type":"text","text":"a"}"#),
            START.to_owned(),
            begin(
                0,
                r#"{"type":"tool_use","id":"t","name":"read","input":{}}"#,
            ),
            ended("tool_use"),
            STOP.to_owned(),
        ],
        "a 0:t/read #132(7,100)/15 .tool_calls",
    );
}

/// Longer-lived cache entries cost more, and newer servers report thinking apart from other output.
#[test]
fn finer_numbers_of_the_usage_are_read_where_they_are_numbers() {
    fn usage(usage: &str) -> (u64, u64, u64) {
        let ended = format!(
            r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},"usage":{usage}}}"#
        );
        let events = run(&[&ended]).unwrap();
        let usage = events.iter().find_map(|event| {
            let ModelEvent::Usage(usage) = event else {
                return None;
            };
            Some(*usage)
        });
        let usage = usage.unwrap();
        (
            usage.cache_write_tokens,
            usage.cache_write_long_tokens,
            usage.reasoning_tokens,
        )
    }
    let whole = r#"{"input_tokens":1,"cache_creation_input_tokens":9,"output_tokens":5,
        "cache_creation":{"ephemeral_5m_input_tokens":3,"ephemeral_1h_input_tokens":6},
        "output_tokens_details":{"thinking_tokens":4},"server_tool_use":{"web_search_requests":2}}"#;
    assert_eq!(usage(whole), (9, 6, 4));
    let odd = r#"{"input_tokens":1,"cache_creation_input_tokens":9,"output_tokens":5,
        "cache_creation":7,"output_tokens_details":null}"#;
    assert_eq!(usage(odd), (9, 0, 0));
}

/// The block is stored as it came. A block without content is a failed compaction and is ignored.
#[test]
fn what_the_vendor_compacted_is_told_and_kept_as_it_came() {
    let begun = begin(0, r#"{"type":"compaction","content":null}"#);
    let piece = |text: &str| {
        delta(
            0,
            &format!(r#"{{"type":"compaction_delta","content":"{text}"}}"#),
        )
    };
    let seal = delta(
        0,
        r#"{"type":"compaction_delta","content":null,"encrypted_content":"s"}"#,
    );
    let usage = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":9,"output_tokens":2,"iterations":[{"type":"compaction","input_tokens":70,"output_tokens":5},{"type":"message","input_tokens":9,"output_tokens":2}]}}"#;
    let text = begin(1, r#"{"type":"text","text":"a"}"#);
    check_all(
        &[
            begun.clone(),
            piece("All of"),
            piece(" it."),
            seal,
            stop(0),
            text.clone(),
            usage.to_owned(),
            STOP.to_owned(),
        ],
        concat!(
            "a ~All of it.~70>9 ",
            r#"[{"block":{"content":"All of it.","encrypted_content":"s","type":"compaction"},"place":{"calls":0,"text":0}}] "#,
            "#79(0,0)/7 .stop",
        ),
    );
    check_all(
        &[begun, stop(0), text, ended("end_turn"), STOP.to_owned()],
        concat!(
            r#"a [{"block":{"content":null,"type":"compaction"},"place":{"calls":0,"text":0}}] "#,
            "#0(0,0)/15 .stop",
        ),
    );
}
