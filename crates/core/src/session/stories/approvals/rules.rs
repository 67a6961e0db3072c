//! Tests rules of a session.

use sepal_policy::{Network, Rule, Scope};
use serde_json::json;

use crate::domain::{CallId, Code, HostRefusal};
use crate::session::call::{CallStatus, Decider};
use crate::session::properties::world::{World, approve, policy, rule, say};
use crate::session::stories::answer_calls;
use crate::session::stories::approvals::approve_edited;
use crate::session::{Command, Decision, Event, PolicyEffect};

fn given(name: &str, tool: &str, effect: PolicyEffect) -> Command {
    let mut rule: Rule = rule(name, tool, effect);
    rule.scope = Scope::Session;
    Command::GiveRule {
        rule: Box::new(rule),
        by: World::person(),
    }
}

#[test]
fn arguments_that_a_person_changed_go_through_the_rules_again() {
    let (mut world, calls) = asked(&["a", "b"]);
    let mut no_sevens = rule("no sevens", "a", PolicyEffect::Deny);
    no_sevens.when.exactly = Some(json!({ "n": 7 }));
    world.rules.policy = policy(vec![no_sevens]);
    let denied = approve_edited(&world, &calls[0], json!({ "n": 7 }));
    let refusal = world.submit(&denied).unwrap_err();
    assert_eq!(refusal.code, Code::NotAllowed);
    assert!(refusal.message.contains("no sevens"), "{}", refusal.message);
    world.submit(&approve(&calls[1])).unwrap();
    assert!(world.started().is_empty(), "nothing was decided by it");
    let allowed = approve_edited(&world, &calls[0], json!({ "n": 8 }));
    world.submit(&allowed).unwrap();
    assert_eq!(world.started().len(), 2);
    world.check_folds();
}

fn taken_back(name: &str) -> Command {
    Command::TakeRuleBack {
        id: name.into(),
        by: World::person(),
    }
}

fn take_back(call: &CallId) -> Command {
    Command::Decide(Decision {
        call: call.clone(),
        approved: false,
        take_back: true,
        reason: None,
        edit: None,
        dry_run: None,
        digest: None,
        by: World::person(),
        role: None,
    })
}

fn status(world: &World, call: &CallId) -> CallStatus {
    let turn = world.state.control.turn.as_ref().unwrap();
    turn.call(call).unwrap().status.clone()
}

fn asked(tools: &[&str]) -> (World, Vec<CallId>) {
    let mut world = World::new();
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, tools);
    let calls = world.queue();
    (world, calls)
}

#[test]
fn a_rule_decides_what_waits_and_what_comes() {
    let (mut world, calls) = asked(&["a", "b", "a"]);
    world.submit(&given("r", "a", PolicyEffect::Allow)).unwrap();
    for index in [0, 2] {
        let CallStatus::Approved { by, .. } = status(&world, &calls[index]) else {
            panic!("the rule is about it");
        };
        let id = Some("r".to_owned());
        let name = "r".to_owned();
        assert_eq!(by, Decider::Rule { name, id });
    }
    assert!(world.started().is_empty(), "the other one still waits");
    world.submit(&approve(&calls[1])).unwrap();
    assert_eq!(world.started().len(), 3);
    for call in &calls {
        world.finish(call);
    }
    answer_calls(&mut world, &["a"]);
    assert_eq!(world.started().len(), 4, "nobody is asked");
    world.check_folds();
}

#[test]
fn what_a_rule_let_run_and_has_not_started_is_asked_once_it_is_taken_back() {
    let (mut world, calls) = asked(&["a", "b"]);
    world.submit(&given("r", "a", PolicyEffect::Allow)).unwrap();
    world.submit(&taken_back("r")).unwrap();
    assert!(matches!(
        status(&world, &calls[0]),
        CallStatus::Pending { .. }
    ));
    let refusal = world.submit(&taken_back("r")).unwrap_err();
    assert_eq!(refusal.code, Code::NotFound);
    world.check_folds();
}

#[test]
fn a_yes_that_a_person_took_back_is_not_given_again_by_a_rule() {
    let (mut world, calls) = asked(&["a", "b"]);
    world.submit(&given("r", "a", PolicyEffect::Allow)).unwrap();
    world.submit(&take_back(&calls[0])).unwrap();
    world.submit(&Command::ReviewCalls).unwrap();
    world.submit(&given("s", "a", PolicyEffect::Allow)).unwrap();
    assert!(matches!(
        status(&world, &calls[0]),
        CallStatus::Pending { .. }
    ));
    world.submit(&approve(&calls[1])).unwrap();
    assert!(world.started().is_empty());
    world.submit(&approve(&calls[0])).unwrap();
    assert_eq!(world.started().len(), 2, "a person may");
    world.check_folds();
}

#[test]
fn an_allow_of_the_session_never_widens_a_deny() {
    let (mut world, calls) = asked(&["a", "b"]);
    world.rules.policy = policy(vec![rule("no", "a", PolicyEffect::Deny)]);
    world
        .submit(&given("yes", "*", PolicyEffect::Allow))
        .unwrap();
    let CallStatus::Ended { status, .. } = status(&world, &calls[0]) else {
        panic!("it is denied");
    };
    assert_eq!(status, "rejected");
    assert_eq!(world.started(), vec![calls[1].clone()]);
    world.check_folds();
}

#[test]
fn a_session_holds_so_many_rules_and_a_repeat_is_no_other() {
    let mut world = World::new();
    world.submit(&say("go")).unwrap();
    for index in 0..50 {
        let name = format!("r{index}");
        let rule = given(&name, "a", PolicyEffect::Ask);
        world.submit(&rule).unwrap();
        let before = world.journal.len();
        world.submit(&rule).unwrap();
        assert_eq!(world.journal.len(), before);
    }
    let refusal = world
        .submit(&given("more", "a", PolicyEffect::Ask))
        .unwrap_err();
    assert_eq!(refusal.code, Code::TooLarge);
}

#[test]
fn a_rule_whose_time_is_over_asks_again() {
    let (mut world, calls) = asked(&["b"]);
    let mut command = given("r", "a", PolicyEffect::Allow);
    if let Command::GiveRule { rule, .. } = &mut command {
        rule.until_ms = Some(u64::try_from(world.now).unwrap() + 60_000);
    }
    world.submit(&command).unwrap();
    world.submit(&approve(&calls[0])).unwrap();
    world.finish(&calls[0]);
    world.now += 120_000;
    answer_calls(&mut world, &["a"]);
    let calls = world.queue();
    let turn = world.state.control.turn.as_ref().unwrap();
    let call = turn.call(&calls[0]).unwrap();
    assert!(call.is_pending());
    assert!(call.why.contains("has expired"), "{}", call.why);
}

fn host_refused(host: &str) -> Command {
    Command::HostRefused(Box::new(HostRefusal {
        host: host.to_owned(),
        port: 443,
        entry: Some(host.to_owned()),
        on_request: true,
        reason: "it is not listed".to_owned(),
    }))
}

fn opens(host: &str) -> Command {
    let mut rule = Rule::new(host, PolicyEffect::Allow, Scope::Session);
    rule.network = Some(Network {
        hosts: vec![host.to_owned()],
        on_request: true,
    });
    Command::GiveRule {
        rule: Box::new(rule),
        by: World::person(),
    }
}

#[test]
fn a_refused_host_is_told_once_until_people_act() {
    let mut world = World::new();
    let told = |world: &World| {
        let told = world.events();
        told.filter(|event| matches!(event, Event::HostRefused(_)))
            .count()
    };
    world.submit(&host_refused("early.example")).unwrap();
    assert_eq!(told(&world), 0, "nothing is stored of a session yet");
    world.submit(&say("go")).unwrap();
    for host in ["a.example", "b.example", "a.example"] {
        world.submit(&host_refused(host)).unwrap();
    }
    assert_eq!(told(&world), 2);
    // A program can make up any number of hosts.
    for number in 0..100 {
        let host = format!("{number}.example");
        world.submit(&host_refused(&host)).unwrap();
    }
    assert_eq!(told(&world), 16);
    world.submit(&opens("a.example")).unwrap();
    world.submit(&host_refused("b.example")).unwrap();
    assert_eq!(told(&world), 17);
    world.submit(&say("again")).unwrap();
    world.submit(&host_refused("b.example")).unwrap();
    assert_eq!(told(&world), 18);
    world.check_folds();
}

#[test]
fn hosts_of_a_session_let_no_call_run_and_no_fork_takes_them_along() {
    let (mut world, calls) = asked(&["a"]);
    world.submit(&opens("a.example")).unwrap();
    assert!(matches!(
        status(&world, &calls[0]),
        CallStatus::Pending { .. }
    ));
    let state = world.folded();
    assert_eq!(state.control.rules.given().len(), 1);
    let heard = state.control.notes.join("\n");
    assert!(heard.contains("to reach a.example"), "{heard}");
    world.submit(&taken_back("a.example")).unwrap();
    let heard = world.folded().control.notes.join("\n");
    assert!(heard.contains("no longer allows"), "{heard}");
    world.submit(&opens("a.example")).unwrap();
    world.submit(&approve(&calls[0])).unwrap();
    world.finish(&calls[0]);
    world.answer("done", vec![]);
    let seq = world.folded().control.seq;
    let fork = world.forked(seq).folded();
    assert!(fork.control.rules.is_empty());
    let heard = fork.control.notes.join("\n");
    assert!(heard.ends_with("is not allowed here."), "{heard}");
    world.check_folds();
}
