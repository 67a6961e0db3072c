//! Tests calls that need more than the approval of their session's owner.

use sepal_policy::{Approver, Scope};
use serde_json::json;

use super::approve_edited;
use crate::domain::{Actor, CallId, Code, Role, UserId};
use crate::session::call::{Call, CallStatus};
use crate::session::properties::world::{World, policy, rule, say};
use crate::session::stories::answer_calls;
use crate::session::{Command, Decision, PolicyEffect, Rule};

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

fn bo() -> Actor {
    Actor {
        id: UserId::from_bits(8),
        name: "Bo".into(),
    }
}

fn decides(call: &CallId, approved: bool, (by, role): (Actor, Role)) -> Command {
    Command::Decide(Decision {
        call: call.clone(),
        approved,
        take_back: false,
        reason: None,
        edit: None,
        dry_run: None,
        digest: None,
        by,
        role: Some(role),
    })
}

fn owner() -> (Actor, Role) {
    (World::person(), Role::Member)
}

fn call(world: &World, id: &CallId) -> Call {
    let turn = world.state.control.turn.as_ref().unwrap();
    turn.call(id).unwrap().clone()
}

#[test]
fn the_owner_may_not_say_yes_where_somebody_else_must() {
    let (mut world, id) = asked(Approver::SomebodyElse);
    assert_eq!(call(&world, &id).wants.approvers, [Approver::SomebodyElse]);
    let refusal = world.submit(&decides(&id, true, owner())).unwrap_err();
    assert_eq!(refusal.code, Code::NotAllowed);
    assert!(refusal.message.contains("somebody else"), "{refusal}");
    let viewer = decides(&id, true, (bo(), Role::Viewer));
    assert_eq!(world.submit(&viewer).unwrap_err().code, Code::NotAllowed);
    world
        .submit(&decides(&id, true, (bo(), Role::Member)))
        .unwrap();
    assert_eq!(world.started().len(), 1);
    world.check_folds();
}

#[test]
fn a_higher_role_may_say_yes_and_a_lower_one_may_not() {
    let (mut world, id) = asked(Approver::Role("admin".into()));
    for who in [owner(), (bo(), Role::Member)] {
        let refusal = world.submit(&decides(&id, true, who)).unwrap_err();
        assert!(refusal.message.contains("`admin`"), "{refusal}");
    }
    world
        .submit(&decides(&id, true, (bo(), Role::Owner)))
        .unwrap();
    assert_eq!(world.started().len(), 1);
    world.check_folds();
}

#[test]
fn two_people_say_yes_one_after_the_other() {
    let (mut world, id) = asked(Approver::Two);
    world.submit(&decides(&id, true, owner())).unwrap();
    world.submit(&decides(&id, true, owner())).unwrap();
    assert!(call(&world, &id).is_pending(), "one person counts once");
    assert_eq!(call(&world, &id).consents.len(), 1);
    world.crash();
    assert_eq!(call(&world, &id).consents.len(), 1);
    world
        .submit(&decides(&id, true, (bo(), Role::Member)))
        .unwrap();
    assert_eq!(world.started().len(), 1);
    world.check_folds();
}

#[test]
fn the_first_yes_goes_with_its_giver_and_with_the_arguments() {
    let (mut world, id) = asked(Approver::Two);
    world.submit(&decides(&id, true, owner())).unwrap();
    let Command::Decide(mut back) = decides(&id, false, owner()) else {
        unreachable!()
    };
    back.take_back = true;
    world.submit(&Command::Decide(back)).unwrap();
    assert_eq!(call(&world, &id).consents, []);
    world
        .submit(&decides(&id, true, (bo(), Role::Member)))
        .unwrap();
    let edited = approve_edited(&world, &id, json!({ "n": 8 }));
    world.submit(&edited).unwrap();
    let now = call(&world, &id);
    assert!(now.is_pending(), "the first yes was to other arguments");
    assert_eq!(now.args, json!({ "n": 8 }));
    assert_eq!(now.consents.len(), 1);
    let blind = decides(&id, true, (bo(), Role::Member));
    let refusal = world.submit(&blind).unwrap_err();
    assert_eq!(refusal.code, Code::ChangedSinceShown);
    let Command::Decide(mut seen) = blind else {
        unreachable!()
    };
    seen.digest = now.digest().cloned();
    world.submit(&Command::Decide(seen)).unwrap();
    assert_eq!(world.started().len(), 1);
    world.check_folds();
}

#[test]
fn no_nearer_rule_stands_for_another_person() {
    let (mut world, id) = asked(Approver::SomebodyElse);
    let mut allow = rule("mine", "a", PolicyEffect::Allow);
    allow.scope = Scope::Session;
    let give = Command::GiveRule {
        rule: Box::new(allow),
        by: World::person(),
    };
    world.submit(&give).unwrap();
    assert!(call(&world, &id).is_pending());
    world.check_folds();
}

#[test]
fn the_owner_may_always_refuse() {
    let (mut world, id) = asked(Approver::Role("admin".into()));
    let stranger = decides(&id, false, (bo(), Role::Member));
    assert_eq!(world.submit(&stranger).unwrap_err().code, Code::NotAllowed);
    world.submit(&decides(&id, false, owner())).unwrap();
    assert!(world.started().is_empty());
    world.check_folds();
}

#[test]
fn rules_that_want_more_by_now_take_an_approval_back() {
    let mut world = World::new();
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, &["a", "b"]);
    let id = world.queue()[0].clone();
    world.submit(&decides(&id, true, owner())).unwrap();
    world.rules.policy = policy(vec![asks(Approver::Two)]);
    world.submit(&Command::ReviewCalls).unwrap();
    let now = call(&world, &id);
    assert!(matches!(now.status, CallStatus::Pending { .. }));
    assert_eq!(now.wants.approvers, [Approver::Two]);
    world.check_folds();
}

#[test]
fn a_yes_of_others_does_not_stand_for_the_owner_once_the_owner_is_asked() {
    let mut world = World::new();
    world.rules.policy = policy(vec![asks(Approver::Role("admin".into()))]);
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, &["a", "b"]);
    let id = world.queue()[0].clone();
    world
        .submit(&decides(&id, true, (bo(), Role::Admin)))
        .unwrap();
    world.rules.policy = policy(vec![asks(Approver::Owner)]);
    world.submit(&Command::ReviewCalls).unwrap();
    assert!(call(&world, &id).is_pending());
    world.check_folds();
}
