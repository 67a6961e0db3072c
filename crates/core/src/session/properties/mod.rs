//! Tests what must hold under random commands, outcomes, conflicts and crashes.
#![expect(
    clippy::manual_is_multiple_of,
    reason = "`%` reads better as one choice among several"
)]

mod approvers;
pub(crate) mod dry_runs;
pub mod edits;
mod gestures;
mod pair;
mod reviews;
mod tasks;
mod views;
pub mod world;

use proptest::prelude::*;
use proptest::test_runner::Config;
use serde_json::json;

use self::reviews::{opening_rules, reviewed, some_rule};
use self::world::{World, answer, approve, digests, policy, proposal, reject, rule, say};
use super::{
    Answer, AttemptUsage, Command, CompactedByVendor, CutKind, Decision, Edit, Failure,
    ModelChoice, Outcome, Output, PolicyEffect, Proposal, Reasoning, Resolution, SessionState,
    Turn,
};
use crate::domain::{
    BlobId, CallId, Code, Digest, Effort, MicroUsd, ModelRequestId, StrategyName, TokenUsage,
};

/// One random step: the kind of action, and two numbers that select its variant.
pub type Step = (u8, u8, u8);

/// Runs at least 1,000 sequences; `PROPTEST_CASES` can raise the number, and does in `./run test all`.
fn config() -> Config {
    let default = Config::default();
    Config {
        cases: default.cases.max(1_000),
        failure_persistence: None,
        ..default
    }
}

/// Expiry of calls in worlds where calls expire.
const EXPIRY_MS: u64 = 5 * 60 * 1000;

const TOOLS: [&str; 4] = ["read_a", "write_a", "run", "deny_a"];

fn some_call(world: &World, pick: u8) -> CallId {
    let mut queue = world.calls();
    // Sometimes a call whose queue is gone.
    if pick % 8 == 7 {
        let past = &world.state.control.past;
        queue.extend(past.iter().rev().take(2).map(|past| past.call.clone()));
    }
    match queue.len() {
        0 => CallId::from_wire("call_0_0"),
        len => queue[usize::from(pick) % len].clone(),
    }
}

fn some_calls(count: u8, seed: u8) -> Vec<Proposal> {
    (0..count % 6)
        .map(|index| {
            let tool = TOOLS[usize::from(seed.wrapping_add(index)) % TOOLS.len()];
            let mut proposal = proposal(tool, json!({"n": seed % 3}));
            if (seed ^ index) % 7 == 0 {
                proposal.resolution = Resolution::Invalid("`n` is missing".into());
            }
            proposal
        })
        .collect()
}

/// An answer with usage, whose cost may be unknown.
fn some_answer(a: u8, b: u8) -> Answer {
    Answer {
        usage: TokenUsage {
            input_tokens: u64::from(a),
            output_tokens: u64::from(b),
            ..TokenUsage::default()
        },
        cost: (b % 3 > 0).then_some(MicroUsd(u64::from(b))),
        spent: some_spent(b),
        compacted_by_vendor: (b % 7 == 0).then(|| Box::new(some_compaction(a))),
        ..answer("text", some_calls(a.wrapping_add(1), b))
    }
}

/// A vendor's compaction before its answer, which may report its usage.
fn some_compaction(a: u8) -> CompactedByVendor {
    CompactedByVendor {
        provider: "p".into(),
        model: "m".into(),
        summary: (a % 2 > 0).then(|| "All of it.".into()),
        before: Some(u64::from(a)),
        after: None,
        usage: (a % 3 > 0).then(|| TokenUsage {
            input_tokens: u64::from(a / 2),
            ..TokenUsage::default()
        }),
        cost: None,
    }
}

/// The usage of zero to two failed attempts.
fn some_spent(seed: u8) -> Vec<AttemptUsage> {
    let spent = |n: u8| AttemptUsage {
        usage: TokenUsage {
            input_tokens: u64::from(seed),
            output_tokens: u64::from(n),
            is_estimated: true,
            ..TokenUsage::default()
        },
        cost: (n > 0).then_some(MicroUsd(u64::from(seed))),
        request: None,
    };
    (0..seed % 3).map(spent).collect()
}

fn edited(world: &World, call: &CallId, seed: u8) -> Command {
    let known = world.state.control.call(call);
    let tool = known.map_or("run", |call| call.name.as_str());
    let args = json!({"edited": seed});
    let (digest, equal) = digests(tool, &args);
    let shown = known.and_then(|call| call.digest().cloned());
    Command::Decide(Decision {
        call: call.clone(),
        approved: true,
        take_back: false,
        reason: Some("changed".into()),
        edit: Some(Edit {
            args,
            unedited: shown.filter(|_| seed % 7 != 0),
            digest,
            equal,
            invalid: (seed % 4 == 0).then(|| "`n` is missing".into()),
        }),
        dry_run: None,
        digest: (seed % 5 == 0).then(|| Digest::from_wire("stale")),
        by: World::person(),
        role: None,
    })
}

fn outcome(seed: u8) -> Outcome {
    let output = Output {
        text: "x".into(),
        ..Output::default()
    };
    match seed % 4 {
        3 => Outcome::Unknown {
            cause: Some("gone".into()),
        },
        0 => Outcome::Failed {
            code: Code::ToolFailed,
            output,
        },
        1 => Outcome::Cancelled,
        _ => Outcome::Completed { output },
    }
}

fn command(world: &World, (what, a, b): Step) -> Command {
    let call = some_call(world, a);
    let turn = world.state.control.turn.as_ref();
    let request = turn.map_or(ModelRequestId::default(), Turn::request);
    let is_late = b % 16 == 0;
    let request = if is_late { request.next() } else { request };
    match what % 20 {
        0 => say("text"),
        1 => Command::Say {
            text: "text".into(),
            author: World::person(),
            client_message_id: Some(format!("m{}", a % 4)),
            effort: (b % 3 == 0).then_some(Effort::High),
            attachments: vec![],
        },
        2..=5 => Command::Answered {
            request,
            answer: some_answer(a, b),
        },
        6..=8 => approve(&call),
        9 => reject(&call, (b % 2 == 0).then_some("no")),
        10 => edited(world, &call, b),
        13 if a % 2 == 0 => tasks::created(call, b),
        11..=13 => Command::CallEnded {
            call,
            outcome: outcome(b),
            duration_ms: u64::from(a),
        },
        14 => Command::DecideAll {
            call_ids: (b % 3 > 0)
                .then(|| world.queue().into_iter().take(usize::from(a % 4)).collect()),
            approved: b % 2 == 0,
            reason: None,
            by: World::person(),
            role: None,
        },
        15 => Command::Stop {
            turn: (b % 3 == 0).then_some(request.turn),
            said_so_far: Some("so".into()),
            thought_so_far: Reasoning::of("hm".into(), None),
            spent: some_spent(a),
        },
        16 => rare_command(world, call, a, b),
        17 if a % 2 == 0 => Command::Overflowed {
            request,
            cut: world.cut(match b % 3 {
                0 => CutKind::Shortening,
                1 => CutKind::LowerLimit,
                _ => CutKind::FreshContext,
            }),
            spent: some_spent(b),
        },
        17 => away(request, b),
        _ => Command::StopCall { call },
    }
}

fn away(request: ModelRequestId, b: u8) -> Command {
    let failure = Failure {
        code: Code::ProviderUnavailable,
        text: "away".into(),
        is_retryable: true,
        spent: some_spent(b),
    };
    Command::ModelFailed { request, failure }
}

fn rare_command(world: &World, call: CallId, a: u8, b: u8) -> Command {
    let turn = world.state.control.turn.as_ref();
    match a % 22 {
        15..=18 => views::asks(b),
        19 if b % 2 == 0 => views::waits_no_more(b),
        19 => views::closed(b),
        20 | 21 => dry_runs::command(world, call, b),
        0 => Command::Retry,
        13 | 14 => reviewed(world, call, b),
        11 => Command::GiveRule {
            rule: Box::new(some_rule(b)),
            by: World::person(),
        },
        12 => Command::TakeRuleBack {
            id: format!("given {}", b % 5),
            by: World::person(),
        },
        10 => Command::Titled {
            title: (b % 2 == 0).then(|| format!("made {b}")),
            spent: some_spent(b),
        },
        9 => Command::AttachmentPlaced {
            request: turn.map_or(ModelRequestId::default(), Turn::request),
            id: BlobId::of(&[b % 3]),
            name: "a.pdf".into(),
            path: format!("/workspace/attachments/{b}"),
        },
        8 => Command::ReviewCalls,
        6 => Command::ChooseModel {
            model: ModelChoice::new("other", format!("m{}", b % 3)),
        },
        7 if b < 128 => Command::ChooseCompaction {
            strategies: (b % 2 == 0).then(|| vec![StrategyName::DeleteOld]),
        },
        7 => Command::ChooseWindow { whole: b % 2 == 0 },
        1 => Command::Withdraw {
            client_message_id: format!("m{}", b % 4),
        },
        2 => Command::ResetContext,
        3 => Command::Rename {
            title: format!("t{b}"),
        },
        4 => Command::ResolveUnknown {
            call: world
                .state
                .control
                .unknown
                .keys()
                .next()
                .cloned()
                .unwrap_or(call),
            happened: b % 2 == 0,
            by: World::person(),
        },
        _ => Command::StopCall { call },
    }
}

/// Replaces the rules; the denied tool may change.
fn rules(world: &mut World, seed: u8) {
    let [opened, others] = opening_rules(seed);
    world.rules.policy = policy(vec![
        opened,
        others,
        rule("no", "deny_*", PolicyEffect::Deny),
        rule(
            "reads",
            "read_*",
            if seed % 2 == 0 {
                PolicyEffect::Allow
            } else {
                PolicyEffect::Ask
            },
        ),
        rule(
            "writes",
            "write_*",
            if seed % 3 == 0 {
                PolicyEffect::Deny
            } else {
                PolicyEffect::Ask
            },
        ),
    ]);
    world.rules.has_reviewer = seed % 5 > 0;
    world.rules.max_iterations = u32::from(seed % 5) + 1;
    world.rules.max_waiting_messages = 3;
    world.rules.has_titles_made = seed % 3 > 0;
    world.rules.approval_expiry_ms = (seed % 4 > 1).then_some(EXPIRY_MS);
}

proptest! {
    #![proptest_config(config())]

    /// Asserts S1.2, S1.4, S1.17, S2.29, S2.31, S2.37, S2.44, S3.27 and O4; `World` makes the checks.
    #[test]
    fn a_session_keeps_its_promises_whatever_happens(
        seed in any::<u8>(),
        steps in prop::collection::vec(any::<Step>(), 1..48),
    ) {
        let mut world = World::new();
        rules(&mut world, seed);
        world.has_engine = seed % 4 > 0;
        // A second gateway that has read the journal up to some point.
        let mut other = (0, SessionState::default());
        for step in steps {
            match step.0 {
                230..=240 => world.crash(),
                241..=244 => world.take_snapshot(),
                245..=246 => world.now += i64::from(step.1 % 4) * 100_000,
                247..=248 => world.now += 20 * 60 * 1000,
                249 => world.has_engine = true,
                250 => rules(&mut world, step.1),
                251..=255 => {
                    // It decides on its own state; if the journal has gone on, the append conflicts, and it
                    // reads on and decides again.
                    let command = command(&world, step);
                    let _ = world.decide_on(&other.1, &command);
                    for commit in &world.journal[other.0..] {
                        other.1.apply(commit);
                    }
                    other.0 = world.journal.len();
                    prop_assert_eq!(&other.1, &world.state);
                    let _ = world.submit(&command);
                }
                _ => {
                    let command = command(&world, step);
                    let _ = if matches!(command, Command::CallEnded { .. }) && step.1 % 2 == 0 {
                        let others = world.queue().into_iter().map(|call| Command::CallEnded {
                            call,
                            outcome: outcome(step.2.wrapping_add(1)),
                            duration_ms: 1,
                        });
                        let all: Vec<Command> = [command].into_iter().chain(others).collect();
                        world.submit_together(&all)
                    } else {
                        world.submit(&command)
                    };
                }
            }
        }
        world.check_folds();
        // The session can be forked at any place, and the fork works like any session.
        if seed % 4 == 1 {
            let mut fork = world.forked(u64::from(seed) % (world.state.control.seq + 1));
            fork.submit(&say("another way")).unwrap();
            fork.answer("done", vec![]);
            fork.check_folds();
        }
        // The session comes to rest, whatever was still open.
        world.submit(&Command::Stop { turn: None, said_so_far: None, thought_so_far: None, spent: Vec::new() }).unwrap();
        for view in 0..3 {
            world.submit(&views::closed(view)).unwrap();
        }
        for call in world.calls() {
            world.end(&call, Outcome::Cancelled);
        }
        while world.state.control.turn.is_some() {
            world.answer("done", vec![]);
        }
        prop_assert!(!world.state.control.is_unfinished());
        world.check_folds();
    }
}
