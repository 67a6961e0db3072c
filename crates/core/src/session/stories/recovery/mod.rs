//! Tests sessions whose runner is gone.

mod tasks;

use super::answer_calls;
use crate::domain::Iteration;
use crate::session::properties::world::{World, approve, policy, rule, say};
use crate::session::{Command, Commit, Difference, Event, Outcome, PolicyEffect, Replay};

#[test]
fn after_a_crash_a_running_call_is_unknown_the_turn_goes_on_and_an_equal_call_is_always_asked() {
    let mut world = World::new();
    world.rules.policy = policy(vec![rule("allow", "*", PolicyEffect::Allow)]);
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, &["a"]);
    let call = world.queue()[0].clone();
    assert_eq!(world.started(), vec![call.clone()]);
    world.crash();
    assert!(world.events().any(|event| matches!(
        event,
        Event::Ended {
            outcome: Outcome::Unknown { .. },
            ..
        }
    )));
    assert_eq!(
        world.state.control.turn.as_ref().unwrap().iteration,
        Iteration(2)
    );
    answer_calls(&mut world, &["a"]);
    assert_eq!(world.asked().len(), 1, "the rule does not decide it");
    world
        .submit(&Command::ResolveUnknown {
            call,
            happened: true,
            by: World::person(),
        })
        .unwrap();
    assert!(world.state.control.unknown.is_empty());
}

#[test]
fn approvals_older_than_fifteen_minutes_are_asked_again_at_take_over() {
    let mut world = World::new();
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, &["a", "b"]);
    let calls = world.queue();
    world.submit(&approve(&calls[0])).unwrap();
    world.now += 16 * 60 * 1000;
    world.crash();
    world.submit(&approve(&calls[1])).unwrap();
    assert!(world.started().is_empty());
    world.submit(&approve(&calls[0])).unwrap();
    assert_eq!(world.started().len(), 2);
}

#[test]
fn a_journal_that_the_engine_would_not_write_is_named_with_its_commit() {
    let mut world = World::new();
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, &["a"]);
    let call = world.queue()[0].clone();
    world.submit(&approve(&call)).unwrap();
    // A call runs without an approval: the decision is removed from the third commit.
    let mut journal = world.journal.clone();
    journal[2].events.remove(0);
    let mut replay = Replay::default();
    let differs = |replay: &mut Replay, commits: &[Commit]| {
        let steps = commits.iter().map(|commit| replay.step(commit));
        steps.collect::<Result<(), Difference>>()
    };
    let difference = differs(&mut replay, &journal).unwrap_err();
    assert_eq!(difference.version, 3, "{difference}");
    assert!(difference.what.contains("started"), "{difference}");
    assert_eq!(differs(&mut Replay::default(), &world.journal), Ok(()));
}
