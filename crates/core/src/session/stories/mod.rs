//! Tests the pure core by short stories, one rule each.

mod approvals;
mod attachments;
mod compaction;
mod elicitation;
mod fork;
mod import;
mod limits;
mod proof;
mod recovery;
mod switching;
mod titles;
mod views;

use serde_json::json;

use super::properties::world::{World, approve, proposal, reject, say};
use super::{Call, Command, CutKind, Event, Outcome, Verdict};
use crate::domain::{Code, Entry, Iteration, ModelRequestId, TurnId};

pub(super) fn answer_calls(world: &mut World, tools: &[&str]) {
    let calls = tools
        .iter()
        .map(|tool| proposal(tool, json!({"n": tool})))
        .collect();
    world.answer("I will", calls);
}

/// Asserts S3.23.
#[test]
fn a_plain_turn_makes_two_commits() {
    let mut world = World::new();
    world.submit(&say("hello")).unwrap();
    world.answer("hi", vec![]);
    assert_eq!(world.journal.len(), 2);
    assert!(world.state.control.turn.is_none());
    let stamps = world.state.entries.iter().map(|entry| entry.stamp());
    let stamps: Vec<(u64, i64)> = stamps
        .map(|it| it.map(|it| (it.seq, it.at.0)).unwrap())
        .collect();
    let [(asked, since), (said, at)] = stamps[..] else {
        panic!("{stamps:?}");
    };
    assert!(
        asked < said && since <= at,
        "each says where it comes from: {stamps:?}"
    );
}

/// Asserts S3.23.
#[test]
fn an_answer_without_calls_ends_the_turn_even_if_it_has_no_text() {
    for said in ["It is noon.", ""] {
        let mut world = World::new();
        world.submit(&say("hello")).unwrap();
        world.answer(said, vec![]);
        assert!(world.state.control.turn.is_none());
        let answered =
            |event: &&Event| matches!(event, Event::Answered { text, .. } if text == said);
        assert_eq!(world.events().filter(answered).count(), 1);
    }
}

#[test]
fn a_turn_of_five_calls_asked_one_by_one_makes_thirteen_commits() {
    let mut world = World::new();
    world.submit(&say("hello")).unwrap();
    answer_calls(&mut world, &["a", "b", "c", "d", "e"]);
    for call in world.queue() {
        world.submit(&approve(&call)).unwrap();
    }
    for call in world.queue() {
        world.finish(&call);
    }
    world.answer("done", vec![]);
    assert_eq!(world.journal.len(), 13);
}

#[test]
fn calls_that_end_together_are_one_commit_and_the_model_is_asked_once() {
    let mut world = World::new();
    world.submit(&say("hello")).unwrap();
    answer_calls(&mut world, &["a", "b", "c", "d", "e"]);
    for call in world.queue() {
        world.submit(&approve(&call)).unwrap();
    }
    let ended = world.queue().into_iter().map(|call| Command::CallEnded {
        call,
        outcome: Outcome::Cancelled,
        duration_ms: 1,
    });
    world.submit_together(&ended.collect::<Vec<_>>()).unwrap();
    let last = &world.journal.last().unwrap().events;
    let is_end = |event: &&Event| matches!(event, Event::Ended { .. });
    assert_eq!(last.iter().filter(is_end).count(), 5);
    let is_request = |event: &&Event| matches!(event, Event::Thinking { .. });
    assert_eq!(last.iter().filter(is_request).count(), 1);
    world.answer("done", vec![]);
    assert_eq!(world.journal.len(), 9);
}

/// Asserts S2.30, S2.32, S2.33, S2.35.
#[test]
fn cards_go_out_one_by_one_with_their_place_and_any_may_be_decided() {
    let mut world = World::new();
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, &["a", "b", "c"]);
    let calls = world.queue();
    assert_eq!(world.asked(), [(calls[0].clone(), 1, 3)]);
    world.submit(&approve(&calls[2])).unwrap();
    assert_eq!(world.asked().len(), 1, "the first card still waits");
    world.submit(&reject(&calls[0], Some("no"))).unwrap();
    assert_eq!(world.asked()[1], (calls[1].clone(), 2, 3));
    assert!(
        world.started().is_empty(),
        "nothing runs until all are decided"
    );
    world.submit(&approve(&calls[1])).unwrap();
    assert_eq!(world.started(), [calls[1].clone(), calls[2].clone()]);
}

/// Asserts S2.34, O2.
#[test]
fn a_rejection_gives_the_model_a_result_with_the_reason() {
    let mut world = World::new();
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, &["a"]);
    let calls = world.queue();
    world
        .submit(&reject(&calls[0], Some("not on main")))
        .unwrap();
    let Some(Entry::ToolResult {
        text,
        is_error: true,
        ..
    }) = world.state.entries.last().map(|entry| (***entry).clone())
    else {
        panic!("no result")
    };
    assert!(text.contains("not on main"), "{text}");
    assert_eq!(
        world.state.control.turn.as_ref().unwrap().iteration,
        Iteration(2)
    );
}

#[test]
fn the_same_rejected_call_is_refused_without_asking_again_in_that_turn() {
    let mut world = World::new();
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, &["a"]);
    let call = world.queue()[0].clone();
    world.submit(&reject(&call, None)).unwrap();
    answer_calls(&mut world, &["a"]);
    assert_eq!(world.asked().len(), 1);
    assert_eq!(
        world.state.control.turn.as_ref().unwrap().iteration,
        Iteration(3)
    );
    world.answer("fine", vec![]);
    world.submit(&say("again")).unwrap();
    answer_calls(&mut world, &["a"]);
    assert_eq!(world.asked().len(), 2, "a new turn asks");
}

#[test]
fn a_decision_on_another_digest_is_refused() {
    let mut world = World::new();
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, &["a"]);
    let call = world.queue()[0].clone();
    let mut decision = approve(&call);
    if let Command::Decide(decision) = &mut decision {
        decision.digest = Some(crate::domain::Digest::from_wire("other"));
    }
    assert_eq!(
        world.submit(&decision).unwrap_err().code,
        Code::ChangedSinceShown
    );
    assert!(world.started().is_empty());
}

#[test]
fn repeats_change_nothing_and_contradictions_are_refused() {
    let mut world = World::new();
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, &["a", "b"]);
    let calls = world.queue();
    world.submit(&approve(&calls[0])).unwrap();
    let commits = world.journal.len();
    world.submit(&approve(&calls[0])).unwrap();
    world.submit(&reject(&calls[1], None)).unwrap();
    assert_eq!(world.journal.len(), commits + 1);
    assert_eq!(
        world.submit(&reject(&calls[0], None)).unwrap_err().code,
        Code::AlreadyDecided
    );
    assert_eq!(
        world.submit(&approve(&calls[1])).unwrap_err().code,
        Code::AlreadyDecided
    );
}

#[test]
fn an_approval_can_be_taken_back_while_nothing_has_started() {
    let mut world = World::new();
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, &["a", "b"]);
    let calls = world.queue();
    world.submit(&approve(&calls[0])).unwrap();
    world.submit(&reject(&calls[0], None)).unwrap();
    assert!(world.events().any(|event| matches!(
        event,
        Event::Decided {
            verdict: Verdict::TakenBack,
            ..
        }
    )));
    world.submit(&approve(&calls[1])).unwrap();
    assert!(world.started().is_empty(), "it still waits");
}

#[test]
fn approve_all_decides_the_named_calls_only_and_needs_their_names() {
    let mut world = World::new();
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, &["a", "b", "c"]);
    let calls = world.queue();
    let all = |call_ids| Command::DecideAll {
        call_ids,
        approved: true,
        reason: None,
        by: World::person(),
        role: None,
    };
    assert_eq!(world.submit(&all(None)).unwrap_err().field, Some("callIds"));
    world.submit(&all(Some(calls[..2].to_vec()))).unwrap();
    assert!(world.started().is_empty(), "the third stays pending");
    world.submit(&approve(&calls[2])).unwrap();
    assert_eq!(world.started().len(), 3);
}

#[test]
fn a_steered_message_is_read_at_the_next_request_and_never_between_call_and_result() {
    let mut world = World::new();
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, &["a"]);
    let call = world.queue()[0].clone();
    world.submit(&say("also this")).unwrap();
    world.submit(&approve(&call)).unwrap();
    world.finish(&call);
    let kinds: Vec<&str> = world
        .state
        .entries
        .iter()
        .map(|entry| match &***entry {
            Entry::User { .. } => "user",
            Entry::Assistant { .. } => "assistant",
            Entry::ToolResult { .. } => "result",
            Entry::Note { .. } => "note",
        })
        .collect();
    assert_eq!(kinds, ["user", "assistant", "result", "user"]);
}

#[test]
fn messages_left_at_the_end_of_a_turn_start_the_next() {
    let mut world = World::new();
    world.submit(&say("one")).unwrap();
    world.submit(&say("two")).unwrap();
    world.answer("answer to one", vec![]);
    assert_eq!(world.state.control.turn.as_ref().unwrap().id, TurnId(2));
    assert_eq!(world.journal.len(), 3);
}

/// Asserts S2.44.
#[test]
fn stopping_ends_every_call_and_then_the_turn() {
    let mut world = World::new();
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, &["a", "b"]);
    for call in world.queue() {
        world.submit(&approve(&call)).unwrap();
    }
    let calls = world.queue();
    world
        .submit(&Command::Stop {
            turn: None,
            said_so_far: None,
            thought_so_far: None,
            spent: Vec::new(),
        })
        .unwrap();
    assert!(
        world.state.control.turn.is_some(),
        "running calls end first"
    );
    world
        .submit(&Command::Stop {
            turn: Some(TurnId(99)),
            said_so_far: None,
            thought_so_far: None,
            spent: Vec::new(),
        })
        .unwrap();
    for call in &calls {
        world.end(call, Outcome::Cancelled);
    }
    assert!(world.state.control.turn.is_none());
    assert!(matches!(
        world.events().last(),
        Some(Event::Cancelled {
            turn: TurnId(1),
            ..
        })
    ));
}

/// Asserts S0.60, S3.14, S3.29: the model's last text is the answer; without one, a fixed text is, and the
/// model later reads it as its own.
#[test]
fn a_turn_ends_when_it_has_asked_the_model_as_often_as_it_may() {
    assert_eq!(World::new().rules.max_iterations, 25);
    let ours = "Reached maximum tool call iterations without a final answer.";
    for (said, expected) in [("I will", "I will"), ("", ours)] {
        let mut world = World::new();
        world.rules.max_iterations = 2;
        world.submit(&say("go")).unwrap();
        answer_calls(&mut world, &["a"]);
        let call = world.queue()[0].clone();
        world.submit(&approve(&call)).unwrap();
        world.finish(&call);
        world.answer(said, vec![proposal("a", json!({}))]);
        assert!(matches!(
            world.events().last(),
            Some(Event::Answered { text, finish, .. })
                if text == expected && finish == "max_iterations"
        ));
        assert_eq!(world.started(), [call], "the last call does not run");
        let remembered = &***world.state.entries.last().unwrap();
        assert!(matches!(
            remembered,
            Entry::Assistant { text, calls, .. } if text == expected && calls.is_empty()
        ));
    }
}

#[test]
fn a_repeated_message_is_taken_once() {
    let mut world = World::new();
    let message = Command::Say {
        text: "x".into(),
        author: World::person(),
        client_message_id: Some("m1".into()),
        effort: None,
        attachments: vec![],
    };
    world.submit(&message).unwrap();
    world.submit(&message).unwrap();
    assert_eq!(world.journal.len(), 1);
    assert_eq!(world.state.control.seq_of_message("m1"), Some(1));
}

#[test]
fn a_commit_of_a_newer_release_is_refused_and_ours_survives_storage() {
    let mut world = World::new();
    world.submit(&say("go")).unwrap();
    let commit = world.journal[0].clone();
    assert_eq!(
        super::Commit::from_bytes(&commit.to_bytes().unwrap()).unwrap(),
        commit
    );
    let newer = super::Commit {
        schema: super::SCHEMA + 1,
        ..commit
    };
    assert!(super::Commit::from_bytes(&newer.to_bytes().unwrap()).is_err());
}

#[test]
fn a_request_that_does_not_fit_is_asked_again_with_less_and_the_journal_says_so() {
    let mut world = World::new();
    world.submit(&say("one")).unwrap();
    world.answer("first", vec![]);
    world.submit(&say("two")).unwrap();
    let overflowed = Command::Overflowed {
        request: ModelRequestId {
            turn: TurnId(2),
            iteration: Iteration(1),
        },
        cut: world.cut(CutKind::FreshContext),
        spent: Vec::new(),
    };
    world.submit(&overflowed).unwrap();
    assert_eq!(world.state.entries.len(), 1);
    assert_eq!(world.state.left_out, 2);
    let turn = world.state.control.turn.clone().unwrap();
    assert_eq!((turn.id, turn.iteration), (TurnId(2), Iteration(2)));
    // A repeated outcome comes too late.
    let versions = world.journal.len();
    world.submit(&overflowed).unwrap();
    assert_eq!(world.journal.len(), versions);
}

/// Journals of earlier releases keep their meaning: the model reads the call as it made it.
#[test]
fn a_call_through_use_tool_is_read_under_its_earlier_name() {
    let mut world = World::new();
    world.submit(&say("go")).unwrap();
    world.answer("", vec![proposal("a", json!({}))]);
    let asked = &world.state.control.turn.as_ref().unwrap().queue[0];
    let mut stored = serde_json::to_value(&**asked).unwrap();
    stored["is_found"] = true.into();
    let call: Call = serde_json::from_value(stored).unwrap();
    assert_eq!(call.as_model_call().name, crate::domain::USE_TOOL);
}
