//! Tests turns that run for too long without a person (S0.58) or go in circles.

use std::time::Duration;

use serde_json::json;

use crate::domain::{Attachment, BlobId, Code, Entry, MediaType, TurnId};
use crate::session::properties::world::{World, approve, proposal, reject, say};
use crate::session::{Command, Event, Outcome, Output};

const LIMIT: Duration = Duration::from_mins(1);
const LIMIT_MS: i64 = 60_000;

/// Tells that the turn exceeded its time limit, after `later` milliseconds; returns true if that changed
/// anything.
fn time_out(world: &mut World, turn: u64, later: i64) -> bool {
    world.now += later;
    let before = world.journal.len();
    world
        .submit(&Command::TimeOut {
            turn: TurnId(turn),
            limit: LIMIT,
            spent: Vec::new(),
        })
        .unwrap();
    world.check_folds();
    world.journal.len() > before
}

/// The error code of the last failed turn.
fn failure(world: &World) -> Option<Code> {
    let codes = world.events().filter_map(|event| {
        if let Event::TurnFailed { code, .. } = event {
            Some(*code)
        } else {
            None
        }
    });
    codes.last()
}

fn one_call(world: &mut World) {
    world.submit(&say("hello")).unwrap();
    world.answer("I will", vec![proposal("a", json!({}))]);
}

#[test]
fn a_turn_ends_when_the_model_takes_too_long_and_not_before() {
    let mut world = World::new();
    world.submit(&say("hello")).unwrap();
    assert!(!time_out(&mut world, 1, LIMIT_MS / 2));
    assert!(!time_out(&mut world, 2, LIMIT_MS), "another turn");
    assert!(time_out(&mut world, 1, 0));
    assert_eq!(failure(&world), Some(Code::TurnTimeout));
    assert!(world.state.control.turn.is_none());
    assert!(!time_out(&mut world, 1, LIMIT_MS), "it has ended");
}

/// Asserts S0.58.
#[test]
fn waiting_for_a_person_takes_no_time_and_their_decision_begins_it_anew() {
    let mut world = World::new();
    one_call(&mut world);
    let call = world.queue()[0].clone();
    assert!(!time_out(&mut world, 1, 10 * LIMIT_MS), "a card may wait");
    world.submit(&approve(&call)).unwrap();
    assert!(!time_out(&mut world, 1, LIMIT_MS / 2));
    assert!(time_out(&mut world, 1, LIMIT_MS));
    assert_eq!(failure(&world), None, "what runs is stopped first");
    assert!(world.state.control.turn.as_ref().unwrap().is_stopping);
    world.end(&call, Outcome::Cancelled);
    assert_eq!(failure(&world), Some(Code::TurnTimeout));
    assert!(world.state.control.turn.is_none());
    world.check_folds();
}

#[test]
fn a_message_that_the_turn_takes_and_a_new_runner_begin_it_anew() {
    let mut world = World::new();
    one_call(&mut world);
    let call = world.queue()[0].clone();
    world.submit(&approve(&call)).unwrap();
    world.now += LIMIT_MS / 2;
    world.submit(&say("and be quick")).unwrap();
    world.end(&call, Outcome::Cancelled);
    assert!(!time_out(&mut world, 1, LIMIT_MS - 100));
    world.crash();
    assert!(!time_out(&mut world, 1, LIMIT_MS - 100));
    assert!(time_out(&mut world, 1, 100));
}

#[test]
fn messages_that_waited_begin_the_next_turn() {
    let mut world = World::new();
    world.submit(&say("hello")).unwrap();
    world.submit(&say("are you there?")).unwrap();
    assert!(time_out(&mut world, 1, LIMIT_MS));
    assert_eq!(world.state.control.turn.as_ref().unwrap().id, TurnId(2));
}

/// Asserts S3.14: a model that goes in circles gets an error; new results let the turn go on.
#[test]
fn the_same_call_with_the_same_result_is_not_run_for_ever() {
    let mut world = World::new();
    world.rules.max_same_calls = Some(2);
    world.submit(&say("go")).unwrap();
    let run = |world: &mut World, result: &str| {
        world.answer("again", vec![proposal("a", json!({}))]);
        let call = world.queue()[0].clone();
        world.submit(&approve(&call)).unwrap();
        let output = Output {
            text: result.into(),
            ..Output::default()
        };
        world.end(&call, Outcome::Completed { output });
    };
    run(&mut world, "one");
    run(&mut world, "two");
    run(&mut world, "two");
    // Another call in between breaks the circle.
    world.answer("else", vec![proposal("b", json!({}))]);
    world.submit(&reject(&world.queue()[0], None)).unwrap();
    run(&mut world, "two");
    run(&mut world, "two");
    let started = world.started().len();
    world.answer("again", vec![proposal("a", json!({}))]);
    assert_eq!(world.started().len(), started, "nothing runs");
    assert!(
        world.state.control.turn.as_ref().unwrap().queue.is_empty(),
        "the model is asked at once"
    );
    let last = world.state.entries.last().unwrap();
    let Entry::ToolResult {
        text,
        is_error: true,
        ..
    } = &***last
    else {
        panic!("no result");
    };
    assert!(text.contains("made 2 times in a row"), "{text}");
    // A call with other arguments is not a repeat.
    world.answer("other", vec![proposal("a", json!({"n": 1}))]);
    assert_eq!(world.queue().len(), 1);
}

/// Asserts S3.14: only identical results count as repeats; a difference far from the beginning, or only in
/// a picture, makes another result.
#[test]
fn a_result_that_differs_anywhere_is_another_result() {
    let mut world = World::new();
    world.rules.max_same_calls = Some(2);
    world.submit(&say("go")).unwrap();
    let log = "line\n".repeat(1_000);
    let picture = |content: &[u8]| Attachment {
        id: BlobId::of(content),
        name: "screen.png".into(),
        media_type: MediaType::Png,
        bytes: 1,
        width: Some(1),
        height: Some(1),
        source: None,
    };
    let outputs = [
        (format!("{log}1"), vec![]),
        (format!("{log}2"), vec![]),
        (format!("{log}3"), vec![]),
        ("seen".into(), vec![picture(b"one")]),
        ("seen".into(), vec![picture(b"two")]),
        ("seen".into(), vec![picture(b"three")]),
    ];
    for (text, attachments) in outputs {
        world.answer("look", vec![proposal("a", json!({}))]);
        let call = world.queue()[0].clone();
        world.submit(&approve(&call)).unwrap();
        let output = Output {
            text,
            attachments,
            ..Output::default()
        };
        world.end(&call, Outcome::Completed { output });
    }
    assert_eq!(world.started().len(), 6, "each of them ran");
}
