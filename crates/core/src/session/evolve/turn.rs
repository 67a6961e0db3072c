//! Folds the events of a turn.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "`Control::evolve` is the exhaustive match"
)]

use std::collections::BTreeSet;

use crate::domain::{Effort, ModelRequestId, Timestamp};
use crate::session::event::Event;
use crate::session::event::compaction::{LOWER_LIMIT, SHORTEN_RESULTS, drops_nothing};
use crate::session::state::{Control, Ending, Phase, Turn};

/// Folds an event of the running turn.
pub(super) fn evolve_turn(control: &mut Control, event: &Event, at: Timestamp) {
    match event {
        Event::Thinking {
            turn,
            iteration,
            took,
            ..
        } => {
            let request = ModelRequestId {
                turn: *turn,
                iteration: *iteration,
            };
            let wanted = take_waiting(control, request, took);
            think(control, request, !took.is_empty(), at);
            if let Some(turn) = control.turn.as_mut().filter(|_| wanted.is_some()) {
                turn.effort = wanted;
            }
        }
        Event::Said { text, .. } => {
            count(control, event);
            if let Some(turn) = &mut control.turn {
                turn.phase = Phase::Calling;
                turn.phase_since = at;
                turn.said.clone_from(text);
            }
        }
        Event::Answered { .. } => {
            count(control, event);
            end_turn(control, Ending::Answered);
        }
        Event::Spent { usage, cost, .. } => control.usage.totals += (*usage, *cost),
        Event::TurnFailed { .. } => end_turn(control, Ending::Failed),
        Event::Cancelled { .. } => end_turn(control, Ending::Cancelled),
        Event::ContextCut {
            max_tokens,
            strategy,
            ..
        } => cut(control, strategy, *max_tokens),
        Event::ResultsShortened { .. } => {
            control.context.has_short_results = true;
            if let Some(turn) = &mut control.turn {
                turn.is_shortening_told = true;
            }
        }
        Event::CompactedByVendor(it) => control.usage.compacting = it.usage,
        Event::StopRequested { limit_ms, .. } => {
            if let Some(turn) = &mut control.turn {
                turn.is_stopping = true;
                turn.overdue_ms = *limit_ms;
            }
        }
        _ => {}
    }
}

/// Folds a cut after a request was too long for its provider.
fn cut(control: &mut Control, strategy: &str, max_tokens: Option<u64>) {
    if !drops_nothing(strategy) {
        // Its places count from an entry that was dropped.
        control.context.compaction = None;
    }
    if strategy == LOWER_LIMIT {
        control.context.max_tokens = max_tokens.or(control.context.max_tokens);
    }
    control.context.has_short_results |= strategy == SHORTEN_RESULTS;
    if let Some(turn) = &mut control.turn {
        turn.max_tokens = max_tokens.or(turn.max_tokens);
        turn.is_shortening_told |= strategy == SHORTEN_RESULTS;
        turn.is_limit_lowered |= strategy == LOWER_LIMIT;
    }
}

/// Removes the messages that the request reads from the waiting list, and returns the effort that the
/// newest of them asks for.
fn take_waiting(control: &mut Control, request: ModelRequestId, took: &[u64]) -> Option<Effort> {
    let taken = control.waiting.iter();
    let taken = taken.filter(|message| took.contains(&message.seq));
    let wanted = taken.filter_map(|message| message.effort).next_back();
    control
        .waiting
        .retain(|message| !took.contains(&message.seq));
    control.notes.clear();
    let turn = control.turn.as_ref();
    if turn.is_none_or(|running| running.id != request.turn) {
        // A retry reads no new message and keeps the earlier question.
        control.context.question = took.iter().copied().min().or(control.context.question);
    }
    wanted
}

fn think(control: &mut Control, request: ModelRequestId, has_taken: bool, at: Timestamp) {
    let ModelRequestId { turn, iteration } = request;
    control.turns = turn.0;
    control.keep_decisions();
    let same = control.turn.take().filter(|running| running.id == turn);
    let max_tokens = same.as_ref().and_then(|turn| turn.max_tokens);
    let is_shortening_told = same.as_ref().is_some_and(|turn| turn.is_shortening_told);
    let is_limit_lowered = same.as_ref().is_some_and(|turn| turn.is_limit_lowered);
    let attended = same.as_ref().and_then(|turn| turn.attended);
    let effort = same.as_ref().and_then(|turn| turn.effort);
    let repeated = same.as_ref().and_then(Turn::repeated_calls);
    let (started, rejected) = same.map_or_else(
        || (at, BTreeSet::new()),
        |turn| (turn.started, turn.rejected),
    );
    control.turn = Some(Turn {
        id: turn,
        iteration,
        phase: Phase::Asking,
        started,
        phase_since: at,
        is_stopping: false,
        restarts: 0,
        queue: Vec::new(),
        elicitations: Vec::new(),
        said: String::new(),
        rejected,
        asked: control.model.clone(),
        max_tokens,
        is_shortening_told,
        is_limit_lowered,
        attended: if has_taken { Some(at) } else { attended },
        effort,
        repeated,
        overdue_ms: None,
    });
}

/// Adds the usage of an answer.
fn count(control: &mut Control, event: &Event) {
    if let Event::Said {
        usage,
        cost,
        request,
        ..
    }
    | Event::Answered {
        usage,
        cost,
        request,
        ..
    } = event
    {
        control.usage.totals += (*usage, *cost);
        // The tokens of the vendor's compaction are not part of the context.
        let compacting = control.usage.compacting.take().unwrap_or_default();
        control.usage.last_usage = usage.without(compacting);
        control.usage.last_request.clone_from(request);
    }
}

/// Ends the turn and drops its queue (S2.44).
fn end_turn(control: &mut Control, ending: Ending) {
    control.keep_decisions();
    control.turn = None;
    control.last_ending = Some(ending);
}
