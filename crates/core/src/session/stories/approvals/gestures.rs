//! Tests calls that need a fresh gesture with the approval.

use sepal_policy::Scope;
use serde_json::{Value, json};

use crate::domain::{CallId, Code, Digest, Gesture, GestureCall, GestureMeans, SessionId};
use crate::session::properties::world::{World, approve, policy, rule, say};
use crate::session::stories::answer_calls;
use crate::session::stories::approvals::approve_edited;
use crate::session::{Command, Event, PolicyEffect, Rule};

fn wants_gesture(tool: &str) -> Rule {
    let mut rule = rule("sign", tool, PolicyEffect::Ask);
    rule.approvers.fresh_gesture = true;
    rule
}

fn asked(tools: &[&str]) -> (World, Vec<CallId>) {
    let mut world = World::new();
    world.rules.policy = policy(vec![wants_gesture("a")]);
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, tools);
    let calls = world.queue();
    (world, calls)
}

fn shown(world: &World, call: &CallId, edited: Option<&Value>) -> GestureCall {
    GestureCall {
        session: SessionId::from_bits(1),
        call: call.clone(),
        digest: Digest::from_wire(world.digest_of(call)),
        edited: edited.map(Digest::of_json),
    }
}

fn with(calls: Vec<GestureCall>, decision: Command) -> Command {
    Command::WithGesture {
        gesture: Gesture {
            means: GestureMeans::Passkey,
            calls,
        },
        decision: Box::new(decision),
    }
}

fn all(calls: &[CallId]) -> Command {
    Command::DecideAll {
        call_ids: Some(calls.to_vec()),
        approved: true,
        reason: None,
        by: World::person(),
        role: None,
    }
}

fn refused(world: &mut World, command: &Command) {
    let refusal = world.submit(command).unwrap_err();
    assert_eq!(refusal.code, Code::GestureRequired, "{refusal}");
}

#[test]
fn a_yes_without_a_gesture_or_with_one_for_something_else_starts_nothing() {
    let (mut world, calls) = asked(&["a", "a"]);
    let other = shown(&world, &calls[1], None);
    let mut stale = shown(&world, &calls[0], None);
    stale.digest = Digest::from_wire("what another card showed");
    let changed = shown(&world, &calls[0], Some(&json!({ "n": 7 })));
    refused(&mut world, &approve(&calls[0]));
    for wrong in [other, stale, changed] {
        refused(&mut world, &with(vec![wrong], approve(&calls[0])));
    }
    let right = vec![shown(&world, &calls[0], None)];
    world.submit(&with(right, approve(&calls[0]))).unwrap();
    refused(&mut world, &approve(&calls[1]));
    let right = vec![shown(&world, &calls[1], None)];
    world.submit(&with(right, approve(&calls[1]))).unwrap();
    assert_eq!(world.started().len(), 2);
    let by_gesture = world.events().filter(|event| {
        let passkey = Some(GestureMeans::Passkey);
        matches!(event, Event::Decided { gesture, .. } if *gesture == passkey)
    });
    assert_eq!(by_gesture.count(), 2);
    world.check_folds();
}

#[test]
fn changed_arguments_need_a_gesture_for_them() {
    let (mut world, calls) = asked(&["a"]);
    let args = json!({ "n": 7 });
    let edit = approve_edited(&world, &calls[0], args.clone());
    for wrong in [
        shown(&world, &calls[0], None),
        shown(&world, &calls[0], Some(&json!({ "n": 8 }))),
    ] {
        refused(&mut world, &with(vec![wrong], edit.clone()));
    }
    let right = shown(&world, &calls[0], Some(&args));
    world.submit(&with(vec![right], edit)).unwrap();
    assert_eq!(world.started().len(), 1);
}

#[test]
fn one_gesture_approves_the_whole_set_and_no_more() {
    let (mut world, calls) = asked(&["a", "b", "a"]);
    let first = shown(&world, &calls[0], None);
    refused(&mut world, &all(&calls));
    refused(&mut world, &with(vec![first.clone()], all(&calls)));
    assert!(world.started().is_empty(), "all of them, or none");
    let both = vec![first, shown(&world, &calls[2], None)];
    world.submit(&with(both, all(&calls))).unwrap();
    assert_eq!(world.started().len(), 3, "the second one wants none");
}

#[test]
fn a_nearer_rule_does_not_lift_it_and_a_newer_one_takes_the_yes_back() {
    let (mut world, calls) = asked(&["a", "b"]);
    let mut nearer = rule("nearer", "*", PolicyEffect::Allow);
    nearer.scope = Scope::Session;
    let give = Command::GiveRule {
        rule: Box::new(nearer),
        by: World::person(),
    };
    world.submit(&give).unwrap();
    assert!(world.started().is_empty(), "it waits for a gesture");
    refused(&mut world, &approve(&calls[0]));

    let (mut world, calls) = asked(&["b", "a"]);
    world.submit(&approve(&calls[0])).unwrap();
    world.rules.policy = policy(vec![wants_gesture("*")]);
    world.submit(&Command::ReviewCalls).unwrap();
    let right = vec![shown(&world, &calls[1], None)];
    world.submit(&with(right, approve(&calls[1]))).unwrap();
    assert!(world.started().is_empty(), "the first yes came without one");
    let right = vec![shown(&world, &calls[0], None)];
    world.submit(&with(right, approve(&calls[0]))).unwrap();
    assert_eq!(world.started().len(), 2);
}
