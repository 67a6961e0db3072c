//! Tests approvals that come late, twice, or from another tab.

use serde_json::json;

mod approvers;
mod dry_runs;
mod edits;
mod expiry;
mod gestures;
mod review;
mod rules;

use super::answer_calls;
use crate::domain::{CallId, Code, Digest};
use crate::session::call::{CallStatus, Decider};
use crate::session::properties::world::{World, approve, digests, policy, reject, rule, say};
use crate::session::{Command, Decision, Edit, PolicyEffect, Rule};

#[test]
fn a_tool_that_was_denied_meanwhile_does_not_run_by_any_approval() {
    let mut world = World::new();
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, &["a", "b"]);
    let calls = world.queue();
    world.rules.policy = policy(vec![rule("no more", "a", PolicyEffect::Deny)]);
    let all = Command::DecideAll {
        call_ids: Some(calls.clone()),
        approved: true,
        reason: None,
        by: World::person(),
        role: None,
    };
    for command in [approve(&calls[0]), all] {
        let refusal = world.submit(&command).unwrap_err();
        assert_eq!(refusal.code, Code::NotAllowed, "{}", refusal.message);
        assert!(refusal.message.contains("no more"), "{}", refusal.message);
    }
    assert!(world.started().is_empty(), "nothing of it was decided");
    world.submit(&reject(&calls[0], None)).unwrap();
    world.submit(&approve(&calls[1])).unwrap();
    assert_eq!(world.started(), vec![calls[1].clone()]);
}

/// A world with three calls; the rule for `a` is set afterwards.
fn three_calls_then(effect: PolicyEffect, before: impl FnOnce(&mut World)) -> (World, Vec<CallId>) {
    let mut world = World::new();
    world.submit(&say("go")).unwrap();
    before(&mut world);
    answer_calls(&mut world, &["a", "b", "c"]);
    let calls = world.queue();
    world.rules.policy = policy(vec![rule_for_a(effect)]);
    (world, calls)
}

fn rule_for_a(effect: PolicyEffect) -> Rule {
    rule("by now", "a", effect)
}

fn status(world: &World, call: &CallId) -> CallStatus {
    let turn = world.state.control.turn.as_ref().unwrap();
    turn.call(call).unwrap().status.clone()
}

#[test]
fn an_approved_call_does_not_start_with_its_siblings_once_its_tool_is_denied() {
    let (mut world, calls) = three_calls_then(PolicyEffect::Ask, |_| {});
    world.submit(&approve(&calls[0])).unwrap();
    world.rules.policy = policy(vec![rule_for_a(PolicyEffect::Deny)]);
    world.submit(&approve(&calls[1])).unwrap();
    world.submit(&approve(&calls[2])).unwrap();
    assert_eq!(world.started(), calls[1..].to_vec());
    let CallStatus::Ended { status, by } = status(&world, &calls[0]) else {
        panic!("it has its result");
    };
    let name = "by now".to_owned();
    assert_eq!(
        (status.as_str(), by),
        (
            "rejected",
            Some(Decider::Rule {
                name: name.clone(),
                id: Some(name)
            })
        )
    );
    world.check_folds();
}

#[test]
fn calls_of_a_denied_tool_are_decided_as_soon_as_the_rule_is_there() {
    let (mut world, calls) = three_calls_then(PolicyEffect::Deny, |_| {});
    world.submit(&Command::ReviewCalls).unwrap();
    assert!(matches!(
        status(&world, &calls[0]),
        CallStatus::Ended { .. }
    ));
    let asked = CallStatus::Pending { asked: true };
    assert_eq!(status(&world, &calls[1]), asked, "the next card goes out");
    let before = world.journal.len();
    world.submit(&Command::ReviewCalls).unwrap();
    assert_eq!(
        world.journal.len(),
        before,
        "there is nothing more to decide"
    );
    let all = rule("by now", "*", PolicyEffect::Deny);
    world.rules.policy = policy(vec![all]);
    world.submit(&Command::ReviewCalls).unwrap();
    assert!(world.queue().is_empty(), "the model is asked again");
    world.check_folds();
}

#[test]
fn what_a_rule_allowed_is_asked_once_the_rule_asks() {
    let (mut world, calls) = three_calls_then(PolicyEffect::Ask, |world| {
        world.rules.policy = policy(vec![rule_for_a(PolicyEffect::Allow)]);
    });
    assert!(matches!(
        status(&world, &calls[0]),
        CallStatus::Approved { .. }
    ));
    world.submit(&approve(&calls[1])).unwrap();
    world.submit(&approve(&calls[2])).unwrap();
    assert!(world.started().is_empty());
    assert_eq!(
        status(&world, &calls[0]),
        CallStatus::Pending { asked: true }
    );
    world.submit(&approve(&calls[0])).unwrap();
    assert_eq!(world.started().len(), 3);
}

#[test]
fn changed_arguments_never_bind_to_another_tool_than_the_one_shown() {
    let mut world = World::new();
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, &["a", "b"]);
    let call = world.queue()[0].clone();
    let edit = approve_edited(&world, &call, json!({"n": 7}));
    for unedited in [None, Some(Digest::from_wire("another tool"))] {
        let Command::Decide(decision) = edit.clone() else {
            panic!("it is a decision");
        };
        let edit = decision.edit.map(|edit| Edit { unedited, ..edit });
        for digest in [decision.digest, None] {
            let decision = Command::Decide(Decision {
                edit: edit.clone(),
                dry_run: None,
                digest,
                call: call.clone(),
                approved: true,
                take_back: false,
                reason: None,
                by: World::person(),
                role: None,
            });
            let refusal = world.submit(&decision).unwrap_err();
            assert_eq!(refusal.code, Code::ChangedSinceShown);
        }
    }
    world.submit(&edit).unwrap();
}

#[test]
fn an_approval_of_what_is_no_longer_so_is_no_repeat() {
    let mut world = World::new();
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, &["a", "b"]);
    let call = world.queue()[0].clone();
    world.submit(&approve(&call)).unwrap();
    let digest = world.digest_of(&call);
    world.submit(&shown(&approve(&call), &digest)).unwrap();
    let other = shown(&approve(&call), "what another tab showed");
    let refusal = world.submit(&other).unwrap_err();
    assert_eq!(refusal.code, Code::ChangedSinceShown);
}

#[test]
fn taking_back_twice_rejects_nothing() {
    let mut world = World::new();
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, &["a", "b"]);
    let call = world.queue()[0].clone();
    world.submit(&approve(&call)).unwrap();
    let Command::Decide(decision) = reject(&call, None) else {
        panic!("a rejection is a decision");
    };
    let take_back = Command::Decide(Decision {
        take_back: true,
        ..decision
    });
    for _ in 0..2 {
        world.submit(&take_back).unwrap();
        let waiting = world.state.control.turn.as_ref().unwrap().call(&call);
        assert!(waiting.unwrap().is_pending());
    }
}

/// An approval with edited arguments and the digest of the current card.
fn approve_edited(world: &World, call: &CallId, args: serde_json::Value) -> Command {
    let (digest, equal) = digests("a", &args);
    Command::Decide(Decision {
        call: call.clone(),
        approved: true,
        take_back: false,
        reason: None,
        edit: Some(Edit {
            args,
            unedited: Some(Digest::from_wire(world.digest_of(call))),
            digest,
            equal,
            invalid: None,
        }),
        dry_run: None,
        digest: Some(Digest::from_wire(world.digest_of(call))),
        by: World::person(),
        role: None,
    })
}

/// The same decision with another card's digest.
fn shown(command: &Command, digest: &str) -> Command {
    let Command::Decide(decision) = command else {
        panic!("it is a decision");
    };
    Command::Decide(Decision {
        dry_run: None,
        digest: Some(Digest::from_wire(digest)),
        ..decision.clone()
    })
}

#[test]
fn a_decision_sent_again_is_a_repeat_after_its_queue_is_gone() {
    let mut world = World::new();
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, &["a", "b", "a"]);
    let calls = world.queue();
    let digest = world.digest_of(&calls[1]);
    let edited = approve_edited(&world, &calls[0], json!({"n": 7}));
    let other_edit = approve_edited(&world, &calls[0], json!({"n": 8}));
    let all = |approved| Command::DecideAll {
        call_ids: Some(calls.clone()),
        approved,
        reason: None,
        by: World::person(),
        role: None,
    };
    world.submit(&edited).unwrap();
    world.submit(&approve(&calls[1])).unwrap();
    world.submit(&reject(&calls[2], None)).unwrap();
    for call in &calls[..2] {
        world.finish(call);
    }
    // First the model is asked again, then the turn ends, then another turn has calls.
    for step in 0..3 {
        let before = world.journal.len();
        let code = |world: &mut World, command: &Command| world.submit(command).unwrap_err().code;
        assert!(!world.queue().contains(&calls[0]), "the queue is gone");
        world.submit(&edited).unwrap();
        world.submit(&approve(&calls[1])).unwrap();
        world.submit(&shown(&approve(&calls[1]), &digest)).unwrap();
        world.submit(&reject(&calls[2], None)).unwrap();
        world.submit(&all(true)).unwrap();
        world.submit(&all(false)).unwrap();
        let stale = shown(&approve(&calls[1]), "another");
        assert_eq!(code(&mut world, &stale), Code::ChangedSinceShown);
        // The call ran with edited arguments; the first card shows something else.
        let unchanged = shown(&approve(&calls[0]), "the first card");
        assert_eq!(code(&mut world, &unchanged), Code::ChangedSinceShown);
        for otherwise in [&other_edit, &reject(&calls[1], None), &approve(&calls[2])] {
            assert_eq!(code(&mut world, otherwise), Code::AlreadyDecided);
        }
        let nobody = CallId::from_wire("call_1_1");
        assert_eq!(code(&mut world, &approve(&nobody)), Code::NoSuchCall);
        assert_eq!(world.journal.len(), before, "nothing was decided anew");
        match step {
            0 => world.answer("done", vec![]),
            1 => {
                world.submit(&say("and again")).unwrap();
                answer_calls(&mut world, &["b"]);
            }
            _ => {}
        }
    }
    world.check_folds();
}

#[test]
fn only_the_newest_decisions_are_kept_for_repeats() {
    let mut world = World::new();
    world.submit(&say("go")).unwrap();
    world.rules.max_iterations = 64;
    world.rules.max_same_calls = None;
    let mut decided = Vec::new();
    for _ in 0..33 {
        answer_calls(&mut world, &["a", "b"]);
        for call in world.queue() {
            world.submit(&approve(&call)).unwrap();
            decided.push(call);
        }
        for call in world.queue() {
            world.finish(&call);
        }
    }
    let refusal = world.submit(&approve(&decided[1])).unwrap_err();
    assert_eq!(refusal.code, Code::NoSuchCall);
    world.submit(&approve(&decided[2])).unwrap();
    assert_eq!(world.state.control.past.len(), 64);
}
