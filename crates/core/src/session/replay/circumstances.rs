//! Reconstructs the inputs of `decide` beside its commands from the recorded events: rules, limits and the
//! deciding gateway.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "most events say nothing of them"
)]

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::{CallId, Code, EngineId, GatewayId, Timestamp};
use crate::session::call::{Call, CallStatus, Decider, Outcome, RuleName, Verdict};
use crate::session::command::Genesis;
use crate::session::decide::{Gateway, Inputs};
use crate::session::event::{Event, MAX_ITERATIONS};
use crate::session::policy::{EditsByOthers, Policy, PolicyEffect, Rules, Ruling};
use crate::session::state::Control;
use crate::session::title::Titling;

/// The inputs of a recorded decision as far as the events show them.
#[derive(Debug, Default)]
pub(super) struct Circumstances {
    genesis: Option<Genesis>,
    /// The latest known ruling on each call.
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

/// Owned values that [`Inputs`] borrows from.
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
    /// Learns how the session was created from a commit.
    pub(super) fn meet(&mut self, events: &[Event]) {
        for event in events {
            if let Event::Created {
                journal,
                owner,
                sandbox,
                model,
                assistant,
                servers,
            } = event
            {
                self.genesis = Some(Genesis {
                    journal: journal.clone(),
                    owner: owner.clone(),
                    sandbox: sandbox.clone(),
                    model: model.clone(),
                    assistant: assistant.clone(),
                    servers: servers.clone(),
                });
            }
        }
    }

    /// Learns rules and limits from the rest of a commit.
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
        // A waiting call had no ruling other than "ask", or it would have been decided.
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

    /// A call that a person approved and that is not decided again had all approvals that the rules
    /// required.
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

    /// Learns the approval requirements of calls; the first change of each call comes next.
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
        let asking = || call.asking_rule.clone();
        let rule = rule.or_else(|| asking().filter(|_| effect == PolicyEffect::Ask));
        let ruling = Ruling::recorded(effect, rule, &call.why, &call.wants);
        self.rulings.insert(call.id.clone(), ruling);
    }

    /// Learns that calls that a model reviewed or approved were open to review.
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

    /// The inputs of one decision; `None` before the session was created.
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
                // Journals do not contain refused commands.
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

/// The deciding gateway: the new runner if the decision claimed the session; otherwise the current runner.
fn gateway(control: &Control, rest: &[Event]) -> (GatewayId, Option<EngineId>) {
    let claimed = rest.iter().find_map(|event| match event {
        Event::OwnerChanged { runner, engine } => Some((runner.clone(), engine.clone())),
        _ => None,
    });
    claimed.unwrap_or_else(|| {
        let runner = control.runner.gateway.clone();
        let runner = runner.unwrap_or_else(|| GatewayId::from(String::new()));
        (runner, control.runner.engine.clone())
    })
}

/// A call of the session, or one that these events add.
fn find<'a>(control: &'a Control, rest: &'a [Event], id: &CallId) -> Option<&'a Call> {
    let queued = rest.iter().find_map(|event| match event {
        Event::Queued { calls } => calls.iter().find(|call| call.id == *id).map(AsRef::as_ref),
        Event::ViewCalled { call, .. } => Some(&**call).filter(|call| call.id == *id),
        _ => None,
    });
    queued.or_else(|| control.call(id).map(AsRef::as_ref))
}

/// The iteration limit, if this request reached it.
fn max_iterations(control: &Control, rest: &[Event]) -> Option<u32> {
    let is_last = rest
        .iter()
        .any(|event| matches!(event, Event::Answered { finish, .. } if finish == MAX_ITERATIONS));
    let turn = control.turn.as_ref().filter(|_| is_last)?;
    Some(turn.request().iteration.0)
}

/// The limit of equal calls, if it was reached.
fn max_same_calls(control: &Control, rest: &[Event]) -> Option<u32> {
    let is_reached = rest.iter().any(|event| {
        matches!(event, Event::Ended { outcome: Outcome::Failed { code, .. }, .. }
            if *code == Code::RepeatedCall)
    });
    let turn = control.turn.as_ref().filter(|_| is_reached)?;
    turn.repeated.as_ref().map(|repeated| repeated.times)
}

/// The age limit of approvals, if some were asked again: just below the age of the youngest of them.
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

/// The time limit for decisions, if calls began to wait.
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

/// The limit of calls in an answer, parsed from the error text if the limit was exceeded.
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
