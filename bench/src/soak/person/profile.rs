//! A person's view of a session, and their next steps.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use serde_json::Value;
use tokio::time::Instant;

use super::talk::text;
use crate::soak::check::ledger::Ledger;
use crate::soak::phase::Phase;
use crate::soak::script::{Deed, Script};

/// A step of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Sends the message that waits to be sent, or a new one.
    Say,
    /// Sends another message while the turn runs.
    SayMore,
    /// Decides a call.
    Decide(String),
    /// Stops the turn.
    Cancel,
    /// Stops a call.
    StopCall(String),
    /// Retries the failed turn.
    Retry,
}

/// A card that waits for a decision.
#[derive(Debug, Clone)]
pub(crate) struct Card {
    pub(crate) digest: Value,
    pub(crate) args: Value,
    at: Instant,
}

/// A message that was not acknowledged yet.
#[derive(Debug, Clone)]
pub(crate) struct Unsaid {
    pub(crate) id: String,
    pub(crate) text: String,
}

/// The state of a person in a session.
pub(crate) struct Profile {
    phase: Arc<Phase>,
    ledger: Arc<Ledger>,
    rng: Rng,
    /// True if a turn runs.
    is_running: bool,
    /// The time of the last progress of the turn.
    pub(crate) heard: Instant,
    /// The number of turns that are still to be begun.
    pub(crate) turns_left: usize,
    pub(crate) unsaid: Option<Unsaid>,
    pub(crate) cards: BTreeMap<String, Card>,
    /// The planned steps, except decisions.
    plans: Vec<(Instant, Step)>,
    say_at: Instant,
}

impl Profile {
    pub(crate) fn new(phase: Arc<Phase>, ledger: Arc<Ledger>, mut rng: Rng) -> Self {
        Self {
            phase,
            ledger,
            is_running: false,
            heard: Instant::now(),
            turns_left: rng.usize(5..30),
            unsaid: None,
            cards: BTreeMap::new(),
            plans: Vec::new(),
            say_at: later(&mut rng, 0, 8_000),
            rng,
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.is_running
    }

    fn set_running(&mut self, is_running: bool) {
        if is_running == self.is_running {
            return;
        }
        self.is_running = is_running;
        self.heard = Instant::now();
        if is_running {
            self.phase.became_busy();
        } else {
            self.phase.became_idle();
            self.cards.clear();
            self.plans.clear();
            self.say_at = later(&mut self.rng, 1_000, 10_000);
        }
    }

    /// True if there is nothing left to do.
    pub(crate) fn is_done(&self) -> bool {
        let has_turns = self.turns_left > 0 && !self.phase.finish.is_cancelled();
        !has_turns && !self.is_running && self.unsaid.is_none()
    }

    /// True if a card of the last turn waits and no message is unsent.
    pub(crate) fn is_last_card(&self) -> bool {
        let is_last = self.turns_left == 0 && self.unsaid.is_none();
        is_last && self.is_running && !self.cards.is_empty()
    }

    /// Returns the next step and its time.
    pub(crate) fn next(&self) -> Option<(Instant, Step)> {
        let cards = self.cards.iter();
        let mut steps: Vec<_> = cards
            .map(|(call, card)| (card.at, Step::Decide(call.clone())))
            .collect();
        steps.extend(self.plans.iter().cloned());
        let begins = !self.is_running && self.turns_left > 0 && self.phase.may_begin();
        if begins || self.unsaid.is_some() {
            steps.push((self.say_at, Step::Say));
        }
        steps.into_iter().min_by_key(|(at, _)| *at)
    }

    /// Removes a step that is about to be taken from the plans.
    pub(crate) fn begin(&mut self, step: &Step) {
        self.plans.retain(|(_, planned)| planned != step);
    }

    /// Records that a message was acknowledged.
    pub(crate) fn said(&mut self) {
        self.unsaid = None;
        // Events tell whether a turn runs; they may come before or after the answer.
        self.say_at = later(&mut self.rng, 1_000, 10_000);
        if self.plans.is_empty() {
            if self.rng.u32(0..100) < 7 {
                let at = later(&mut self.rng, 100, 4_000);
                self.plans.push((at, Step::Cancel));
            }
            if self.rng.u32(0..100) < 6 {
                let at = later(&mut self.rng, 100, 2_500);
                self.plans.push((at, Step::SayMore));
            }
        }
    }

    /// Schedules another attempt after the gateway could not accept a step.
    pub(crate) fn again_soon(&mut self, step: &Step) {
        let at = later(&mut self.rng, 500, 2_000);
        match step {
            Step::Say | Step::SayMore => self.say_at = at,
            Step::Decide(call) => {
                if let Some(card) = self.cards.get_mut(call) {
                    card.at = at;
                }
            }
            Step::Cancel | Step::StopCall(_) | Step::Retry => {}
        }
    }

    /// Builds the script of a new message.
    pub(crate) fn script(&mut self, id: String, tag: &str, is_more: bool) -> Script {
        let rounds = match self.rng.u32(0..10) {
            _ if is_more => 0,
            0..6 => 0,
            6..9 => 1,
            _ => 2,
        };
        let mut round = || {
            let calls = self.rng.usize(1..=3);
            (0..calls).map(|_| deed(&mut self.rng)).collect()
        };
        let rounds = (0..rounds).map(|_| round()).collect();
        Script {
            id,
            tag: tag.to_owned(),
            words: self.rng.usize(3..60),
            gap_ms: self.rng.u64(0..30),
            rounds,
        }
    }

    /// Takes the state from `system:ready`.
    pub(crate) fn ready(&mut self, ready: &Value) {
        let state = &ready["state"];
        self.set_running(!state["running"].is_null());
        self.cards.clear();
        for call in state["queue"]["calls"].as_array().into_iter().flatten() {
            if self.is_running && call["status"] == "pending" && !call["digest"].is_null() {
                self.card(call);
            }
        }
    }

    fn card(&mut self, card: &Value) {
        let at = later(&mut self.rng, 0, 2_500);
        let new = Card {
            digest: card["digest"].clone(),
            args: card["args"].clone(),
            at,
        };
        self.cards.insert(text(&card["callId"]).to_owned(), new);
    }

    /// Processes an event. An open card is repeated after the state, with its own `seq`.
    pub(crate) fn event(&mut self, name: &str, args: &[Value]) {
        let rest = args.last().unwrap_or(&Value::Null);
        let goes_on = !matches!(name, "tool:queue" | "session:usage" | "mcp:health");
        if goes_on {
            self.heard = Instant::now();
        }
        match name {
            "user:message" | "agent:thinking" => self.set_running(true),
            "agent:response" => self.end("turns answered"),
            "agent:cancelled" => self.end("turns cancelled"),
            "agent:error" if rest["callId"].is_null() && !rest["turn"].is_null() => {
                self.end(&format!("turns failed: {}", text(&rest["code"])));
                if self.rng.u32(0..3) == 0 {
                    let at = later(&mut self.rng, 200, 2_000);
                    self.plans.push((at, Step::Retry));
                }
            }
            "tool:approval_required" => self.card(rest),
            "tool:decided" if rest["scope"] == "taken_back" => {}
            "tool:decided" | "tool:output" => {
                self.cards.remove(text(&rest["callId"]));
            }
            "tool:started" if self.rng.u32(0..100) < 4 => {
                let at = later(&mut self.rng, 100, 1_200);
                let call = text(&rest["callId"]).to_owned();
                self.plans.push((at, Step::StopCall(call)));
            }
            _ => {}
        }
    }

    /// Records that nobody waits for this session any more.
    pub(crate) fn leave(&mut self) {
        self.set_running(false);
    }

    fn end(&mut self, how: &str) {
        self.ledger.count(how);
        self.set_running(false);
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        self.leave();
    }
}

fn deed(rng: &mut Rng) -> Deed {
    match rng.u32(0..100) {
        0..40 => Deed::Quick,
        40..55 => Deed::Slow,
        55..61 => Deed::Crash,
        61..69 => Deed::Fails,
        69..81 => Deed::Write,
        81..93 => Deed::Read,
        93..96 => Deed::Unknown,
        _ => Deed::Invalid,
    }
}

/// Returns a random time between `from_ms` and `to_ms` milliseconds from now.
pub(crate) fn later(rng: &mut Rng, from_ms: u64, to_ms: u64) -> Instant {
    Instant::now() + Duration::from_millis(rng.u64(from_ms..to_ms))
}
