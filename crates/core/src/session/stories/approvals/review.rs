//! Tests calls that a model reviews.

use sepal_policy::Approver;
use serde_json::json;

use super::approve_edited;
use crate::domain::{CallId, MicroUsd, TokenUsage};
use crate::session::call::{CallStatus, Decider};
use crate::session::properties::world::{World, approve, policy, reject, rule, say};
use crate::session::stories::answer_calls;
use crate::session::{
    CallReview, Command, Effect, Event, PolicyEffect, Review, ReviewVerdict, Rule, Spent, effects,
};

fn opening(tool: &str) -> Rule {
    Rule {
        reviewed: true,
        ..rule("opened", tool, PolicyEffect::Ask)
    }
}

/// A world in which calls of these tools wait under these rules.
fn asked(rules: Vec<Rule>, tools: &[&str]) -> (World, Vec<CallId>) {
    let mut world = World::new();
    world.rules.has_reviewer = true;
    world.rules.policy = policy(rules);
    world.tell(&say("go")).unwrap();
    answer_calls(&mut world, tools);
    let calls = world.queue();
    (world, calls)
}

fn said(call: &CallId, verdict: ReviewVerdict) -> Command {
    Command::Reviewed {
        call: call.clone(),
        review: Review {
            verdict,
            model: Some("small".into()),
            reason: "because".into(),
            cost: Some(MicroUsd(7)),
        },
        spent: vec![Spent {
            usage: TokenUsage {
                input_tokens: 10,
                output_tokens: 5,
                ..TokenUsage::default()
            },
            cost: Some(MicroUsd(7)),
            request: None,
        }],
    }
}

fn under_review(world: &World) -> Option<CallId> {
    effects(&world.state.control)
        .into_iter()
        .find_map(|effect| match effect {
            Effect::Review(call) => Some(call),
            Effect::AskModel(_)
            | Effect::RunCall { .. }
            | Effect::MakeTitle
            | Effect::DryRun(_)
            | Effect::Sample(_)
            | Effect::CopyWorkspace => None,
        })
}

fn is_pending(world: &World, call: &CallId) -> bool {
    let turn = world.state.control.turn.as_ref().unwrap();
    turn.call(call).unwrap().is_pending()
}

fn allowed(call: &CallId) -> Command {
    said(call, ReviewVerdict::Allowed)
}

fn refused(call: &CallId) -> Command {
    said(call, ReviewVerdict::Refused)
}

#[test]
fn a_yes_of_the_model_approves_what_was_opened_and_the_row_names_it() {
    let (mut world, calls) = asked(vec![opening("a")], &["a", "b"]);
    assert_eq!(under_review(&world), Some(calls[0].clone()));
    assert_eq!(world.asked().len(), 1, "the person is asked all the same");
    world.tell(&allowed(&calls[0])).unwrap();
    let turn = world.state.control.turn.as_ref().unwrap();
    let CallStatus::Approved { by, .. } = &turn.call(&calls[0]).unwrap().status else {
        panic!("the model said yes");
    };
    assert_eq!(
        *by,
        Decider::Reviewer {
            model: "small".into(),
            reason: "because".into(),
            cost: Some(MicroUsd(7)),
        }
    );
    assert_eq!(under_review(&world), None, "nobody opened the other one");
    assert_eq!(world.state.control.usage.totals.cost, MicroUsd(7));
    world.tell(&approve(&calls[1])).unwrap();
    assert_eq!(world.started().len(), 2);
    world.check_folds();
}

#[test]
fn without_a_reviewer_or_a_rule_that_opens_nobody_but_the_person_is_asked() {
    for (has_reviewer, rules) in [
        (false, vec![opening("a")]),
        (true, vec![]),
        (true, vec![rule("asks", "a", PolicyEffect::Ask)]),
        (
            true,
            vec![opening("a"), rule("too", "*", PolicyEffect::Ask)],
        ),
        (
            true,
            vec![opening("a"), rule("no", "a", PolicyEffect::Deny)],
        ),
        (true, vec![opening("b")]),
    ] {
        let mut world = World::new();
        world.rules.has_reviewer = has_reviewer;
        world.rules.policy = policy(rules);
        world.tell(&say("go")).unwrap();
        answer_calls(&mut world, &["a"]);
        assert_eq!(under_review(&world), None);
        world.check_folds();
    }
}

#[test]
fn what_wants_more_than_the_owner_is_never_reviewed() {
    let wants = |change: &dyn Fn(&mut Rule)| {
        let mut wants = rule("wants", "a", PolicyEffect::Ask);
        change(&mut wants);
        let (world, _) = asked(vec![opening("a"), wants], &["a"]);
        assert_eq!(under_review(&world), None);
    };
    wants(&|rule| rule.approvers.who = Approver::Two);
    wants(&|rule| rule.approvers.who = Approver::SomebodyElse);
    wants(&|rule| rule.approvers.fresh_gesture = true);
}

#[test]
fn a_refusal_or_a_doubt_leaves_the_call_to_the_person_and_says_why() {
    for verdict in [
        ReviewVerdict::Refused,
        ReviewVerdict::Doubted,
        ReviewVerdict::Failed,
    ] {
        let (mut world, calls) = asked(vec![opening("a")], &["a"]);
        world.tell(&said(&calls[0], verdict)).unwrap();
        assert!(is_pending(&world, &calls[0]));
        let turn = world.state.control.turn.as_ref().unwrap();
        let Some(CallReview::Over(review)) = &turn.call(&calls[0]).unwrap().review else {
            panic!("the card says what the model said");
        };
        assert_eq!(
            (review.verdict, review.reason.as_str()),
            (verdict, "because")
        );
        assert_eq!(under_review(&world), None, "it is asked once");
        world.tell(&approve(&calls[0])).unwrap();
        assert_eq!(world.started().len(), 1);
        world.check_folds();
    }
}

#[test]
fn the_person_is_faster_and_a_late_yes_or_no_changes_nothing_but_the_cost() {
    for late in [allowed, refused] {
        let (mut world, calls) = asked(vec![opening("a")], &["a", "b"]);
        world.tell(&reject(&calls[0], Some("no"))).unwrap();
        assert_eq!(
            under_review(&world),
            Some(calls[0].clone()),
            "it is paid for"
        );
        world.tell(&late(&calls[0])).unwrap();
        let turn = world.state.control.turn.as_ref().unwrap();
        assert!(turn.call(&calls[0]).unwrap().is_ended());
        assert_eq!(world.state.control.reviewing.refusals, 0);
        assert_eq!(world.state.control.usage.totals.cost, MicroUsd(7));
        assert!(world.started().is_empty());
        world.check_folds();
    }
}

#[test]
fn rules_that_changed_meanwhile_win_over_a_yes() {
    let closed: [Vec<Rule>; 3] = [
        vec![],
        vec![opening("a"), rule("no", "a", PolicyEffect::Deny)],
        vec![opening("a"), rule("too", "a", PolicyEffect::Ask)],
    ];
    for rules in closed {
        let (mut world, calls) = asked(vec![opening("a")], &["a"]);
        world.rules.policy = policy(rules);
        world.tell(&allowed(&calls[0])).unwrap();
        assert!(world.started().is_empty());
        assert!(is_pending(&world, &calls[0]), "it waits for the person");
        world.check_folds();
    }
}

#[test]
fn an_approval_of_the_model_is_asked_again_once_the_call_is_not_open_any_more() {
    let (mut world, calls) = asked(vec![opening("a")], &["a", "b"]);
    world.tell(&allowed(&calls[0])).unwrap();
    world.rules.policy = policy(vec![rule("asks", "*", PolicyEffect::Ask)]);
    world.tell(&approve(&calls[1])).unwrap();
    assert!(is_pending(&world, &calls[0]));
    assert!(world.started().is_empty());
    world.check_folds();
}

#[test]
fn what_the_person_changed_is_theirs() {
    let (mut world, calls) = asked(vec![opening("a")], &["a", "b"]);
    let edited = approve_edited(&world, &calls[0], json!({ "n": 8 }));
    world.tell(&edited).unwrap();
    world.tell(&allowed(&calls[0])).unwrap();
    let turn = world.state.control.turn.as_ref().unwrap();
    let call = turn.call(&calls[0]).unwrap();
    assert!(matches!(
        &call.status,
        CallStatus::Approved {
            by: Decider::Person(_),
            ..
        }
    ));
    world.check_folds();
}

#[test]
fn three_reviews_without_a_yes_leave_it_to_the_person_until_they_approve() {
    let tools = ["a", "b", "c", "d", "e"];
    let (mut world, calls) = asked(vec![opening("*")], &tools);
    for call in &calls[..3] {
        assert_eq!(under_review(&world).as_ref(), Some(call), "one by one");
        world.tell(&refused(call)).unwrap();
    }
    assert_eq!(under_review(&world), None);
    // A person's rejection does not switch the reviewer on again.
    world.tell(&reject(&calls[0], None)).unwrap();
    assert_eq!(under_review(&world), None);
    for call in &calls[1..] {
        world.tell(&reject(call, None)).unwrap();
    }
    // The reviewer stays off in later turns.
    world.answer("well", vec![]);
    world.tell(&say("go on")).unwrap();
    answer_calls(&mut world, &["a", "b"]);
    let calls = world.queue();
    assert_eq!(under_review(&world), None);
    world.tell(&approve(&calls[0])).unwrap();
    assert_eq!(under_review(&world), Some(calls[1].clone()));
    world.check_folds();
}

#[test]
fn a_yes_of_the_model_in_between_does_not_begin_the_count_anew() {
    let (mut world, calls) = asked(vec![opening("*")], &["a", "b", "c", "d", "e", "f"]);
    for (at, answer) in [refused, allowed, refused, allowed].iter().enumerate() {
        world.tell(&answer(&calls[at])).unwrap();
        assert!(!world.state.control.reviewing.is_off());
    }
    world.tell(&refused(&calls[4])).unwrap();
    assert!(world.state.control.reviewing.is_off());
    assert_eq!(under_review(&world), None, "the last call is the person's");
    world.check_folds();
}

#[test]
fn after_a_crash_the_model_is_asked_again_and_nothing_runs_without_a_yes() {
    let (mut world, calls) = asked(vec![opening("a")], &["a"]);
    world.crash();
    assert_eq!(under_review(&world), Some(calls[0].clone()));
    assert!(world.started().is_empty());
    world.tell(&allowed(&calls[0])).unwrap();
    world.crash();
    let times = world.events();
    let times = times.filter(|event| matches!(event, Event::Started { .. }));
    assert_eq!(times.count(), 1);
    world.check_folds();
}

#[test]
fn a_review_outlives_its_turn_and_a_fork_takes_none_along() {
    let (mut world, calls) = asked(vec![opening("a")], &["a"]);
    let fork = world.forked(world.state.control.seq);
    assert_eq!(under_review(&fork), None);
    world
        .tell(&Command::Stop {
            turn: None,
            said_so_far: None,
            thought_so_far: None,
            spent: vec![],
        })
        .unwrap();
    assert!(world.state.control.turn.is_none());
    assert_eq!(under_review(&world), Some(calls[0].clone()));
    world.tell(&allowed(&calls[0])).unwrap();
    assert_eq!(under_review(&world), None);
    assert!(world.started().is_empty());
    world.check_folds();
}
