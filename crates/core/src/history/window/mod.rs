//! What of the past fits the limits. From the question of the running turn on nothing leaves; results
//! are shortened before earlier turns do, and a call is never parted from its results (S2.9).

mod resumed;

use std::sync::Arc;

use crate::domain::{CompactionStrategy, Weighed};
use crate::history::compaction::summary::Due;
use crate::history::compaction::{Earlier, Room, note};
use crate::history::groups::tokens;
use crate::history::limits::Limits;
use crate::history::past::{Past, seq};
use crate::history::turn::Turn;
use crate::session::{Compacted, Compaction, ContextSize, SummarisedBy};

/// What the model is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// The entries, oldest first; results may be in a short form, and a note may say what is missing.
    pub entries: Vec<Arc<Weighed>>,
    /// How many earlier ones are not among them.
    pub left_out: u64,
    /// Tokens of `entries`, by the counter.
    pub tokens: u64,
    /// Tokens that they would have if every result of the running turn were whole.
    pub whole_tokens: u64,
    /// How many results of the running turn are in a short form.
    pub shortened: usize,
    /// Whether any result is in a short form, which the model may want to read on.
    pub has_short_results: bool,
    /// `seq` of the oldest message of a person behind what is left out.
    pub from_seq: Option<u64>,
    /// What this request shows of earlier turns that the one before did not leave out or shorten.
    pub compacted: Option<Box<Compacted>>,
    /// Where it goes on from what the vendor compacted, so many of the first entries stand before that:
    /// the vendor reads past them, and they count nothing.
    pub resumed: Option<usize>,
    /// What a model has to summarise first; without a summary, the strategies but that one say what
    /// leaves.
    pub due: Option<Due>,
}

impl Window {
    /// The entries that the model reads.
    pub fn read(&self) -> &[Arc<Weighed>] {
        let from = self.resumed.unwrap_or_default();
        self.entries.get(from..).unwrap_or_default()
    }

    /// How large it is.
    pub fn size(&self) -> ContextSize {
        ContextSize {
            messages: self.entries.len() as u64,
            tokens: self.tokens,
        }
    }

    /// The same with the summary that was due.
    #[must_use]
    pub fn summarised(
        mut self,
        (summary, by): (&str, SummarisedBy),
        count: impl Fn(&Weighed) -> u64,
    ) -> Self {
        self.due = None;
        if let Some(compacted) = &mut self.compacted {
            compacted.compaction.summary = Some(summary.into());
            compacted.summarised_by = Some(by);
            if let Some(note) = note(&compacted.compaction) {
                let tokens = count(&note);
                self.tokens = self.tokens.saturating_add(tokens);
                self.whole_tokens = self.whole_tokens.saturating_add(tokens);
                compacted.after.tokens = self.tokens;
                self.entries.insert(0, note);
            }
        }
        self
    }
}

/// What fits the limits. Where a vendor has compacted what was said, the model reads what came after that,
/// as long as it fits; what follows is about everybody else.
///
/// All of the newest turn is in it; where it is large, results that the model
/// has read are shortened first, so that earlier turns keep up to half of the tokens. What earlier
/// requests left out stays out. Where that is not enough, results of earlier turns become short, the
/// oldest first, then their thoughts go, then `strategies` say what leaves, until a quarter of the
/// limits is free: the next requests begin as this one does. Only if the newest turn alone does not
/// fit are its newest results shortened too. It may still be larger than the limit: what people and
/// the model wrote is never changed.
pub fn window(
    past: Past<'_>,
    limits: Limits,
    strategies: &[CompactionStrategy],
    count: impl Fn(&Weighed) -> u64,
) -> Window {
    let count = &count;
    if let Some(resumed) = resumed::window(past, limits, count) {
        return resumed;
    }
    if strategies.contains(&CompactionStrategy::None) {
        return whole(past, count);
    }
    let (earlier, turn) = past.parted();
    let mut turn = Turn::new(turn, count);
    let whole_turn = turn.size();
    let earlier = Earlier::new(earlier, past.gap, count);
    // A vendor that compacts reads as much as its model can: what left before stays out even so.
    let stays = |made: &&Compaction| past.compactor.is_some() || limits.keep(made);
    let standing = past.compaction.filter(stays).cloned();
    let standing = standing.unwrap_or_default();
    let mut shown = earlier.shown(&standing);
    let before = shown.size() + whole_turn;
    let room = Room::beside(&turn, limits, limits);
    let is_standing = earlier.explains(&standing) && room.holds(&shown);
    let (mut compacted, mut due) = (None, None);
    let mut in_force = standing;
    if !is_standing {
        let room = Room::beside(&turn, limits.lower(), limits);
        let made = earlier.compact(&in_force, room, strategies);
        let (made, wanted) = made.told(limits, before);
        shown = earlier.shown(&made.compaction);
        in_force = made.compaction.clone();
        (compacted, due) = (Some(Box::new(made)), wanted);
    }
    let taken = shown.tokens + due.as_ref().map_or(0, Due::reserve);
    turn.fit(limits.max_tokens.unwrap_or(u64::MAX).saturating_sub(taken));
    let left_out = in_force.from.saturating_sub(in_force.head);
    let behind = shown.entries.iter().skip(shown.head).chain(&turn.entries);
    let from_seq = behind.filter(|_| left_out > 0).find_map(seq);
    let after = shown.size() + turn.size();
    if let Some(compacted) = &mut compacted {
        compacted.to_seq = from_seq;
        compacted.after = after;
    }
    Window {
        left_out,
        tokens: after.tokens,
        whole_tokens: shown.tokens.saturating_add(whole_turn.tokens),
        shortened: turn.shortened,
        has_short_results: turn.shortened > 0 || in_force.short_before > 0,
        from_seq: from_seq.or_else(|| past.entries.iter().find_map(seq)),
        compacted,
        resumed: None,
        due,
        entries: shown.entries.into_iter().chain(turn.entries).collect(),
    }
}

/// Everything as it is.
fn whole(past: Past<'_>, count: &impl Fn(&Weighed) -> u64) -> Window {
    let tokens = tokens(past.entries, count);
    Window {
        entries: past.entries.to_vec(),
        left_out: past.gap.entries,
        tokens,
        whole_tokens: tokens,
        shortened: 0,
        has_short_results: false,
        from_seq: past.entries.iter().find_map(seq),
        compacted: None,
        resumed: None,
        due: None,
    }
}

#[cfg(test)]
mod tests;
