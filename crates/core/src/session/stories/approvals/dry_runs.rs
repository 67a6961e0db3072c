//! Tests dry runs of waiting calls.

use sepal_policy::Approver;

use crate::domain::{Actor, CallId, Code, Digest, Role, UserId};
use crate::session::call::{Call, DryRun};
use crate::session::properties::dry_runs::{report, take};
use crate::session::properties::world::{World, approve, policy, reject, rule, say};
use crate::session::stories::answer_calls;
use crate::session::{Command, Effect, PolicyEffect, effects};

/// A world in which calls of these tools wait.
fn asked(tools: &[&str]) -> (World, Vec<CallId>) {
    let mut world = World::new();
    world.rules.policy = policy(
        tools
            .iter()
            .map(|tool| rule(&format!("asks {tool}"), tool, PolicyEffect::Ask))
            .collect(),
    );
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, tools);
    let calls = world.queue();
    (world, calls)
}

fn tried_by(call: &CallId, by: Actor, role: Role) -> Command {
    Command::DryRun {
        call: call.clone(),
        digest: None,
        by,
        role: Some(role),
    }
}

fn tried(call: &CallId) -> Command {
    tried_by(call, World::person(), Role::Member)
}

fn dropped(call: &CallId) -> Command {
    Command::DropDryRun {
        call: call.clone(),
        by: World::person(),
        role: Some(Role::Member),
    }
}

fn over(call: &CallId) -> Command {
    Command::DryRunEnded {
        call: call.clone(),
        report: Box::new(report("tried")),
    }
}

fn call(world: &World, id: &CallId) -> Call {
    let turn = world.state.control.turn.as_ref().unwrap();
    turn.call(id).unwrap().clone()
}

fn dry_run(world: &World, id: &CallId) -> Option<DryRun> {
    call(world, id).dry_run.map(|it| (*it).clone())
}

fn runs(world: &World, id: &CallId) -> bool {
    effects(&world.state.control).contains(&Effect::DryRun(id.clone()))
}

fn changes_nothing(world: &mut World, command: &Command) {
    let version = world.state.control.version;
    world.submit(command).unwrap();
    assert_eq!(world.state.control.version, version, "{command:?}");
}

#[test]
fn a_dry_run_leaves_the_call_waiting_and_its_result_is_kept() {
    let (mut world, calls) = asked(&["a"]);
    let seq = world.state.control.seq;
    world.submit(&tried(&calls[0])).unwrap();
    assert!(runs(&world, &calls[0]));
    // A repeat changes nothing.
    changes_nothing(&mut world, &tried(&calls[0]));
    world.submit(&over(&calls[0])).unwrap();
    assert!(!runs(&world, &calls[0]));
    let kept = dry_run(&world, &calls[0]).unwrap();
    assert_eq!(kept.by, World::person());
    assert_eq!(Some(&kept.digest), call(&world, &calls[0]).digest());
    assert_eq!(kept.report, Some(report("tried")));
    assert!(call(&world, &calls[0]).is_pending());
    assert_eq!(
        world.state.control.seq, seq,
        "nothing stands in the transcript"
    );
    // A second dry run, which is then dropped.
    world.submit(&tried(&calls[0])).unwrap();
    assert_eq!(dry_run(&world, &calls[0]).unwrap().report, None);
    world.submit(&over(&calls[0])).unwrap();
    world.submit(&dropped(&calls[0])).unwrap();
    assert_eq!(dry_run(&world, &calls[0]), None);
    changes_nothing(&mut world, &dropped(&calls[0]));
}

#[test]
fn a_result_that_nobody_waits_for_is_dropped() {
    let (mut world, calls) = asked(&["a", "b"]);
    world.submit(&tried(&calls[0])).unwrap();
    world.submit(&dropped(&calls[0])).unwrap();
    assert!(!runs(&world, &calls[0]));
    changes_nothing(&mut world, &over(&calls[0]));
    // A decision also ends the dry run.
    world.submit(&tried(&calls[0])).unwrap();
    world.submit(&reject(&calls[0], None)).unwrap();
    assert!(!runs(&world, &calls[0]));
    changes_nothing(&mut world, &over(&calls[0]));
    world.submit(&tried(&calls[1])).unwrap();
    world.submit(&over(&calls[1])).unwrap();
    world.submit(&approve(&calls[1])).unwrap();
    assert_eq!(dry_run(&world, &calls[1]), None);
    let refusal = world.submit(&tried(&calls[1])).unwrap_err();
    assert_eq!(refusal.code, Code::AlreadyDecided);
}

#[test]
fn a_session_has_two_at_a_time() {
    let (mut world, calls) = asked(&["a", "b", "c"]);
    world.submit(&tried(&calls[0])).unwrap();
    world.submit(&tried(&calls[1])).unwrap();
    let refusal = world.submit(&tried(&calls[2])).unwrap_err();
    assert_eq!(refusal.code, Code::TooManyRequests);
    world.submit(&over(&calls[0])).unwrap();
    world.submit(&tried(&calls[2])).unwrap();
    assert!(runs(&world, &calls[2]));
}

#[test]
fn only_what_was_shown_is_tried() {
    let (mut world, calls) = asked(&["a"]);
    let stale = Command::DryRun {
        call: calls[0].clone(),
        digest: Some(Digest::from_wire("stale")),
        by: World::person(),
        role: None,
    };
    let refusal = world.submit(&stale).unwrap_err();
    assert_eq!(refusal.code, Code::ChangedSinceShown);
    let nobody = world.submit(&tried(&CallId::new(7, 7))).unwrap_err();
    assert_eq!(nobody.code, Code::NoSuchCall);
}

/// Only people who may approve a call may start a dry run, because even a copy of the workspace is enough
/// to run a program.
#[test]
fn whoever_may_approve_may_try() {
    let mut careful = rule("careful", "a", PolicyEffect::Ask);
    careful.approvers.who = Approver::SomebodyElse;
    let mut world = World::new();
    world.rules.policy = policy(vec![careful]);
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, &["a"]);
    let call = world.queue()[0].clone();
    let bo = Actor {
        id: UserId::from_bits(8),
        name: "Bo".into(),
    };
    let refusal = world.submit(&tried(&call)).unwrap_err();
    assert_eq!(refusal.code, Code::NotAllowed);
    let refusal = world.submit(&tried_by(&call, bo.clone(), Role::Viewer));
    assert_eq!(refusal.unwrap_err().code, Code::NotAllowed);
    world
        .submit(&tried_by(&call, bo.clone(), Role::Member))
        .unwrap();
    assert_eq!(dry_run(&world, &call).unwrap().by, bo);
    let refusal = world.submit(&dropped(&call)).unwrap_err();
    assert_eq!(refusal.code, Code::NotAllowed);
}

/// A gateway that is killed during a dry run leaves nothing that looks like a result.
#[test]
fn a_dry_run_ends_with_its_gateway() {
    let (mut world, calls) = asked(&["a"]);
    world.submit(&tried(&calls[0])).unwrap();
    world.crash();
    assert_eq!(dry_run(&world, &calls[0]), None);
    assert!(call(&world, &calls[0]).is_pending());
    world.submit(&tried(&calls[0])).unwrap();
    world.submit(&over(&calls[0])).unwrap();
    world.crash();
    assert!(dry_run(&world, &calls[0]).is_some(), "a result stays");
}

/// An approval that names the result gives the call this result, and no other call runs before that.
#[test]
fn a_yes_may_take_the_result_and_nothing_runs_beside() {
    let (mut world, calls) = asked(&["a", "b", "c"]);
    let none = world.submit(&take(&world, &calls[1])).unwrap_err();
    assert_eq!(none.code, Code::ChangedSinceShown);
    world.submit(&tried(&calls[1])).unwrap();
    world.submit(&over(&calls[1])).unwrap();
    let taken = take(&world, &calls[1]);
    world.submit(&taken).unwrap();
    let result = call(&world, &calls[1]).taken_result;
    assert_eq!(result, Some(Digest::from_wire("tried")));
    // The same decision again changes nothing, and a plain approval is another decision.
    changes_nothing(&mut world, &taken);
    let plain = world.submit(&approve(&calls[1])).unwrap_err();
    assert_eq!(plain.code, Code::AlreadyDecided);
    world.submit(&approve(&calls[0])).unwrap();
    world.submit(&approve(&calls[2])).unwrap();
    assert_eq!(world.started(), [calls[1].clone()]);
    world.finish(&calls[1]);
    assert_eq!(
        world.started(),
        [&calls[1], &calls[0], &calls[2]].map(Clone::clone)
    );
    let ended = call(&world, &calls[1]);
    assert_eq!((ended.dry_run, ended.taken_result), (None, None));
}

#[test]
fn a_result_that_is_not_the_shown_one_is_not_taken() {
    let (mut world, calls) = asked(&["a", "b"]);
    world.submit(&tried(&calls[0])).unwrap();
    world.submit(&over(&calls[0])).unwrap();
    let first = take(&world, &calls[0]);
    // A newer dry run has another result.
    world.submit(&tried(&calls[0])).unwrap();
    let refusal = world.submit(&first).unwrap_err();
    assert_eq!(refusal.code, Code::ChangedSinceShown);
    let other = Command::DryRunEnded {
        call: calls[0].clone(),
        report: Box::new(report("other")),
    };
    world.submit(&other).unwrap();
    let refusal = world.submit(&first).unwrap_err();
    assert_eq!(
        (refusal.code, refusal.field),
        (Code::ChangedSinceShown, Some("dryRun"))
    );
    // After the approval is taken back, the call waits with its dry run as before.
    world.submit(&take(&world, &calls[0])).unwrap();
    world.submit(&reject(&calls[0], None)).unwrap();
    let again = call(&world, &calls[0]);
    assert!(again.is_pending() && again.taken_result.is_none());
    assert!(again.dry_run_result().is_some());
}

/// The first approver may expect the call to run, so only the last one can take a result.
#[test]
fn only_the_last_of_two_takes_the_result() {
    let mut careful = rule("careful", "a", PolicyEffect::Ask);
    careful.approvers.who = Approver::Two;
    let mut world = World::new();
    world.rules.policy = policy(vec![careful]);
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, &["a"]);
    let id = world.queue()[0].clone();
    world.submit(&tried(&id)).unwrap();
    world.submit(&over(&id)).unwrap();
    let refusal = world.submit(&take(&world, &id)).unwrap_err();
    assert_eq!(
        (refusal.code, refusal.field),
        (Code::NotAllowed, Some("dryRun"))
    );
    let mut bos = take(&world, &id);
    if let Command::Decide(decision) = &mut bos {
        decision.by = Actor {
            id: UserId::from_bits(8),
            name: "Bo".into(),
        };
    }
    world.submit(&approve(&id)).unwrap();
    world.submit(&bos).unwrap();
    assert!(call(&world, &id).taken_result.is_some());
    assert_eq!(world.started(), [id]);
}
