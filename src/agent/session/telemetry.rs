//! Counts this gateway's own commits in the metrics, logs what operators should look at, and adds the spans of
//! what a commit ends to traces. No behavior depends on it.

use std::time::Duration;

use super::replica::Replica;
use crate::agent::effects::trace::{TurnEnd, TurnTrace};
use crate::domain::{CallId, Iteration, Timestamp, TurnId};
use crate::session::{Call, Commit, Decider, Event, Outcome, Turn, Verdict};
use crate::telemetry::instruments;

/// Counts an own commit, before it is applied to the state.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "most events are not counted"
)]
pub(super) fn count(replica: &Replica, commit: &Commit) {
    for event in &commit.events {
        match event {
            Event::Answered {
                duration_ms,
                finish,
                turn,
                ..
            } => count_answer(replica, *turn, finish, *duration_ms),
            Event::TurnFailed { .. } => instruments().turn_ended("failed"),
            Event::Cancelled { .. } => instruments().turn_ended("cancelled"),
            Event::ApprovalAsked { .. } => instruments().call_became("asked"),
            Event::Decided {
                call, verdict, by, ..
            } => count_decision(replica, call, *verdict, by, commit.at),
            Event::Started { .. } => instruments().call_became("started"),
            Event::Ended { outcome, name, .. } => count_end(replica, name, outcome),
            Event::Thinking {
                turn, iteration, ..
            } => log_request(replica, *turn, *iteration),
            Event::Said { turn, calls, .. } => log_calls(replica, *turn, calls.len()),
            Event::ViewCalled { call, .. } => log_view_call(replica, call),
            Event::ContextReset => log_reset(replica),
            _ => {}
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

fn count_answer(replica: &Replica, turn: TurnId, finish: &str, duration_ms: u64) {
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

fn count_decision(replica: &Replica, call: &CallId, verdict: Verdict, by: &Decider, at: Timestamp) {
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

/// Adds the spans that an own commit ends, before it is applied to the state. Only the gateway that appended
/// the commit does so, which makes each span once.
#[expect(clippy::wildcard_enum_match_arm, reason = "most events end nothing")]
pub(super) fn record(replica: &Replica, commit: &Commit) {
    // Whatever begins with this commit ends with a later one.
    let turn = replica.state.control.turn.as_ref();
    let traced = turn.and_then(|turn| Some((turn, replica.agent.trace(turn.id, turn.started)?)));
    let Some((turn, trace)) = traced else { return };
    let end = |how: &TurnEnd<'_>| trace_end(replica, &trace, turn, how, commit.at);
    for event in &commit.events {
        match event {
            Event::Decided { call, .. } | Event::Ended { call, .. } => {
                if let Some(call) = find(turn, commit, call) {
                    of_call(&trace, call, event, commit.at);
                }
            }
            Event::Answered { finish, .. } => end(&TurnEnd::Answered(finish)),
            Event::TurnFailed { code, .. } => end(&TurnEnd::Failed(*code)),
            Event::Cancelled { .. } => end(&TurnEnd::Cancelled),
            _ => {}
        }
    }
}

fn of_call(trace: &TurnTrace, call: &Call, event: &Event, at: Timestamp) {
    if let Event::Decided { verdict, by, .. } = event {
        decided(trace, call, *verdict, by, at);
    } else if let Event::Ended { outcome, .. } = event {
        trace.call_ended(call, outcome, at);
    }
}

fn trace_end(replica: &Replica, trace: &TurnTrace, turn: &Turn, how: &TurnEnd<'_>, at: Timestamp) {
    let choice = replica
        .state
        .control
        .asked()
        .unwrap_or(&replica.genesis.model);
    trace.ended(how, replica.provider_kind(), choice, turn.iteration, at);
}

/// Ends the span of a wait. A rule decides at once, so only its rejections are traced.
fn decided(trace: &TurnTrace, call: &Call, verdict: Verdict, by: &Decider, at: Timestamp) {
    let is_person = matches!(by, Decider::Person(_));
    let verdict = match verdict {
        Verdict::Approved if is_person => "approved",
        Verdict::Rejected => "rejected",
        // The call continues to wait, from the time at which the model asked for it.
        Verdict::Approved | Verdict::TakenBack => return,
    };
    trace.waited(call, verdict, Some(by), at);
}

/// Finds a call of the turn, or one that the same commit adds.
fn find<'a>(turn: &'a Turn, commit: &'a Commit, id: &CallId) -> Option<&'a Call> {
    let brought = commit.events.iter().filter_map(|event| {
        if let Event::Queued { calls } = event {
            Some(calls)
        } else {
            None
        }
    });
    let mut brought = brought.flatten().map(|call| &**call);
    turn.call(id)
        .or_else(|| brought.find(|call| call.id == *id))
}
