//! Counts what this gateway decided, for the operator's figures, and says what operators should look
//! at. Nothing depends on it.

use std::time::Duration;

use super::replica::Replica;
use crate::domain::{CallId, Timestamp, TurnId};
use crate::session::{Commit, Decider, Event, Verdict};
use crate::telemetry::instruments;

/// Counts an own commit, before it changes the state.
pub(super) fn count(replica: &Replica, commit: &Commit) {
    for event in &commit.events {
        match event {
            Event::Answered {
                duration_ms,
                finish,
                turn,
                ..
            } => {
                if finish == "max_iterations" {
                    warn_of_limit(replica, *turn);
                }
                instruments().turn_ended("answered");
                let time = Duration::from_millis(*duration_ms);
                instruments().turn_took(replica.provider_kind(), time);
            }
            Event::TurnFailed { .. } => instruments().turn_ended("failed"),
            Event::Cancelled { .. } => instruments().turn_ended("cancelled"),
            Event::ApprovalAsked { .. } => instruments().call_became("asked"),
            Event::Decided {
                call, verdict, by, ..
            } => count_decision(replica, call, (*verdict, by), commit.at),
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

/// A turn that ends unfinished is worth a look (S3.29): the task is too large, or the model goes in
/// circles.
fn warn_of_limit(replica: &Replica, turn: TurnId) {
    let running = replica.state.control.turn.as_ref();
    let iterations = running.map_or(0, |running| running.iteration.0);
    tracing::warn!(
        session.id = %replica.key.session,
        turn = turn.0,
        iterations,
        "Turn {turn} has asked the model as often as it may ({iterations} times)"
    );
}

fn count_decision(
    replica: &Replica,
    call: &CallId,
    (verdict, by): (Verdict, &Decider),
    at: Timestamp,
) {
    let verdict = match verdict {
        Verdict::Approved => "approved",
        // The call ends with the same word.
        Verdict::Rejected => "rejected",
        Verdict::TakenBack => return instruments().call_became("taken_back"),
    };
    if verdict == "approved" {
        instruments().call_became(verdict);
    }
    let turn = replica.state.control.turn.as_ref();
    let mut queue = turn.into_iter().flat_map(|turn| &turn.queue);
    let waited = queue.find(|waiting| waiting.id == *call);
    if let (Some(call), Decider::Person(_)) = (waited, by) {
        let time = Duration::from_millis(at.since_ms(call.since));
        instruments().approval_took(verdict, time);
    }
}
