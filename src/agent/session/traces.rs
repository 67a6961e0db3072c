//! Adds spans to traces for what an own commit ends. No behavior depends on it.

use super::replica::Replica;
use crate::agent::effects::trace::{TurnEnd, TurnTrace};
use crate::domain::{CallId, Timestamp};
use crate::session::{Call, Commit, Decider, Event, Turn, Verdict};

/// Adds the spans that an own commit ends, before it is applied to the state. Only the gateway that appended
/// the commit does so, which makes each span once.
#[expect(clippy::wildcard_enum_match_arm, reason = "most events end nothing")]
pub(super) fn record(replica: &Replica, commit: &Commit) {
    // Whatever begins with this commit ends with a later one.
    let turn = replica.state.control.turn.as_ref();
    let traced = turn.and_then(|turn| Some((turn, replica.agent.trace(turn.id, turn.started)?)));
    let Some((turn, trace)) = traced else { return };
    let end = |how: &TurnEnd<'_>| trace_end(replica, (&trace, turn), how, commit.at);
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
        decided(trace, call, (*verdict, by), at);
    } else if let Event::Ended { outcome, .. } = event {
        trace.call_ended(call, outcome, at);
    }
}

fn trace_end(
    replica: &Replica,
    (trace, turn): (&TurnTrace, &Turn),
    how: &TurnEnd<'_>,
    at: Timestamp,
) {
    let choice = replica
        .state
        .control
        .asked()
        .unwrap_or(&replica.genesis.model);
    let asked = (replica.provider_kind(), choice, turn.iteration);
    trace.ended(how, asked, at);
}

/// Ends the span of a wait. A rule decides at once, so only its rejections are traced.
fn decided(trace: &TurnTrace, call: &Call, (verdict, by): (Verdict, &Decider), at: Timestamp) {
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
