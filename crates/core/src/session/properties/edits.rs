//! Tests that no call and no dry run uses edited arguments that the session's owner has not approved,
//! whoever edits, approves or takes back, under any rules and at any door. The shown events contain the
//! arguments that run.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::test_runner::Config;
use serde_json::{Value, json};

use super::approvers::{person, some_rules};
use super::reviews::{opening_rules, reviewed, some_rule};
use super::world::{World, digests, policy, proposal, say};
use super::{Step, outcome, views};
use crate::domain::{
    Actor, CallId, Digest, Gesture, GestureCall, GestureMeans, Role, SessionId, UserId,
};
use crate::session::properties::dry_runs::report;
use crate::session::{Call, Command, Decision, Edit, EditsByOthers, Event};

/// Runs at least 2,000 sequences, fewer than the other properties of the module.
pub fn config() -> Config {
    let default = Config::default();
    Config {
        cases: default.cases.max(2_000),
        failure_persistence: None,
        ..default
    }
}

/// Plays these steps of people deciding calls, and checks every start.
pub fn played(seed: u8, steps: Vec<Step>) -> World {
    let mut world = World::new();
    rules(&mut world, seed);
    if seed % 8 == 7 {
        world.rules.edits_by_others = EditsByOthers::Refused;
    }
    let mut ledger = Ledger::default();
    for it in steps {
        let known = world.journal.len();
        if let Some(command) = step(&mut world, it) {
            let before = world.state.control.clone();
            if world.submit(&command).is_ok() {
                let call = |id: &CallId| before.call(id).map(|call| &**call);
                ledger.heed(&command, call);
            }
        }
        let commits = world.journal[known..].to_vec();
        for event in commits.iter().flat_map(|commit| &commit.events) {
            ledger.check(&world, event);
        }
    }
    world
}

fn rules(world: &mut World, seed: u8) {
    let mut rules = some_rules(seed);
    if seed % 3 == 0 {
        rules.extend(opening_rules(seed));
    }
    if seed % 5 == 0 {
        let mut signed = super::world::rule("signed", "run", crate::session::PolicyEffect::Ask);
        signed.approvers.fresh_gesture = true;
        rules.push(signed);
    }
    world.rules.policy = policy(rules);
    world.rules.has_reviewer = seed % 2 == 0;
}

/// The proposed, approved and shown arguments of each call.
#[derive(Default)]
struct Ledger {
    proposed: BTreeMap<CallId, Value>,
    /// Digests that the owner approved after seeing them, or wrote.
    approved: BTreeSet<(CallId, Digest)>,
    /// The arguments in the shown events.
    told: BTreeMap<CallId, Value>,
}

impl Ledger {
    /// Records the owner's approvals and edits in an accepted command.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "every other command is looked at as it is"
    )]
    fn heed<'c>(&mut self, command: &Command, call: impl Fn(&CallId) -> Option<&'c Call>) {
        let command = match command {
            Command::WithGesture { decision, .. } => decision,
            other => other,
        };
        let owner = World::person().id;
        // A joint decision names calls without their digests, so it only counts for arguments that the
        // owner wrote.
        if let Command::DecideAll {
            call_ids: Some(ids),
            approved: true,
            by,
            ..
        } = command
            && by.id == owner
        {
            for id in ids {
                let written = call(id).filter(|call| {
                    let editor = call.edited_by.as_ref();
                    editor.is_some_and(|editor| editor.id == owner)
                });
                if let Some(digest) = written.and_then(Call::digest) {
                    self.approved.insert((id.clone(), digest.clone()));
                }
            }
        }
        let Command::Decide(decision) = command else {
            return;
        };
        if decision.by.id != World::person().id {
            return;
        }
        let id = &decision.call;
        if !decision.approved {
            self.approved.retain(|(of, _)| of != id);
            return;
        }
        let written = decision.edit.as_ref().map(|edit| &edit.digest);
        let own = call(id).filter(|call| {
            let editor = call.edited_by.as_ref();
            editor.is_some_and(|editor| editor.id == World::person().id)
        });
        let seen = decision
            .digest
            .as_ref()
            .or_else(|| own.and_then(Call::digest));
        let digest = written.or(seen);
        self.approved
            .extend(digest.map(|digest| (id.clone(), digest.clone())));
    }

    fn check(&mut self, world: &World, event: &Event) {
        if let Event::Queued { calls } = event {
            let calls = calls.iter();
            self.proposed
                .extend(calls.map(|call| (call.id.clone(), call.args.clone())));
        } else if let Event::Said { calls, .. } = event {
            let calls = calls.iter();
            self.told
                .extend(calls.map(|call| (call.id.clone(), call.args.clone())));
        } else if let Event::ViewCalled { call, .. } = event {
            for known in [&mut self.proposed, &mut self.told] {
                known.insert(call.id.clone(), call.args.clone());
            }
        } else if let Event::Decided {
            call,
            edited: Some(edited),
            ..
        } = event
        {
            self.told.insert(call.clone(), edited.args.clone());
        } else if let Event::Started {
            call, name, digest, ..
        } = event
        {
            let told = &self.told[call];
            assert_eq!(digests(name, told).0, *digest, "what is told is what runs");
            self.check_origin(call, told, digest, None);
        } else if let Event::DryRunMoved {
            call, to: Some(to), ..
        } = event
            && to.report.is_none()
        {
            let args = &world.state.control.call(call).unwrap().args;
            self.check_origin(call, args, &to.digest, Some(&to.by.id));
        }
    }

    /// Fails if a call starts, or is tried by `by`, with edited arguments that the owner has not approved.
    fn check_origin(&self, call: &CallId, args: &Value, digest: &Digest, by: Option<&UserId>) {
        let is_proposed = self.proposed[call] == *args;
        let is_owners = by == Some(&World::person().id);
        let is_approved = self.approved.contains(&(call.clone(), digest.clone()));
        assert!(
            is_proposed || is_owners || is_approved,
            "{call} runs with {args}, which the owner has not said yes to"
        );
    }
}

fn a_decision(world: &World, call: &Call, a: u8, b: u8) -> Command {
    let (by, role) = person(a / 3);
    let edit = (b % 3 == 0).then(|| edit(call, b / 3));
    let approved = a % 7 > 0;
    let is_seen = b % 4 > 0;
    let edited = edit.as_ref().map(|edit| Digest::of_json(&edit.args));
    let decision = Command::Decide(Decision {
        call: call.id.clone(),
        approved,
        take_back: !approved && b % 4 > 0,
        reason: None,
        edit: edit.filter(|_| approved),
        dry_run: call.dry_run_result().filter(|_| b % 5 == 0).cloned(),
        digest: call.digest().filter(|_| is_seen).cloned(),
        by,
        role: Some(role),
    });
    let digest = call.digest().cloned().filter(|_| b % 8 < 5);
    match digest {
        Some(digest) if world.now % 2 == 0 => Command::WithGesture {
            gesture: Gesture {
                means: GestureMeans::Password,
                calls: vec![GestureCall {
                    session: SessionId::from_bits(1),
                    call: call.id.clone(),
                    digest,
                    edited,
                }],
            },
            decision: Box::new(decision),
        },
        _ => decision,
    }
}

/// An edit to one of four arguments, which may equal the proposed ones.
fn edit(call: &Call, seed: u8) -> Edit {
    let args = json!({ "n": seed % 4 });
    let (digest, equal) = digests(&call.name, &args);
    Edit {
        args,
        unedited: call.digest().cloned(),
        digest,
        equal,
        invalid: None,
    }
}

fn step(world: &mut World, (what, a, b): Step) -> Option<Command> {
    let open = world.state.control.calls().filter(|call| !call.is_ended());
    let calls: Vec<_> = open.cloned().collect();
    let Some(call) = calls.get(usize::from(b) % calls.len().max(1)).cloned() else {
        if world.state.control.turn.is_none() {
            world.submit(&say("go")).unwrap();
        }
        let calls = (0..a % 3).map(|n| proposal("run", json!({ "n": b.wrapping_add(n) % 3 })));
        world.answer("text", calls.collect());
        return None;
    };
    let id = call.id.clone();
    let (by, role): (Actor, Role) = person(a);
    Some(match what % 20 {
        0 => {
            world.crash();
            return None;
        }
        1 => {
            rules(world, a);
            return None;
        }
        2 => Command::ReviewCalls,
        3 => Command::GiveRule {
            rule: Box::new(some_rule(a)),
            by: World::person(),
        },
        4 => Command::DecideAll {
            call_ids: Some(world.queue()),
            approved: b % 5 > 0,
            reason: None,
            by,
            role: Some(role),
        },
        5 | 6 => Command::CallEnded {
            call: id,
            outcome: outcome(b),
            duration_ms: 1,
        },
        7 => Command::DryRun {
            call: id,
            digest: None,
            by,
            role: Some(role),
        },
        8 => Command::DryRunEnded {
            call: id,
            report: Box::new(report("tried")),
        },
        9 => reviewed(world, id, b),
        10 => views::asks(b),
        11 if a % 4 == 0 => views::closed(b),
        _ => a_decision(world, &call, a, b),
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn nothing_runs_that_neither_was_proposed_nor_the_owner_approved(
        seed in any::<u8>(),
        steps in prop::collection::vec(any::<Step>(), 1..40),
    ) {
        played(seed, steps).check_journal_folds();
    }
}
