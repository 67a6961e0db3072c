//! Tests arguments that an approver edits in a call of another person.

use sepal_policy::{Approver, Scope};
use serde_json::{Value, json};

use crate::domain::{Actor, CallId, Code, Digest, Role, UserId};
use crate::session::call::Call;
use crate::session::properties::dry_runs::report;
use crate::session::properties::world::{World, digests, policy, rule, say};
use crate::session::stories::answer_calls;
use crate::session::{
    Command, Decision, Edit, EditsByOthers, Event, PolicyEffect, Refusal, Rule, Verdict,
};

fn asks(who: Approver) -> Rule {
    let mut rule = rule("careful", "a", PolicyEffect::Ask);
    rule.approvers.who = who;
    rule
}

fn asked(who: Approver) -> (World, CallId) {
    let mut world = World::new();
    world.rules.policy = policy(vec![asks(who)]);
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, &["a"]);
    let call = world.queue()[0].clone();
    (world, call)
}

fn somebody(bits: u128, name: &str) -> Actor {
    Actor {
        id: UserId::from_bits(bits),
        name: name.into(),
    }
}

fn bo() -> Actor {
    somebody(8, "Bo")
}

fn call(world: &World, id: &CallId) -> Call {
    world.state.control.call(id).unwrap().as_ref().clone()
}

/// An approval of the shown arguments, or of edited ones.
fn yes(world: &World, id: &CallId, by: Actor, args: Option<Value>) -> Command {
    let shown = call(world, id).digest().cloned();
    let edit = args.map(|args| {
        let (digest, equal) = digests("a", &args);
        Edit {
            args,
            unedited: shown.clone(),
            digest,
            equal,
            invalid: None,
        }
    });
    Command::Decide(Decision {
        call: id.clone(),
        approved: true,
        take_back: false,
        reason: None,
        edit,
        dry_run: None,
        digest: shown,
        by,
        role: Some(Role::Admin),
    })
}

fn edits(world: &mut World, id: &CallId, by: Actor, args: Value) -> Result<(), Refusal> {
    world.submit(&yes(world, id, by, Some(args)))
}

fn approves(world: &mut World, id: &CallId, by: Actor) -> Result<(), Refusal> {
    world.submit(&yes(world, id, by, None))
}

/// The arguments in the approval of a call, with their author.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "other events are not looked at"
)]
fn told(world: &World) -> Option<(Value, Option<String>)> {
    let mut events = world.events();
    events.find_map(|event| match event {
        Event::Decided {
            verdict: Verdict::Approved,
            edited: Some(edited),
            edited_by,
            ..
        } => Some((
            edited.args.clone(),
            edited_by.as_ref().map(|by| by.name.clone()),
        )),
        _ => None,
    })
}

#[test]
fn what_another_person_writes_runs_once_the_owner_has_said_yes_to_it() {
    for who in [Approver::SomebodyElse, Approver::Role("admin".into())] {
        let (mut world, id) = asked(who.clone());
        edits(&mut world, &id, bo(), json!({ "n": 8 })).unwrap();
        assert!(call(&world, &id).is_pending(), "nobody asked the owner");
        assert_eq!(call(&world, &id).wants.approvers, [Approver::Owner, who]);
        world.crash();
        approves(&mut world, &id, World::person()).unwrap();
        assert_eq!(world.started().len(), 1);
        assert_eq!(told(&world), Some((json!({ "n": 8 }), Some("Bo".into()))));
        let now = call(&world, &id);
        assert_eq!(now.original_args, Some(json!({ "n": "a" })));
        world.check_folds();
    }
}

/// The decision that completes two approvals contains the edit, whoever gives the last one.
#[test]
fn the_decision_tells_the_change_whoever_made_it() {
    let (mut world, id) = asked(Approver::Two);
    edits(&mut world, &id, World::person(), json!({ "n": 7 })).unwrap();
    approves(&mut world, &id, bo()).unwrap();
    let owners = Some((json!({ "n": 7 }), Some("Ana".into())));
    assert_eq!(told(&world), owners);
    world.check_folds();

    // One person edits, takes the approval back, and approves the call as it is then.
    let mut world = World::new();
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, &["a", "b"]);
    let id = world.queue()[0].clone();
    edits(&mut world, &id, World::person(), json!({ "n": 7 })).unwrap();
    let Command::Decide(back) = yes(&world, &id, World::person(), None) else {
        unreachable!()
    };
    let back = Decision {
        approved: false,
        take_back: true,
        ..back
    };
    world.submit(&Command::Decide(back)).unwrap();
    let known = world.journal.len();
    let all = Command::DecideAll {
        call_ids: Some(world.queue()),
        approved: true,
        reason: None,
        by: World::person(),
        role: None,
    };
    world.submit(&all).unwrap();
    world.journal.drain(..known);
    assert_eq!(told(&world), Some((json!({ "n": 7 }), None)));
}

/// Arguments that the owner wrote lose the owner's approval when it is taken back.
#[test]
fn a_yes_that_the_owner_took_back_lets_nothing_run_that_they_wrote() {
    let (mut world, id) = asked(Approver::Two);
    edits(&mut world, &id, World::person(), json!({ "n": 7 })).unwrap();
    let Command::Decide(back) = yes(&world, &id, World::person(), None) else {
        unreachable!()
    };
    let back = Decision {
        approved: false,
        take_back: true,
        ..back
    };
    world.submit(&Command::Decide(back)).unwrap();
    for other in [bo(), somebody(9, "Cy")] {
        approves(&mut world, &id, other).unwrap();
    }
    assert!(call(&world, &id).is_pending(), "two others said yes");
    approves(&mut world, &id, World::person()).unwrap();
    assert_eq!(world.started().len(), 1);
    world.check_folds();
}

/// The owner may edit a call that somebody else has to approve.
#[test]
fn the_owner_may_change_what_somebody_else_must_approve() {
    let (mut world, id) = asked(Approver::SomebodyElse);
    edits(&mut world, &id, World::person(), json!({ "n": 7 })).unwrap();
    assert!(call(&world, &id).is_pending());
    approves(&mut world, &id, bo()).unwrap();
    assert_eq!(world.started().len(), 1);
    world.check_folds();
}

#[test]
fn no_rule_and_no_change_of_rules_stands_for_the_owner() {
    let (mut world, id) = asked(Approver::SomebodyElse);
    edits(&mut world, &id, bo(), json!({ "n": 8 })).unwrap();
    for scope in [Scope::Session, Scope::Tenant] {
        let mut allow = rule("all of it", "*", PolicyEffect::Allow);
        allow.scope = scope;
        world.rules.policy = policy(vec![allow]);
        world.submit(&Command::ReviewCalls).unwrap();
        assert!(
            call(&world, &id).is_pending(),
            "a rule allows what was proposed"
        );
    }
    world.rules.policy = policy(vec![]);
    world.submit(&Command::ReviewCalls).unwrap();
    let refused = approves(&mut world, &id, bo()).unwrap_err();
    assert!(refused.message.contains("the owner"), "{refused}");
    approves(&mut world, &id, World::person()).unwrap();
    assert_eq!(world.started().len(), 1);
    world.check_folds();
}

/// The editor has taken their approval back, but the edit is still there.
#[test]
fn a_yes_to_several_calls_is_none_to_arguments_that_others_wrote() {
    let (mut world, id) = asked(Approver::SomebodyElse);
    edits(&mut world, &id, bo(), json!({ "n": 8 })).unwrap();
    let Command::Decide(back) = yes(&world, &id, bo(), None) else {
        unreachable!()
    };
    let back = Decision {
        approved: false,
        take_back: true,
        ..back
    };
    world.submit(&Command::Decide(back)).unwrap();
    world.rules.policy = policy(vec![]);
    world.submit(&Command::ReviewCalls).unwrap();
    let all = Command::DecideAll {
        call_ids: Some(vec![id.clone()]),
        approved: true,
        reason: None,
        by: World::person(),
        role: Some(Role::Member),
    };
    let refused = world.submit(&all).unwrap_err();
    assert_eq!(refused.code, Code::ChangedSinceShown);
    approves(&mut world, &id, World::person()).unwrap();
    assert_eq!(world.started().len(), 1);
    world.check_folds();
}

#[test]
fn arguments_that_are_as_they_were_proposed_again_need_no_owner() {
    let (mut world, id) = asked(Approver::SomebodyElse);
    edits(&mut world, &id, bo(), json!({ "n": 8 })).unwrap();
    let cy = somebody(9, "Cy");
    edits(&mut world, &id, cy, json!({ "n": "a" })).unwrap();
    assert_eq!(world.started().len(), 1);
    assert_eq!(call(&world, &id).args, json!({ "n": "a" }));
    world.check_folds();
}

#[test]
fn changes_by_others_are_refused_where_the_settings_say_so() {
    let (mut world, id) = asked(Approver::Two);
    world.rules.edits_by_others = EditsByOthers::Refused;
    let refused = edits(&mut world, &id, bo(), json!({ "n": 8 })).unwrap_err();
    assert_eq!(
        (refused.code, refused.field),
        (Code::NotAllowed, Some("args"))
    );
    assert!(refused.message.contains("edits_by_others"), "{refused}");
    edits(&mut world, &id, World::person(), json!({ "n": 8 })).unwrap();
    approves(&mut world, &id, bo()).unwrap();
    assert_eq!(world.started().len(), 1);
    world.check_folds();
}

/// A dry run has a copy of the owner's files, and every approver sees its result.
#[test]
fn what_others_wrote_is_not_tried_before_the_owner_has_said_yes_to_it() {
    let (mut world, id) = asked(Approver::SomebodyElse);
    let tried_by = |by: Actor| Command::DryRun {
        call: id.clone(),
        digest: None,
        by,
        role: Some(Role::Admin),
    };
    world.submit(&tried_by(bo())).unwrap();
    let over = Command::DryRunEnded {
        call: id.clone(),
        report: Box::new(report("tried")),
    };
    world.submit(&over).unwrap();
    edits(&mut world, &id, bo(), json!({ "n": 8 })).unwrap();
    assert_eq!(call(&world, &id).dry_run, None, "it tried something else");
    let refused = world.submit(&tried_by(bo())).unwrap_err();
    assert_eq!(refused.code, Code::NotAllowed, "{refused}");
    world.submit(&tried_by(World::person())).unwrap();
    let stale = yes(&world, &id, bo(), None);
    let Command::Decide(mut stale) = stale else {
        unreachable!()
    };
    stale.dry_run = Some(Digest::from_wire("tried"));
    let refused = world.submit(&Command::Decide(stale)).unwrap_err();
    assert_eq!(refused.code, Code::ChangedSinceShown, "{refused}");
    world.check_folds();
}

/// Journals of earlier releases do not record the author of an edit.
#[test]
fn a_decision_of_an_earlier_release_still_folds() {
    let (mut world, id) = asked(Approver::Two);
    edits(&mut world, &id, World::person(), json!({ "n": 7 })).unwrap();
    approves(&mut world, &id, bo()).unwrap();
    let mut journal = serde_json::to_value(&world.journal).unwrap();
    let commits = journal.as_array_mut().unwrap();
    for event in commits
        .iter_mut()
        .flat_map(|commit| commit["events"].as_array_mut().unwrap())
    {
        if event["type"] == "decided" {
            event["edited"] = Value::Null;
            event.as_object_mut().unwrap().remove("edited_by");
        }
    }
    world.journal = serde_json::from_value(journal).unwrap();
    assert_eq!(world.folded(), world.state, "the change was told before");
}
