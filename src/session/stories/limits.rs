//! Stories of a turn that goes on for longer than it may without a person (S0.58).

use std::time::Duration;

use serde_json::json;

use crate::domain::{Code, TurnId};
use crate::session::properties::world::{World, approve, proposal, say};
use crate::session::{Command, Event, Outcome};

const LIMIT: Duration = Duration::from_mins(1);
const LIMIT_MS: i64 = 60_000;

/// Says that the time of the turn is over, when it is so late; whether that changed anything.
fn time_out(world: &mut World, turn: u64, later: i64) -> bool {
    world.now += later;
    let before = world.journal.len();
    world
        .tell(&Command::TimeOut {
            turn: TurnId(turn),
            limit: LIMIT,
            spent: Vec::new(),
        })
        .unwrap();
    world.check_folds();
    world.journal.len() > before
}

/// How the last turn ended: the code of its failure.
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
    world.tell(&say("hello")).unwrap();
    world.answer("I will", vec![proposal("a", json!({}))]);
}

#[test]
fn a_turn_ends_when_the_model_takes_too_long_and_not_before() {
    let mut world = World::new();
    world.tell(&say("hello")).unwrap();
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
    world.tell(&approve(&call)).unwrap();
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
    world.tell(&approve(&call)).unwrap();
    world.now += LIMIT_MS / 2;
    world.tell(&say("and be quick")).unwrap();
    world.end(&call, Outcome::Cancelled);
    assert!(!time_out(&mut world, 1, LIMIT_MS - 100));
    world.crash();
    assert!(!time_out(&mut world, 1, LIMIT_MS - 100));
    assert!(time_out(&mut world, 1, 100));
}

#[test]
fn messages_that_waited_begin_the_next_turn() {
    let mut world = World::new();
    world.tell(&say("hello")).unwrap();
    world.tell(&say("are you there?")).unwrap();
    assert!(time_out(&mut world, 1, LIMIT_MS));
    assert_eq!(world.state.control.turn.as_ref().unwrap().id, TurnId(2));
}
