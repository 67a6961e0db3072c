//! Tests servers that ask the person during their calls.

mod sampling;

use std::sync::Arc;

use serde_json::json;

use super::answer_calls;
use crate::domain::{CallId, Code, ElicitationId, Timestamp};
use crate::session::properties::world::{World, policy, rule, say};
use crate::session::{
    Activity, Command, Elicitation, ElicitationAction, ElicitationAnswer, ElicitationEnd,
    ElicitationReply, Event, PolicyEffect, Replay, SamplingReply,
};

fn id() -> ElicitationId {
    ElicitationId::from_bits(1)
}

fn asked(call: &CallId) -> Command {
    Command::Elicit(Arc::new(Elicitation {
        id: id(),
        call: call.clone(),
        server: "s".into(),
        message: "Where?".into(),
        schema: json!({ "type": "object", "properties": { "a": { "type": "string" } } }),
        order: vec!["a".into()],
        url: None,
        is_opened: false,
        asked_at: Timestamp::default(),
        answer: None,
        sampling: None,
    }))
}

fn reply(action: ElicitationAction, invalid: Option<&str>) -> Command {
    let content = (action == ElicitationAction::Accept).then(|| json!({ "a": "b" }));
    Command::AnswerElicitation(ElicitationReply {
        id: id(),
        answer: ElicitationAnswer { action, content },
        by: World::person(),
        invalid: invalid.map(ToOwned::to_owned),
        sampling: SamplingReply::default(),
    })
}

/// A world with a running call whose server asks the person.
fn asking() -> (World, CallId) {
    let mut world = World::new();
    world.rules.policy = policy(vec![rule("allow", "*", PolicyEffect::Allow)]);
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, &["a"]);
    let call = world.queue()[0].clone();
    world.submit(&asked(&call)).unwrap();
    (world, call)
}

fn ends(world: &World) -> Vec<Option<ElicitationEnd>> {
    let ends = world.events().filter_map(|event| {
        if let Event::ElicitationResolved { end, .. } = event {
            Some(*end)
        } else {
            None
        }
    });
    ends.collect()
}

fn replays(world: &World) {
    let mut replay = Replay::default();
    for commit in &world.journal {
        assert_eq!(replay.step(commit), Ok(()));
    }
}

#[test]
fn a_form_waits_for_the_person_and_the_first_answer_counts() {
    let (mut world, _) = asking();
    let control = &world.state.control;
    assert_eq!(control.activity(), Activity::Waiting(1));
    assert!(control.waiting_since().is_some());
    assert_eq!(control.turn.as_ref().unwrap().alone_since(), None);
    let wrong = world.submit(&reply(ElicitationAction::Accept, Some("`a`: too short")));
    assert_eq!(wrong.unwrap_err().code, Code::InvalidArguments);
    world
        .submit(&reply(ElicitationAction::Accept, None))
        .unwrap();
    assert_eq!(world.state.control.activity(), Activity::Running);
    world
        .submit(&reply(ElicitationAction::Accept, None))
        .unwrap();
    let second = world.submit(&reply(ElicitationAction::Decline, None));
    assert_eq!(second.unwrap_err().code, Code::AlreadyDecided);
    assert_eq!(ends(&world), [None]);
    replays(&world);
}

#[test]
fn a_form_ends_with_its_call_its_stop_or_the_word_of_its_server() {
    let (mut world, call) = asking();
    world
        .submit(&Command::StopCall { call: call.clone() })
        .unwrap();
    assert_eq!(ends(&world), [Some(ElicitationEnd::Stopped)]);
    replays(&world);

    let (mut world, _) = asking();
    world
        .submit(&Command::WithdrawElicitation { id: id() })
        .unwrap();
    assert_eq!(ends(&world), [Some(ElicitationEnd::Withdrawn)]);
    replays(&world);

    let (mut world, _) = asking();
    world.crash();
    assert_eq!(ends(&world), [Some(ElicitationEnd::CallEnded)]);
    let late = world.submit(&reply(ElicitationAction::Accept, None));
    assert_eq!(late.unwrap_err().code, Code::NoSuchElicitation);
    replays(&world);
}

#[test]
fn only_a_call_that_runs_asks() {
    let mut world = World::new();
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, &["a"]);
    let call = world.queue()[0].clone();
    world.submit(&asked(&call)).unwrap();
    world
        .submit(&asked(&CallId::from_wire("call_1_9")))
        .unwrap();
    let is_asked = |event: &Event| matches!(event, Event::ElicitationAsked(_));
    assert!(!world.events().any(is_asked));
}
