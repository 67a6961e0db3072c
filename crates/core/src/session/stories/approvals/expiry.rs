//! Tests calls that nobody decides in time.

use super::{rule_for_a, status};
use crate::domain::{CallId, Code, Entry};
use crate::session::call::{CallStatus, Decider};
use crate::session::properties::world::{World, approve, policy, reject, say};
use crate::session::stories::answer_calls;
use crate::session::{Approver, Command, PolicyEffect};

const MINUTE: i64 = 60_000;

/// A world in which calls of these tools expire after half an hour.
fn waiting(tools: &[&str]) -> (World, Vec<CallId>) {
    let mut world = World::new();
    world.rules.approval_expiry_ms = Some(30 * 60_000);
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, tools);
    let calls = world.queue();
    (world, calls)
}

fn approve_all(calls: &[CallId]) -> Command {
    Command::DecideAll {
        call_ids: Some(calls.to_vec()),
        approved: true,
        reason: None,
        by: World::person(),
        role: None,
    }
}

#[test]
fn what_nobody_decides_is_rejected_and_the_model_reads_why() {
    let (mut world, calls) = waiting(&["a", "b"]);
    world.now += 29 * MINUTE;
    world.submit(&Command::ReviewCalls).unwrap();
    assert_eq!(world.journal.len(), 2, "not early");
    world.now += MINUTE;
    world.submit(&Command::ReviewCalls).unwrap();
    assert!(world.queue().is_empty(), "the model is asked again");
    let results = world.state.entries.iter().filter_map(|entry| {
        if let Entry::ToolResult { text, .. } = &***entry {
            return Some(text.clone());
        }
        None
    });
    let results: Vec<String> = results.collect();
    assert_eq!(results.len(), 2);
    for text in results {
        let reason = "nobody answered within 30 minutes, so the call has expired";
        assert!(text.contains(reason), "{text}");
    }
    // Calls expire once, and late decisions are refused with the reason.
    let before = world.journal.len();
    world.submit(&Command::ReviewCalls).unwrap();
    for late in [approve(&calls[0]), reject(&calls[0], Some("no"))] {
        let refusal = world.submit(&late).unwrap_err();
        assert_eq!(refusal.code, Code::CallExpired, "{}", refusal.message);
    }
    assert_eq!(world.journal.len(), before);
    world.check_folds();
}

#[test]
fn a_decision_that_comes_before_the_clock_was_looked_at_is_too_late_all_the_same() {
    let (mut world, calls) = waiting(&["a", "b"]);
    world.now += 31 * MINUTE;
    for late in [approve(&calls[0]), approve_all(&calls)] {
        let refusal = world.submit(&late).unwrap_err();
        assert_eq!(refusal.code, Code::CallExpired);
    }
    assert!(world.started().is_empty());
    // A rejection works like an expiry, and the other calls expire with it.
    world.submit(&reject(&calls[0], Some("not that"))).unwrap();
    assert!(world.queue().is_empty());
    assert!(world.started().is_empty());
    world.check_folds();
}

#[test]
fn no_rule_allows_what_has_expired() {
    let (mut world, _) = waiting(&["a"]);
    world.now += 31 * MINUTE;
    world.rules.policy = policy(vec![rule_for_a(PolicyEffect::Allow)]);
    world.submit(&Command::ReviewCalls).unwrap();
    assert!(world.started().is_empty());
    world.check_folds();
}

#[test]
fn what_was_approved_in_time_runs_once_the_rest_has_expired() {
    let (mut world, calls) = waiting(&["a", "b"]);
    world.now += 20 * MINUTE;
    world.submit(&approve(&calls[0])).unwrap();
    world.now += 20 * MINUTE;
    world.submit(&Command::ReviewCalls).unwrap();
    assert_eq!(world.started(), calls[..1].to_vec());
    let CallStatus::Ended { by, .. } = status(&world, &calls[1]) else {
        panic!("it has its result");
    };
    assert_eq!(by, Some(Decider::System));
    let refusal = world.submit(&approve(&calls[1])).unwrap_err();
    assert_eq!(refusal.code, Code::CallExpired);
    world.check_folds();
}

/// Expiry and takeover: an old approval is asked again with a full time limit.
#[test]
fn what_waits_again_has_all_of_its_time_again() {
    let (mut world, calls) = waiting(&["a", "b"]);
    world.now += 5 * MINUTE;
    world.submit(&approve(&calls[0])).unwrap();
    world.now += 20 * MINUTE;
    world.crash();
    assert_eq!(
        status(&world, &calls[0]),
        CallStatus::Pending { asked: false },
        "the yes is stale; the other card is out"
    );
    world.now += 6 * MINUTE;
    world.submit(&Command::ReviewCalls).unwrap();
    assert_eq!(
        status(&world, &calls[0]),
        CallStatus::Pending { asked: true },
        "only the other has expired"
    );
    world.now += 20 * MINUTE;
    world.submit(&approve(&calls[0])).unwrap();
    assert_eq!(world.started(), calls[..1].to_vec());
    world.check_folds();
}

#[test]
fn a_crash_changes_nothing_about_when_a_call_expires() {
    let (mut world, calls) = waiting(&["a"]);
    world.now += 29 * MINUTE;
    world.crash();
    world.submit(&Command::ReviewCalls).unwrap();
    assert_eq!(world.queue(), calls);
    // The calls expire while no gateway runs, and the setting has changed by then.
    world.rules.approval_expiry_ms = None;
    world.now += 60 * MINUTE;
    world.crash();
    assert!(world.queue().is_empty(), "the take-over rejects it");
    world.check_folds();
}

#[test]
fn a_first_yes_that_waits_for_a_second_expires_with_its_call() {
    let mut world = World::new();
    world.rules.approval_expiry_ms = Some(30 * 60_000);
    let mut two = rule_for_a(PolicyEffect::Ask);
    two.approvers.who = Approver::Two;
    world.rules.policy = policy(vec![two]);
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, &["a"]);
    let calls = world.queue();
    world.now += 20 * MINUTE;
    world.submit(&approve(&calls[0])).unwrap();
    assert_eq!(
        status(&world, &calls[0]),
        CallStatus::Pending { asked: true }
    );
    world.now += 11 * MINUTE;
    world.submit(&Command::ReviewCalls).unwrap();
    assert!(world.queue().is_empty() && world.started().is_empty());
    let refusal = world.submit(&approve(&calls[0])).unwrap_err();
    assert_eq!(refusal.code, Code::CallExpired);
    world.check_folds();
}
