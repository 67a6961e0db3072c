//! Stories of approvals that come late, twice, or from another tab.

use super::properties::world::{World, approve, reject, say};
use super::stories::answer_calls;
use super::{Command, Decision, PolicyEffect, Rule};
use crate::domain::{Code, Digest};

#[test]
fn a_tool_that_was_denied_meanwhile_does_not_run_by_any_approval() {
    let mut world = World::new();
    world.tell(&say("go")).unwrap();
    answer_calls(&mut world, &["a", "b"]);
    let calls = world.queue();
    world.rules.policy = vec![Rule {
        name: "no more".into(),
        server: "*".into(),
        tool: "a".into(),
        effect: PolicyEffect::Deny,
    }];
    let all = Command::DecideAll {
        call_ids: Some(calls.clone()),
        approved: true,
        reason: None,
        by: World::person(),
    };
    for command in [approve(&calls[0]), all] {
        let refusal = world.tell(&command).unwrap_err();
        assert_eq!(refusal.code, Code::NotAllowed, "{}", refusal.message);
        assert!(refusal.message.contains("no more"), "{}", refusal.message);
    }
    assert!(world.started().is_empty(), "nothing of it was decided");
    world.tell(&reject(&calls[0], None)).unwrap();
    world.tell(&approve(&calls[1])).unwrap();
    assert_eq!(world.started(), vec![calls[1].clone()]);
}

#[test]
fn an_approval_of_what_is_no_longer_so_is_no_repeat() {
    let mut world = World::new();
    world.tell(&say("go")).unwrap();
    answer_calls(&mut world, &["a", "b"]);
    let call = world.queue()[0].clone();
    let of = |digest: &str| {
        let Command::Decide(decision) = approve(&call) else {
            panic!("an approval is a decision");
        };
        Command::Decide(Decision {
            digest: Some(Digest::from_wire(digest)),
            ..decision
        })
    };
    world.tell(&approve(&call)).unwrap();
    let shown = world.digest_of(&call);
    world.tell(&of(&shown)).unwrap();
    let refusal = world.tell(&of("what another tab showed")).unwrap_err();
    assert_eq!(refusal.code, Code::ChangedSinceShown);
}

#[test]
fn taking_back_twice_rejects_nothing() {
    let mut world = World::new();
    world.tell(&say("go")).unwrap();
    answer_calls(&mut world, &["a", "b"]);
    let call = world.queue()[0].clone();
    world.tell(&approve(&call)).unwrap();
    let Command::Decide(decision) = reject(&call, None) else {
        panic!("a rejection is a decision");
    };
    let take_back = Command::Decide(Decision {
        take_back: true,
        ..decision
    });
    for _ in 0..2 {
        world.tell(&take_back).unwrap();
        let waiting = world.state.control.turn.as_ref().unwrap().call(&call);
        assert!(waiting.unwrap().is_pending());
    }
}
