//! Counts this gateway's decisions in the metrics, and logs what operators should look at. No behavior
//! depends on it.

use std::time::Duration;

use super::replica::Replica;
use crate::domain::{CallId, Iteration, Timestamp, TurnId};
use crate::session::{Call, Commit, Decider, Event, Outcome, Verdict};
use crate::telemetry::instruments;

/// Counts an own commit, before it is applied to the state.
pub(super) fn count(replica: &Replica, commit: &Commit) {
    for event in &commit.events {
        match event {
            Event::Answered {
                duration_ms,
                finish,
                turn,
                ..
            } => count_answer(replica, (*turn, finish), *duration_ms),
            Event::TurnFailed { .. } => instruments().turn_ended("failed"),
            Event::Cancelled { .. } => instruments().turn_ended("cancelled"),
            Event::ApprovalAsked { .. } => instruments().call_became("asked"),
            Event::Decided {
                call, verdict, by, ..
            } => count_decision(replica, call, (*verdict, by), commit.at),
            Event::Started { .. } => instruments().call_became("started"),
            Event::Ended { outcome, name, .. } => count_end(replica, name, outcome),
            Event::Thinking {
                turn, iteration, ..
            } => log_request(replica, *turn, *iteration),
            Event::Said { turn, calls, .. } => log_calls(replica, *turn, calls.len()),
            Event::ViewCalled { call, .. } => log_view_call(replica, call),
            Event::ContextReset => log_reset(replica),
            Event::Created { .. }
            | Event::OwnerChanged { .. }
            | Event::Queued { .. }
            | Event::WantsChanged { .. }
            | Event::Consented { .. }
            | Event::ConsentWithdrawn { .. }
            | Event::Spent { .. }
            | Event::StopRequested { .. }
            | Event::CallStopRequested { .. }
            | Event::TaskCreated { .. }
            | Event::ElicitationAsked(_)
            | Event::ElicitationOpened { .. }
            | Event::ElicitationResolved { .. }
            | Event::SamplingMoved { .. }
            | Event::TitlingMoved { .. }
            | Event::ReviewAsked { .. }
            | Event::Reviewed { .. }
            | Event::DryRunMoved { .. }
            | Event::UserMessage { .. }
            | Event::Settled { .. }
            | Event::Withdrawn { .. }
            | Event::TitleSet { .. }
            | Event::ModelChosen { .. }
            | Event::WindowChosen { .. }
            | Event::ContextCut { .. }
            | Event::ContextCompacted(_)
            | Event::CompactedByVendor(_)
            | Event::CompactionChosen { .. }
            | Event::RuleGiven { .. }
            | Event::RuleTakenBack { .. }
            | Event::HostRefused(_)
            | Event::AttachmentPlaced { .. }
            | Event::ResultsShortened { .. }
            | Event::WorkspaceCopied { .. }
            | Event::Forked { .. } => {}
        }
    }
}

fn log_reset(replica: &Replica) {
    tracing::info!(session.id = %replica.key.session, "Conversation reset.");
}

fn log_view_call(replica: &Replica, call: &Call) {
    tracing::info!(session.id = %replica.key.session, call.id = %call.id, tool.name = %call.name, mcp.server = call.server(), "A view asks for a call of `{}`", call.name);
}

fn log_calls(replica: &Replica, turn: TurnId, calls: usize) {
    tracing::debug!(session.id = %replica.key.session, turn = turn.0, calls, "Processing {calls} tool calls.");
}

fn count_answer(replica: &Replica, (turn, finish): (TurnId, &str), duration_ms: u64) {
    tracing::debug!(session.id = %replica.key.session, turn = turn.0, finish, "No tool calls. Task complete.");
    if finish == "max_iterations" {
        warn_of_limit(replica, turn);
    }
    instruments().turn_ended("answered");
    let time = Duration::from_millis(duration_ms);
    instruments().turn_took(replica.provider_kind(), time);
}

/// Logs a turn that reached its limit of iterations (S3.29): the task is too large, or the model goes in
/// circles.
fn warn_of_limit(replica: &Replica, turn: TurnId) {
    let running = replica.state.control.turn.as_ref();
    let iterations = running.map_or(0, |running| running.iteration.0);
    tracing::warn!(
        session.id = %replica.key.session,
        turn = turn.0,
        iterations,
        "Reached maximum iterations ({iterations})."
    );
}

/// Logs the start of a model request (S3.44).
fn log_request(replica: &Replica, turn: TurnId, iteration: Iteration) {
    let session = &replica.key.session;
    if iteration.0 == 1 {
        tracing::debug!(session.id = %session, turn = turn.0, "Starting completeTask loop");
    }
    tracing::debug!(
        session.id = %session,
        turn = turn.0,
        iteration = iteration.0,
        "LLM Iteration {}",
        iteration.0
    );
}

/// Counts and logs the result of a call (S3.44).
fn count_end(replica: &Replica, name: &str, outcome: &Outcome) {
    instruments().call_became(outcome.status());
    log_call(replica, name, outcome);
}

fn log_call(replica: &Replica, name: &str, outcome: &Outcome) {
    let session = &replica.key.session;
    match outcome {
        Outcome::Completed { .. } => {
            tracing::debug!(session.id = %session, tool.name = name, "Tool {name} executed successfully.");
        }
        // The text of a tool is people's data, which logs for operators must not contain.
        Outcome::Failed { code, .. } => {
            let code = code.as_str();
            tracing::warn!(session.id = %session, tool.name = name, code, "Tool execution error for {name}: {code}");
        }
        Outcome::Unknown { .. } | Outcome::Rejected { .. } | Outcome::Cancelled => {}
    }
}

fn count_decision(
    replica: &Replica,
    call: &CallId,
    (verdict, by): (Verdict, &Decider),
    at: Timestamp,
) {
    let verdict = match verdict {
        Verdict::Approved => "approved",
        // Counted when the call ends, with the same word.
        Verdict::Rejected => "rejected",
        Verdict::TakenBack => return instruments().call_became("taken_back"),
    };
    if verdict == "approved" {
        instruments().call_became(verdict);
    }
    let waited = replica.state.control.call(call);
    if let (Some(call), Decider::Person(_)) = (waited, by) {
        let time = Duration::from_millis(at.since_ms(call.since));
        instruments().approval_took(verdict, time);
    }
}
