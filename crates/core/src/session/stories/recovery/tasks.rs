//! Tests calls that their servers run as tasks.

use crate::domain::{CallId, Digest, ElicitationId, Timestamp};
use crate::session::properties::world::{World, approve, policy, rule, say};
use crate::session::stories::answer_calls;
use crate::session::{
    CallTask, Command, Effect, Elicitation, ElicitationEnd, Event, Outcome, PolicyEffect, effects,
};

fn created(call: &CallId, id: &str) -> Command {
    Command::TaskCreated {
        call: call.clone(),
        task: CallTask {
            id: id.into(),
            server: Digest::from_wire("server"),
            ttl_ms: None,
            since: Timestamp::default(),
        },
    }
}

/// A world with a running call.
fn running() -> (World, CallId) {
    let mut world = World::new();
    world.rules.policy = policy(vec![rule("allow", "*", PolicyEffect::Allow)]);
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, &["a"]);
    let call = world.queue()[0].clone();
    (world, call)
}

fn ends(world: &World) -> Vec<&Outcome> {
    let ended = world.events().filter_map(|event| {
        if let Event::Ended { outcome, .. } = event {
            Some(outcome)
        } else {
            None
        }
    });
    ended.collect()
}

#[test]
fn a_task_outlives_its_runner_and_is_stopped_by_the_next_one() {
    let (mut world, call) = running();
    world.submit(&created(&call, "7")).unwrap();
    world.crash();
    world.crash();
    assert_eq!(ends(&world), Vec::<&Outcome>::new(), "nothing is unknown");
    let runs = |is_stopping| Effect::RunCall {
        call: call.clone(),
        is_stopping,
    };
    assert_eq!(effects(&world.state.control), [runs(false)]);
    let stop = Command::StopCall { call: call.clone() };
    world.submit(&stop).unwrap();
    world.crash();
    assert_eq!(effects(&world.state.control), [runs(true)]);
    world.end(&call, Outcome::Cancelled);
    assert_eq!(ends(&world), [&Outcome::Cancelled]);
    world.check_folds();
}

#[test]
fn the_first_task_of_a_running_call_counts_and_no_other_call_has_one() {
    let (mut world, call) = running();
    world.now += 5;
    world.submit(&created(&call, "7")).unwrap();
    let since = world.now;
    world.submit(&created(&call, "8")).unwrap();
    world
        .submit(&created(&CallId::from_wire("call_0_0"), "9"))
        .unwrap();
    let turn = world.state.control.turn.as_ref().unwrap();
    let task = turn.call(&call).unwrap().task.clone().unwrap();
    assert_eq!((task.id.as_str(), task.since), ("7", Timestamp(since)));
    world.finish(&call);
    world.submit(&created(&call, "10")).unwrap();
    let told = |event: &&Event| matches!(event, Event::TaskCreated { .. });
    assert_eq!(world.events().filter(told).count(), 1);
    world.check_folds();
}

#[test]
fn a_call_without_a_task_is_unknown_beside_one_that_has_one() {
    let mut world = World::new();
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, &["a", "b"]);
    let calls = world.queue();
    for call in &calls {
        world.submit(&approve(call)).unwrap();
    }
    world.submit(&created(&calls[1], "7")).unwrap();
    world.crash();
    assert_eq!(ends(&world), [&Outcome::Unknown { cause: None }]);
    world.finish(&calls[1]);
    assert_eq!(world.state.control.turn.as_ref().unwrap().iteration.0, 2);
    world.check_folds();
}

#[test]
fn what_the_server_asked_the_runner_that_is_gone_is_not_asked_any_more() {
    let (mut world, call) = running();
    world.submit(&created(&call, "7")).unwrap();
    let asked = Elicitation {
        id: ElicitationId::from_bits(1),
        call: call.clone(),
        server: "files".into(),
        message: "?".into(),
        schema: serde_json::json!({}),
        order: vec![],
        url: None,
        is_opened: false,
        asked_at: Timestamp::default(),
        answer: None,
        sampling: None,
    };
    world.submit(&Command::Elicit(asked.into())).unwrap();
    world.crash();
    let withdrawn = world.events().any(|event| {
        matches!(
            event,
            Event::ElicitationResolved {
                end: Some(ElicitationEnd::Withdrawn),
                ..
            }
        )
    });
    assert!(withdrawn);
    world.check_folds();
}
