//! Tests random decisions by random people under rules that require several approvers: a call starts only
//! with the approvals that the rules of that moment require, for exactly what runs.

use std::collections::BTreeMap;

use proptest::prelude::*;
use sepal_policy::{Approver, Rule, Scope};
use serde_json::json;

use super::world::{World, digests, policy, proposal, rule, say};
use super::{Step, config, outcome};
use crate::domain::{Actor, CallId, Digest, Role, UserId};
use crate::session::{Command, Decision, Edit, Event, Policy, PolicyEffect};

/// The roles of the session's owner, who is a member, and of three other people.
const ROLES: [Role; 4] = [Role::Member, Role::Member, Role::Admin, Role::Viewer];

pub(super) fn person(pick: u8) -> (Actor, Role) {
    let pick = usize::from(pick) % ROLES.len();
    let actor = match pick {
        0 => World::person(),
        _ => Actor {
            id: UserId::from_bits(100 + pick as u128),
            name: format!("p{pick}"),
        },
    };
    (actor, ROLES[pick])
}

/// Some of the tenant's rules that ask for approval of the tool `run`.
pub(super) fn some_rules(seed: u8) -> Vec<Rule> {
    let wanted = [
        Approver::Owner,
        Approver::Two,
        Approver::SomebodyElse,
        Approver::Role("admin".into()),
    ];
    let chosen = wanted.iter().enumerate();
    let chosen = chosen.filter(|(index, _)| (seed >> index) & 1 == 1);
    chosen
        .map(|(index, who)| {
            let mut rule = rule(&format!("r{index}"), "run", PolicyEffect::Ask);
            rule.approvers.who = who.clone();
            rule.binding = *who == Approver::Owner;
            // These rules only cover some arguments.
            if (seed >> 4) & 3 == 3 {
                rule.when.exactly = Some(json!({ "n": index % 3 }));
            }
            rule
        })
        .collect()
}

/// The approvals of each call by person, role and digest, taken from the accepted commands.
#[derive(Default)]
struct Ledger(BTreeMap<CallId, Vec<(UserId, Role, Digest)>>);

impl Ledger {
    fn heed(&mut self, world: &World, command: &Command) {
        let digest = |call: &CallId| {
            let turn = world.state.control.turn.as_ref();
            turn.and_then(|turn| turn.call(call)?.digest().cloned())
        };
        let mut say =
            |call: &CallId, digest: Option<Digest>, (who, role): (&Actor, Option<Role>)| {
                if let (Some(digest), Some(role)) = (digest, role) {
                    let said = self.0.entry(call.clone()).or_default();
                    said.retain(|(id, ..)| *id != who.id);
                    said.push((who.id.clone(), role, digest));
                }
            };
        if let Command::Decide(it) = command {
            if it.approved {
                let edited = it.edit.as_ref().map(|edit| edit.digest.clone());
                let digest = edited.or_else(|| digest(&it.call));
                say(&it.call, digest, (&it.by, it.role));
            } else if let Some(said) = self.0.get_mut(&it.call) {
                said.retain(|(id, ..)| *id != it.by.id);
            }
        } else if let Command::DecideAll {
            call_ids: Some(ids),
            approved: true,
            by,
            role,
            ..
        } = command
        {
            for id in ids {
                say(id, digest(id), (by, *role));
            }
        }
    }

    fn is_met(&self, who: &Approver, call: &CallId, digest: &Digest) -> bool {
        let said = self.0.get(call).into_iter().flatten();
        let said: Vec<_> = said.filter(|(.., of)| of == digest).collect();
        let owner = World::person().id;
        match who {
            Approver::Owner => said.iter().any(|(id, ..)| *id == owner),
            Approver::SomebodyElse => said
                .iter()
                .any(|(id, role, _)| *id != owner && *role >= Role::Member),
            Approver::Two => {
                said.iter()
                    .filter(|(_, role, _)| *role >= Role::Member)
                    .count()
                    >= 2
            }
            Approver::Role(_) => said.iter().any(|(_, role, _)| *role >= Role::Admin),
        }
    }
}

/// The approvers that the tenant's rules require for a call.
fn wanted(world: &World, name: &str, args: &serde_json::Value) -> Vec<Approver> {
    let Policy::InForce(rules) = &world.rules.policy else {
        panic!("the world has rules");
    };
    let is_about = |rule: &&Rule| {
        let exactly = rule.when.exactly.as_ref();
        rule.tool.as_str() == name && exactly.is_none_or(|exactly| exactly == args)
    };
    let asking = rules.iter().filter(is_about);
    asking.map(|rule| rule.approvers.who.clone()).collect()
}

fn a_decision(world: &World, call: &CallId, a: u8, b: u8) -> Command {
    let (by, role) = person(a / 2);
    let turn = world.state.control.turn.as_ref();
    let shown = turn.and_then(|turn| turn.call(call)?.digest().cloned());
    let edit = (b % 5 == 0).then(|| {
        let args = json!({ "n": b % 3 });
        let (digest, equal) = digests("run", &args);
        Edit {
            args,
            unedited: shown.clone(),
            digest,
            equal,
            invalid: None,
        }
    });
    let approved = a % 8 > 0;
    Command::Decide(Decision {
        call: call.clone(),
        approved,
        take_back: !approved && b % 4 > 0,
        reason: None,
        edit: edit.filter(|_| approved),
        dry_run: None,
        digest: shown.filter(|_| b % 2 == 0),
        by,
        role: Some(role),
    })
}

fn step(world: &mut World, (what, a, b): Step) -> Option<Command> {
    let queue = world.queue();
    let Some(call) = queue.get(usize::from(b) % queue.len().max(1)).cloned() else {
        if world.state.control.turn.is_none() {
            world.submit(&say("go")).unwrap();
        }
        let calls = (0..a % 3).map(|n| proposal("run", json!({ "n": b.wrapping_add(n) % 3 })));
        world.answer("text", calls.collect());
        return None;
    };
    Some(match what % 12 {
        0 => {
            world.crash();
            return None;
        }
        1 => {
            world.rules.policy = policy(some_rules(a));
            return None;
        }
        2 => Command::ReviewCalls,
        3 => {
            let mut rule = rule(&format!("s{a}"), "*", PolicyEffect::Allow);
            rule.scope = Scope::Session;
            Command::GiveRule {
                rule: Box::new(rule),
                by: World::person(),
            }
        }
        4 => Command::DecideAll {
            call_ids: Some(queue),
            approved: b % 4 > 0,
            reason: None,
            by: person(a).0,
            role: Some(person(a).1),
        },
        5 | 6 => Command::CallEnded {
            call,
            outcome: outcome(2),
            duration_ms: 1,
        },
        _ => a_decision(world, &call, a, b),
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_call_starts_only_with_the_yes_of_everybody_it_wants(
        seed in any::<u8>(),
        steps in prop::collection::vec(any::<Step>(), 1..40),
    ) {
        let mut world = World::new();
        world.rules.policy = policy(some_rules(seed));
        let mut ledger = Ledger::default();
        for it in steps {
            let known = world.journal.len();
            if let Some(command) = step(&mut world, it) {
                let before = world.state.clone();
                if world.submit(&command).is_ok() {
                    let mut then = World::new();
                    then.state = before;
                    ledger.heed(&then, &command);
                }
            }
            for event in world.journal[known..].iter().flat_map(|commit| &commit.events) {
                let Event::Started { call, digest, .. } = event else { continue };
                let turn = world.state.control.turn.as_ref().unwrap();
                let started = turn.call(call).unwrap();
                for who in wanted(&world, &started.name, &started.args) {
                    prop_assert!(ledger.is_met(&who, call, digest), "{who} did not say yes");
                }
            }
        }
        world.check_folds();
    }
}
