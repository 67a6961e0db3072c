//! What `decide` went by beside its commands, read from what it decided: rules, limits, and which gateway it
//! was.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "most events say nothing of them"
)]

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::{CallId, Code, EngineId, GatewayId, Timestamp};
use crate::session::call::{Call, CallStatus, Decider, Outcome, Verdict};
use crate::session::command::Genesis;
use crate::session::decide::{Gateway, Inputs};
use crate::session::event::{Event, MAX_ITERATIONS};
use crate::session::policy::{EditsByOthers, Policy, PolicyEffect, RuleName, Rules, Ruling};
use crate::session::state::Control;
use crate::session::title::Titling;

/// What is known of the settings at the time.
#[derive(Debug, Default)]
pub(super) struct Circumstances {
    genesis: Option<Genesis>,
    /// The newest that is known to have been decided of each call of the queue.
    rulings: BTreeMap<CallId, Ruling>,
    limits: Limits,
}

#[derive(Debug, Default, Clone, Copy)]
struct Limits {
    max_iterations: Option<u32>,
    max_same_calls: Option<u32>,
    stale_after_ms: Option<u64>,
    expiry_ms: Option<u64>,
}

/// Inputs that own what they are made of.
pub(super) struct OwnedInputs<'a> {
    gateway: GatewayId,
    engine: Option<EngineId>,
    rules: Rules,
    genesis: &'a Genesis,
    now: Timestamp,
}

impl OwnedInputs<'_> {
    pub(super) fn as_inputs(&self) -> Inputs<'_> {
        Inputs {
            gateway: Gateway {
                id: &self.gateway,
                engine: self.engine.as_ref(),
                is_runner_alive: false,
                epoch: None,
            },
            rules: &self.rules,
            now: self.now,
            genesis: self.genesis,
        }
    }
}

impl Circumstances {
    /// What a commit says of how the session was created.
    pub(super) fn meet(&mut self, events: &[Event]) {
        for event in events {
            if let Event::Created {
                journal,
                owner,
                sandbox,
                model,
            } = event
            {
                self.genesis = Some(Genesis {
                    journal: journal.clone(),
                    owner: owner.clone(),
                    sandbox: sandbox.clone(),
                    model: model.clone(),
                });
            }
        }
    }

    /// What the rest of a commit says of rules and limits.
    pub(super) fn learn(&mut self, control: &Control, rest: &[Event], now: Timestamp) {
        for event in rest {
            if let Event::Queued { calls } = event {
                self.rulings.clear();
                for call in calls {
                    self.know(call, PolicyEffect::Ask, None);
                }
            }
        }
        if let Some(Event::ViewCalled { call, .. }) = rest.first() {
            self.know(call, PolicyEffect::Ask, None);
        }
        // Had a rule said another thing of a call that waited, it would have been decided.
        for call in control.calls().filter(|call| call.is_pending()) {
            self.know(call, PolicyEffect::Ask, None);
        }
        self.learn_approved(control, rest);
        for event in rest {
            if let Event::Decided {
                call,
                verdict,
                by: Decider::Rule { name, id },
                ..
            } = event
            {
                let effect = match verdict {
                    Verdict::Approved => PolicyEffect::Allow,
                    Verdict::Rejected => PolicyEffect::Deny,
                    Verdict::TakenBack => PolicyEffect::Ask,
                };
                let rule = RuleName {
                    id: id.clone().unwrap_or_default(),
                    name: name.clone(),
                };
                if let Some(call) = find(control, rest, call) {
                    self.know(call, effect, Some(rule));
                }
            }
        }
        self.learn_wants(rest);
        self.learn_reviews(rest);
        self.limits = Limits {
            max_iterations: max_iterations(control, rest),
            max_same_calls: max_same_calls(control, rest),
            stale_after_ms: stale_after_ms(control, rest, now),
            expiry_ms: rest.iter().find_map(expiry_ms),
        };
    }

    /// What a person approved, and nobody decides anew, had the yes of everybody whom rules wanted.
    fn learn_approved(&mut self, control: &Control, rest: &[Event]) {
        for call in control.calls() {
            let is_by_person = matches!(
                &call.status,
                CallStatus::Approved {
                    by: Decider::Person(_),
                    ..
                }
            );
            if !is_by_person {
                continue;
            }
            let is_decided = rest
                .iter()
                .any(|event| matches!(event, Event::Decided { call: id, .. } if *id == call.id));
            let effect = if is_decided {
                PolicyEffect::Ask
            } else {
                PolicyEffect::Allow
            };
            self.know(call, effect, None);
        }
    }

    /// What rules wanted of calls by then; the first of each call is what comes next.
    fn learn_wants(&mut self, rest: &[Event]) {
        let mut seen = BTreeSet::new();
        for event in rest {
            if let Event::WantsChanged { call, wants } = event
                && seen.insert(call)
                && let Some(ruling) = self.rulings.get_mut(call)
            {
                ruling.approvers.clone_from(&wants.approvers);
                ruling.fresh_gesture = wants.fresh_gesture;
            }
        }
    }

    fn know(&mut self, call: &Call, effect: PolicyEffect, rule: Option<RuleName>) {
        let ruling = Ruling::recorded(effect, (rule, &call.why), &call.wants);
        self.rulings.insert(call.id.clone(), ruling);
    }

    /// A call that was reviewed, or approved so, was open to it.
    fn learn_reviews(&mut self, rest: &[Event]) {
        for event in rest {
            let (Event::ReviewAsked { call }
            | Event::Decided {
                call,
                by: Decider::Reviewer { .. },
                ..
            }) = event
            else {
                continue;
            };
            if let Some(ruling) = self.rulings.get_mut(call) {
                ruling.is_open_to_review = true;
            }
        }
    }

    /// Everything for one decision; none before the session was created.
    pub(super) fn inputs(
        &self,
        control: &Control,
        rest: &[Event],
        now: Timestamp,
    ) -> Option<OwnedInputs<'_>> {
        let (gateway, engine) = gateway(control, rest);
        let limits = self.limits;
        Some(OwnedInputs {
            gateway,
            engine,
            rules: Rules {
                policy: Policy::Recorded(self.rulings.clone()),
                max_iterations: limits.max_iterations.unwrap_or(u32::MAX),
                max_same_calls: limits.max_same_calls,
                approval_stale_after_ms: limits.stale_after_ms.unwrap_or(u64::MAX),
                approval_expiry_ms: limits.expiry_ms,
                // What was refused is in no journal.
                edits_by_others: EditsByOthers::default(),
                max_waiting_messages: usize::MAX,
                max_calls_per_answer: max_calls(rest),
                has_reviewer: rest.iter().any(is_asked_for_review),
                has_titles_made: rest.iter().any(is_asked_for_title),
            },
            genesis: self.genesis.as_ref()?,
            now,
        })
    }
}

/// Who decided: whoever became the runner with it; else the runner, because it became none.
fn gateway(control: &Control, rest: &[Event]) -> (GatewayId, Option<EngineId>) {
    let claimed = rest.iter().find_map(|event| match event {
        Event::OwnerChanged { runner, engine } => Some((runner.clone(), engine.clone())),
        _ => None,
    });
    claimed.unwrap_or_else(|| {
        let runner = control.runner.clone();
        let runner = runner.unwrap_or_else(|| GatewayId::from(String::new()));
        (runner, control.runner_engine.clone())
    })
}

/// A call of the queue, or one that enters it.
fn find<'a>(control: &'a Control, rest: &'a [Event], id: &CallId) -> Option<&'a Call> {
    let queued = rest.iter().find_map(|event| match event {
        Event::Queued { calls } => calls.iter().find(|call| call.id == *id).map(AsRef::as_ref),
        Event::ViewCalled { call, .. } => Some(&**call).filter(|call| call.id == *id),
        _ => None,
    });
    queued.or_else(|| control.call(id).map(AsRef::as_ref))
}

/// The limit of model requests, where this is the one that it ended.
fn max_iterations(control: &Control, rest: &[Event]) -> Option<u32> {
    let is_last = rest
        .iter()
        .any(|event| matches!(event, Event::Answered { finish, .. } if finish == MAX_ITERATIONS));
    let turn = control.turn.as_ref().filter(|_| is_last)?;
    Some(turn.request().iteration.0)
}

/// The limit of equal calls, where it was reached.
fn max_same_calls(control: &Control, rest: &[Event]) -> Option<u32> {
    let is_reached = rest.iter().any(|event| {
        matches!(event, Event::Ended { outcome: Outcome::Failed { code, .. }, .. }
            if *code == Code::RepeatedCall)
    });
    let turn = control.turn.as_ref().filter(|_| is_reached)?;
    turn.repeated.as_ref().map(|repeated| repeated.times)
}

/// The age of approvals that are asked again, where some were: a little less than the youngest of them.
fn stale_after_ms(control: &Control, rest: &[Event], now: Timestamp) -> Option<u64> {
    let ages = rest.iter().filter_map(|event| match event {
        Event::Decided {
            call,
            verdict: Verdict::TakenBack,
            by: Decider::System,
            ..
        } => match &control.call(call)?.status {
            CallStatus::Approved { at, .. } => Some(now.since_ms(*at)),
            CallStatus::Pending { .. }
            | CallStatus::Executing { .. }
            | CallStatus::Ended { .. } => None,
        },
        _ => None,
    });
    ages.min().map(|age| age.saturating_sub(1))
}

fn is_asked_for_review(event: &Event) -> bool {
    matches!(event, Event::ReviewAsked { .. })
}

/// How long calls wait for a decision, where some began to.
fn expiry_ms(event: &Event) -> Option<u64> {
    match event {
        Event::Queued { calls } => calls.iter().find_map(|call| call.wants.expires_after_ms),
        Event::ViewCalled { call, .. } => call.wants.expires_after_ms,
        Event::Decided {
            expires_after_ms, ..
        } => *expires_after_ms,
        _ => None,
    }
}

fn is_asked_for_title(event: &Event) -> bool {
    matches!(
        event,
        Event::TitlingMoved {
            to: Titling::Asked(_)
        }
    )
}

/// The limit of calls in an answer, where it was passed: the refusal says it.
fn max_calls(rest: &[Event]) -> usize {
    let said = rest.iter().find_map(|event| match event {
        Event::Ended {
            outcome: Outcome::Failed { output, .. },
            ..
        } => {
            let rest = output.text.strip_prefix("only ")?;
            let (most, rest) = rest.split_once(' ')?;
            let is_it = rest.starts_with("calls are allowed in one answer");
            is_it.then(|| most.parse().ok()).flatten()
        }
        _ => None,
    });
    said.unwrap_or(usize::MAX)
}
