//! Tests that no sequence of decisions starts a call without the fresh gesture that a rule requires.

use proptest::prelude::*;
use sepal_policy::Scope;
use serde_json::json;

use super::world::{World, approve, digests, policy, proposal, reject, rule, say};
use super::{Command, Decision, Edit, PolicyEffect, config, some_call};
use crate::domain::{CallId, Digest, Gesture, GestureCall, GestureMeans, SessionId};
use crate::session::Event;

/// The action, the call and a variant.
type Step = (u8, u8, u8);

/// Wraps the decision with a gesture for this call, for another call or for other arguments, or with none.
fn gestured(world: &World, call: &CallId, decision: Command, how: u8) -> Command {
    let turn = world.state.control.turn.as_ref();
    let digest = turn
        .and_then(|turn| turn.call(call))
        .and_then(|it| it.digest());
    let Some(digest) = digest.filter(|_| how % 5 > 0) else {
        return decision;
    };
    let edited = json!({ "edited": how });
    let shown = GestureCall {
        session: SessionId::from_bits(1),
        call: call.clone(),
        digest: match how % 5 {
            1 => Digest::from_wire("what another card showed"),
            _ => digest.clone(),
        },
        edited: (how % 5 == 2).then(|| Digest::of_json(&edited)),
    };
    Command::WithGesture {
        gesture: Gesture {
            means: GestureMeans::Password,
            calls: vec![shown],
        },
        decision: Box::new(decision),
    }
}

fn edited(world: &World, call: &CallId, how: u8) -> Command {
    let args = json!({ "edited": how });
    let turn = world.state.control.turn.as_ref();
    let asked = turn.and_then(|turn| turn.call(call));
    let tool = asked.map_or("sign", |asked| asked.name.as_str());
    let (digest, equal) = digests(tool, &args);
    let shown = asked.and_then(|asked| asked.digest());
    Command::Decide(Decision {
        call: call.clone(),
        approved: true,
        take_back: false,
        reason: None,
        edit: Some(Edit {
            args,
            unedited: shown.cloned(),
            digest,
            equal,
            invalid: None,
        }),
        dry_run: None,
        digest: None,
        by: World::person(),
        role: None,
    })
}

fn command(world: &World, (what, pick, how): Step) -> Command {
    let call = some_call(world, pick);
    let decision = match what % 8 {
        0..=2 => approve(&call),
        3 => edited(world, &call, how),
        4 => reject(&call, (how % 4 == 0).then_some("no")),
        5 => {
            let mut allow = rule("nearer", "*", PolicyEffect::Allow);
            allow.scope = Scope::Session;
            return Command::GiveRule {
                rule: Box::new(allow),
                by: World::person(),
            };
        }
        6 => return Command::ReviewCalls,
        _ => Command::DecideAll {
            call_ids: Some(world.queue()),
            approved: true,
            reason: None,
            by: World::person(),
            role: None,
        },
    };
    gestured(world, &call, decision, how)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_sequence_of_decisions_starts_a_call_without_the_gesture_that_rules_want(
        steps in prop::collection::vec(any::<Step>(), 1..24),
    ) {
        let mut world = World::new();
        let mut sign = rule("sign", "sign", PolicyEffect::Ask);
        sign.approvers.fresh_gesture = true;
        world.rules.policy = policy(vec![sign]);
        world.submit(&say("go")).unwrap();
        let calls = ["sign", "run", "sign"];
        let calls = calls.map(|tool| proposal(tool, json!({ "n": 1 })));
        world.answer("calls", calls.to_vec());
        for step in steps {
            // A refused command changes nothing.
            let _ = world.submit(&command(&world, step));
            let turn = world.state.control.turn.as_ref();
            for event in world.events() {
                let Event::Started { call, name, .. } = event else { continue };
                let call = turn.and_then(|turn| turn.call(call));
                let has_one = call.is_none_or(|call| call.gesture.is_some());
                prop_assert!(name != "sign" || has_one, "{call:?} runs without a gesture");
            }
        }
    }
}
