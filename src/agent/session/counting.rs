//! Counts what this gateway decided, for the operator's figures, and says what operators should look
//! at. Nothing depends on it.

use std::time::Duration;

use super::LiveSession;
use crate::domain::{CallId, Timestamp};
use crate::session::{Commit, Decider, Event, Verdict};
use crate::telemetry::instruments;

impl LiveSession {
    /// Counts an own commit, before it changes the state.
    pub(crate) fn count(&self, commit: &Commit) {
        for event in &commit.events {
            match event {
                Event::Answered {
                    duration_ms,
                    finish,
                    turn,
                    ..
                } => {
                    if finish == "max_iterations" {
                        self.warn_of_limit(*turn);
                    }
                    instruments().turn_ended("answered");
                    let time = Duration::from_millis(*duration_ms);
                    instruments().turn_took(self.provider_kind(), time);
                }
                Event::TurnFailed { .. } => instruments().turn_ended("failed"),
                Event::Cancelled { .. } => instruments().turn_ended("cancelled"),
                Event::ApprovalAsked { .. } => instruments().call_became("asked"),
                Event::Decided {
                    call, verdict, by, ..
                } => self.count_decision(call, (*verdict, by), commit.at),
                Event::Started { .. } => instruments().call_became("started"),
                Event::Ended { outcome, .. } => instruments().call_became(outcome.status()),
                Event::Created { .. }
                | Event::OwnerChanged { .. }
                | Event::Queued { .. }
                | Event::StopRequested { .. }
                | Event::CallStopRequested { .. }
                | Event::UserMessage { .. }
                | Event::Thinking { .. }
                | Event::Said { .. }
                | Event::Settled { .. }
                | Event::Withdrawn { .. }
                | Event::TitleSet { .. }
                | Event::ModelChosen { .. }
                | Event::WindowChosen { .. }
                | Event::ContextReset
                | Event::ContextCut { .. }
                | Event::ResultsShortened { .. } => {}
            }
        }
    }

    /// A turn that ends unfinished is worth a look (S3.29): the task is too large, or the model goes
    /// in circles.
    fn warn_of_limit(&self, turn: u64) {
        let running = self.state.control.turn.as_ref();
        let iterations = running.map_or(0, |running| running.iteration);
        tracing::warn!(
            session.id = %self.key.session,
            turn,
            iterations,
            "Turn {turn} has asked the model as often as it may ({iterations} times)"
        );
    }

    fn count_decision(&self, call: &CallId, (verdict, by): (Verdict, &Decider), at: Timestamp) {
        let verdict = match verdict {
            Verdict::Approved => "approved",
            // The call ends with the same word.
            Verdict::Rejected => "rejected",
            Verdict::TakenBack => return instruments().call_became("taken_back"),
        };
        if verdict == "approved" {
            instruments().call_became(verdict);
        }
        let turn = self.state.control.turn.as_ref();
        let mut queue = turn.into_iter().flat_map(|turn| &turn.queue);
        let waited = queue.find(|waiting| waiting.id == *call);
        if let (Some(call), Decider::Person(_)) = (waited, by) {
            let time = Duration::from_millis(at.since_ms(call.since));
            instruments().approval_took(verdict, time);
        }
    }

    /// What kind of provider answers the running request.
    pub(crate) fn provider_kind(&self) -> &'static str {
        let choice = self.state.control.asked().unwrap_or(&self.genesis.model);
        let found = self
            .agent
            .providers
            .find(&self.key.tenant, &choice.provider);
        found.map_or("gone", |offer| offer.kind().as_str())
    }
}
