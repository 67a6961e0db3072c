//! The part of the fold that moves a turn along.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "`Control::evolve` is the exhaustive match"
)]

use std::collections::BTreeSet;

use crate::domain::{MicroUsd, Timestamp, TokenUsage};
use crate::session::event::{Event, SHORTEN_RESULTS};
use crate::session::state::{Control, Ending, Phase, Turn};

impl Control {
    pub(super) fn evolve_turn(&mut self, event: &Event, at: Timestamp) {
        match event {
            Event::Thinking {
                turn,
                iteration,
                took,
                ..
            } => {
                self.waiting.retain(|message| !took.contains(&message.seq));
                self.notes.clear();
                let is_new = self.turn.as_ref().is_none_or(|running| running.id != *turn);
                if is_new {
                    // A retry takes nothing: it is about the same question.
                    self.question = took.iter().copied().min().or(self.question);
                }
                self.think((*turn, *iteration), !took.is_empty(), at);
            }
            Event::Said {
                text, usage, cost, ..
            } => {
                self.count(*usage, *cost);
                if let Some(turn) = &mut self.turn {
                    turn.phase = Phase::Calling;
                    turn.phase_since = at;
                    turn.said.clone_from(text);
                }
            }
            Event::Answered { usage, cost, .. } => {
                self.count(*usage, *cost);
                self.end_turn(Ending::Answered);
            }
            Event::TurnFailed { .. } => self.end_turn(Ending::Failed),
            Event::Cancelled { .. } => self.end_turn(Ending::Cancelled),
            Event::ContextCut {
                max_tokens,
                strategy,
                ..
            } => {
                if let Some(turn) = &mut self.turn {
                    turn.max_tokens = max_tokens.or(turn.max_tokens);
                    turn.is_shortening_told |= strategy == SHORTEN_RESULTS;
                }
            }
            Event::ResultsShortened { .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.is_shortening_told = true;
                }
            }
            Event::StopRequested { limit_ms, .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.is_stopping = true;
                    turn.overdue_ms = *limit_ms;
                }
            }
            _ => {}
        }
    }

    fn think(&mut self, (turn, iteration): (u64, u32), has_taken: bool, at: Timestamp) {
        self.turns = turn;
        self.keep_decisions();
        let same = self.turn.take().filter(|running| running.id == turn);
        let max_tokens = same.as_ref().and_then(|turn| turn.max_tokens);
        let is_shortening_told = same.as_ref().is_some_and(|turn| turn.is_shortening_told);
        let attended = same.as_ref().and_then(|turn| turn.attended);
        let (started, rejected) = same.map_or_else(
            || (at, BTreeSet::new()),
            |turn| (turn.started, turn.rejected),
        );
        self.turn = Some(Turn {
            id: turn,
            iteration,
            phase: Phase::Asking,
            started,
            phase_since: at,
            is_stopping: false,
            restarts: 0,
            queue: Vec::new(),
            said: String::new(),
            rejected,
            asked: self.model.clone(),
            max_tokens,
            is_shortening_told,
            attended: if has_taken { Some(at) } else { attended },
            overdue_ms: None,
        });
    }

    fn count(&mut self, usage: TokenUsage, cost: Option<MicroUsd>) {
        self.totals += (usage, cost);
        self.last_usage = usage;
    }

    /// The queue goes with the turn (S2.44).
    fn end_turn(&mut self, ending: Ending) {
        self.keep_decisions();
        self.turn = None;
        self.last_ending = Some(ending);
    }
}
