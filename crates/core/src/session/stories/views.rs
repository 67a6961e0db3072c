//! Tests calls that views request outside of turns.

use serde_json::json;

use super::answer_calls;
use crate::domain::{CallId, Code};
use crate::session::properties::world::{World, approve, policy, proposal, reject, rule, say};
use crate::session::{
    Activity, CallStatus, Command, Event, Outcome, Phase, PolicyEffect, Replay, ViewCall,
    ViewOrigin,
};

fn asks(view: &str, request: &str, tool: &str, n: u64) -> Command {
    Command::CallByView(Box::new(ViewCall {
        origin: ViewOrigin {
            call: CallId::from_wire("call_1_0"),
            tool: "chart".into(),
            view: view.into(),
            request: request.into(),
        },
        proposal: proposal(tool, json!({ "n": n })),
        by: World::person(),
    }))
}

/// A world whose first turn has ended.
fn quiet() -> World {
    let mut world = World::new();
    world.submit(&say("draw")).unwrap();
    world.answer("here", vec![]);
    world
}

fn view_calls(world: &World) -> Vec<CallId> {
    let calls = world.state.control.views.calls.iter();
    calls.map(|call| call.id.clone()).collect()
}

fn check_replay(world: &World) {
    let mut replay = Replay::default();
    for commit in &world.journal {
        assert_eq!(replay.step(commit), Ok(()));
    }
}

/// Asserts S0.52: card, start and end are those of any call, and the model never sees the call.
#[test]
fn a_view_asks_while_nothing_runs_and_the_model_is_not_asked() {
    let mut world = quiet();
    let entries = world.state.entries.clone();
    world.submit(&asks("v", "r1", "refresh", 1)).unwrap();
    let call = view_calls(&world)[0].clone();
    assert_eq!(world.asked(), [(call.clone(), 1, 1)]);
    assert_eq!(world.state.control.activity(), Activity::Waiting(1));
    assert!(world.state.control.is_unfinished());
    world.submit(&approve(&call)).unwrap();
    assert_eq!(world.started(), std::slice::from_ref(&call));
    assert_eq!(world.state.control.activity(), Activity::Running);
    world.finish(&call);
    assert_eq!(world.state.control.activity(), Activity::Idle);
    assert!(!world.state.control.is_unfinished());
    assert_eq!(world.state.entries, entries);
    assert!(world.state.control.turn.is_none());
    // The request and the decision are repeated because their answers were lost.
    let version = world.state.control.version;
    world.submit(&asks("v", "r1", "refresh", 1)).unwrap();
    world.submit(&approve(&call)).unwrap();
    assert_eq!(world.state.control.version, version);
    world.submit(&say("and now?")).unwrap();
    world.answer("fine", vec![]);
    world.check_folds();
    check_replay(&world);
}

#[test]
fn a_view_asks_while_the_model_answers_and_while_its_calls_wait() {
    let mut world = World::new();
    world.submit(&say("go")).unwrap();
    world.submit(&asks("v", "r1", "a", 1)).unwrap();
    let first = view_calls(&world)[0].clone();
    world.submit(&approve(&first)).unwrap();
    let turn = world.state.control.turn.as_ref().unwrap();
    assert_eq!(
        (turn.phase, turn.iteration.0),
        (Phase::Asking, 1),
        "the request goes on"
    );
    answer_calls(&mut world, &["b", "c"]);
    world.submit(&asks("v", "r2", "d", 1)).unwrap();
    let second = view_calls(&world)[1].clone();
    let of_turn = world.queue();
    assert_eq!(
        world.asked()[1..],
        [(of_turn[0].clone(), 1, 2), (second.clone(), 1, 1)]
    );
    world.submit(&approve(&second)).unwrap();
    assert_eq!(world.started(), [first.clone(), second.clone()], "alone");
    // The turn is stopped, and the view's call goes on.
    world
        .submit(&Command::Stop {
            turn: None,
            said_so_far: None,
            thought_so_far: None,
            spent: vec![],
        })
        .unwrap();
    assert!(world.state.control.turn.is_none());
    for call in [&first, &second] {
        let call = world.state.control.call(call).unwrap();
        assert!(
            matches!(
                call.status,
                CallStatus::Executing {
                    is_stopping: false,
                    ..
                }
            ),
            "{call:?}"
        );
    }
    world
        .submit(&Command::StopCall {
            call: second.clone(),
        })
        .unwrap();
    world.end(&second, Outcome::Cancelled);
    world.finish(&first);
    assert!(!world.state.control.is_unfinished());
    world.check_folds();
    check_replay(&world);
}

/// Asserts S0.52: rules decide, and a refused call is not asked for again by the same view.
#[test]
fn rules_decide_what_views_ask_for_and_a_refusal_is_not_asked_about_twice() {
    let mut world = quiet();
    world.rules.policy = policy(vec![
        rule("reads", "read_*", PolicyEffect::Allow),
        rule("never", "deny_*", PolicyEffect::Deny),
    ]);
    world.submit(&asks("v", "r1", "read_a", 1)).unwrap();
    assert_eq!(world.started(), view_calls(&world));
    world.submit(&asks("v", "r2", "deny_a", 1)).unwrap();
    assert!(world.asked().is_empty());
    let refused = world.submit(&asks("v", "r3", "deny_a", 1)).unwrap_err();
    assert_eq!(refused.code, Code::NotAllowed);

    world.submit(&asks("v", "r4", "run", 1)).unwrap();
    let call = view_calls(&world).pop().unwrap();
    world.submit(&reject(&call, None)).unwrap();
    let refused = world.submit(&asks("v", "r5", "run", 1)).unwrap_err();
    assert_eq!(refused.code, Code::NotAllowed);
    // A call with other arguments is another call, and a new showing of the view may ask again.
    world.submit(&asks("v", "r6", "run", 2)).unwrap();
    world.submit(&asks("w", "r7", "run", 1)).unwrap();
    // A refusal to a view does not affect the model's calls.
    world.submit(&say("go")).unwrap();
    world.answer("I will", vec![proposal("run", json!({ "n": 1 }))]);
    assert_eq!(world.asked().last().unwrap().0, world.queue()[0]);
    world.check_folds();
    check_replay(&world);
}

#[test]
fn a_view_has_few_calls_at_a_time_and_takes_what_waits_along_when_it_closes() {
    let mut world = quiet();
    for n in 0..4 {
        let asked = asks("v", &format!("r{n}"), "run", n);
        world.submit(&asked).unwrap();
    }
    let refused = world.submit(&asks("v", "r5", "run", 5)).unwrap_err();
    assert_eq!(refused.code, Code::TooManyRequests);
    world.submit(&asks("w", "s1", "run", 1)).unwrap();
    let calls = view_calls(&world);
    world
        .submit(&Command::CloseView {
            view: "v".into(),
            request: Some("r3".into()),
        })
        .unwrap();
    assert_eq!(world.state.control.views.open().count(), 4);
    world.submit(&approve(&calls[0])).unwrap();
    world
        .submit(&Command::CloseView {
            view: "v".into(),
            request: None,
        })
        .unwrap();
    let open = world.state.control.views.open();
    let open: Vec<CallId> = open.map(|call| call.id.clone()).collect();
    assert_eq!(
        open,
        [calls[0].clone(), calls[4].clone()],
        "what runs stays"
    );
    let late = world.submit(&approve(&calls[1])).unwrap_err();
    assert_eq!(late.code, Code::AlreadyDecided);
    world.check_folds();
    check_replay(&world);

    let mut world = quiet();
    for n in 0..60 {
        let asked = asks("v", &format!("r{n}"), "run", n);
        world.submit(&asked).unwrap();
        let call = view_calls(&world).pop().unwrap();
        world.submit(&reject(&call, None)).unwrap();
    }
    let refused = world.submit(&asks("v", "r60", "run", 60)).unwrap_err();
    assert_eq!(refused.code, Code::TooManyRequests);
    world.now += 61_000;
    world.submit(&asks("v", "r60", "run", 60)).unwrap();
}

#[test]
fn after_a_crash_what_waits_waits_and_what_ran_is_unknown() {
    let mut world = quiet();
    world.submit(&asks("v", "r1", "run", 1)).unwrap();
    world.submit(&asks("v", "r2", "run", 2)).unwrap();
    let calls = view_calls(&world);
    world.submit(&approve(&calls[0])).unwrap();
    world.crash();
    let is_unknown = |event: &Event| {
        matches!(event, Event::Ended { call, outcome: Outcome::Unknown { .. }, .. }
            if *call == calls[0])
    };
    assert!(world.events().any(is_unknown));
    world.submit(&approve(&calls[1])).unwrap();
    assert_eq!(world.started(), calls);
    world.finish(&calls[1]);
    world
        .submit(&Command::ResolveUnknown {
            call: calls[0].clone(),
            happened: true,
            by: World::person(),
        })
        .unwrap();
    assert!(
        world.state.control.notes.is_empty(),
        "the model never heard of it"
    );
    world.check_folds();
    check_replay(&world);
}

#[test]
fn a_fork_takes_no_open_call_of_a_view_along() {
    let mut world = quiet();
    world.submit(&asks("v", "r1", "run", 1)).unwrap();
    let call = view_calls(&world)[0].clone();
    world.submit(&approve(&call)).unwrap();
    let seq = world.state.control.seq;
    let fork = world.forked(seq);
    assert!(!fork.state.control.is_unfinished());
    fork.check_folds();
}
