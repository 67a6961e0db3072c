//! Tests sessions that switch models, or whose gateway gets an engine.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a story looks at the events that it is about"
)]

use serde_json::json;

use crate::domain::Effort;
use crate::session::properties::world::{World, approve, proposal, say};
use crate::session::{Command, Event};

fn choose(model: &str) -> Command {
    Command::ChooseModel {
        model: crate::session::ModelChoice::new("other", model),
    }
}

#[test]
fn a_switch_of_the_model_counts_from_the_next_request_on_and_counters_go_on() {
    let mut world = World::new();
    world.tell(&say("go")).unwrap();
    world.tell(&choose("big")).unwrap();
    world.tell(&choose("big")).unwrap();
    let control = &world.state.control;
    assert_eq!(control.asked().unwrap().model, "m", "it was asked already");
    world.answer("I will", vec![proposal("read_a", json!({}))]);
    let before = world.state.control.usage.totals.total_tokens;
    for call in world.queue() {
        world.tell(&approve(&call)).unwrap();
        world.finish(&call);
    }
    world.answer("done", vec![]);
    assert!(world.state.control.usage.totals.total_tokens > before);
    let told: Vec<(&str, &str)> = world
        .events()
        .filter_map(|event| match event {
            Event::Thinking { model, .. } => Some(("asked", model.as_str())),
            Event::ModelChosen { model } => Some(("chosen", model.model.as_str())),
            Event::Answered { model, .. } => Some(("answered", model.as_str())),
            _ => None,
        })
        .collect();
    let expected = [
        ("asked", "m"),
        ("chosen", "big"),
        ("asked", "big"),
        ("answered", "big"),
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_message_says_how_much_the_model_thinks_in_the_turn_that_takes_it() {
    let with = |effort| {
        let Command::Say { text, author, .. } = say("go") else {
            panic!("a message is said");
        };
        Command::Say {
            text,
            author,
            client_message_id: None,
            effort,
            attachments: vec![],
        }
    };
    let of_turn = |world: &World| world.state.control.turn.as_ref().unwrap().effort;
    let mut world = World::new();
    world.tell(&with(Some(Effort::High))).unwrap();
    assert_eq!(of_turn(&world), Some(Effort::High));
    // A waiting message sets the effort from the request that reads it; a message without an effort changes
    // nothing.
    world.tell(&with(Some(Effort::Off))).unwrap();
    world.tell(&with(None)).unwrap();
    assert_eq!(of_turn(&world), Some(Effort::High));
    world.answer("I will", vec![proposal("read_a", json!({}))]);
    for call in world.queue() {
        world.tell(&approve(&call)).unwrap();
        world.finish(&call);
    }
    assert_eq!(of_turn(&world), Some(Effort::Off));
    world.answer("done", vec![]);
    world.tell(&with(None)).unwrap();
    assert_eq!(of_turn(&world), None, "it was said of that turn");
}

#[test]
fn what_was_written_before_models_could_be_switched_still_folds() {
    let mut world = World::new();
    world.tell(&say("go")).unwrap();
    world.take_snapshot();
    let mut old = serde_json::to_value(&world.state).unwrap();
    let turn = old["control"]["turn"].as_object_mut().unwrap();
    turn.remove("asked").unwrap();
    let mut state: crate::session::SessionState = serde_json::from_value(old).unwrap();
    assert_eq!(state.control.asked().unwrap().model, "m");
    world.tell(&choose("big")).unwrap();
    state.apply(world.journal.last().unwrap());
    assert_eq!(state.control.model.unwrap().model, "big");
}

#[test]
fn the_window_is_chosen_once_and_holds_until_it_is_taken_back() {
    let window = |whole| Command::ChooseWindow { whole };
    let mut world = World::new();
    world.tell(&window(false)).unwrap();
    assert!(world.journal.is_empty(), "it was so already");
    world.tell(&say("go")).unwrap();
    world.tell(&window(true)).unwrap();
    world.tell(&window(true)).unwrap();
    assert!(world.state.control.context.reads_whole);
    world.answer("done", vec![]);
    world.tell(&window(false)).unwrap();
    assert!(!world.state.control.context.reads_whole);
    let told: Vec<bool> = world
        .events()
        .filter_map(|event| match event {
            Event::WindowChosen { whole } => Some(*whole),
            _ => None,
        })
        .collect();
    assert_eq!(told, [true, false]);
}

#[test]
fn an_engine_that_came_since_keeps_the_files_of_what_starts_next() {
    let mut world = World::new();
    world.has_engine = false;
    world.tell(&say("go")).unwrap();
    assert_eq!(world.state.control.runner.engine, None);
    // The engine becomes available while the model answers.
    world.has_engine = true;
    world.answer(
        "I will",
        vec![proposal("a", json!({})), proposal("b", json!({}))],
    );
    for call in world.queue() {
        world.tell(&approve(&call)).unwrap();
    }
    let control = &world.state.control;
    assert!(control.engine.is_some(), "{control:?}");
    let epoch = control.runner.epoch;
    for call in world.queue() {
        world.finish(&call);
    }
    world.answer("done", vec![]);
    world.tell(&say("and now")).unwrap();
    assert_eq!(world.state.control.runner.epoch, epoch, "it came once");
}
