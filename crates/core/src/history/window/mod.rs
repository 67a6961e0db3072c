//! Selects the part of the past that fits the limits. Everything from the running turn's question on stays;
//! results are shortened before earlier turns are dropped, and a call is never separated from its results
//! (S2.9).

mod resumed;

use std::sync::Arc;

use crate::domain::CountedEntry;
use crate::history::compaction::summary::Due;
use crate::history::compaction::{Earlier, note, room_beside};
use crate::history::groups::tokens;
use crate::history::limits::Limits;
use crate::history::past::{Past, seq};
use crate::history::strategies::CompactionStrategy;
use crate::history::turn::Turn;
use crate::session::{Compaction, CompactionReport, ContextSize, SummarisedBy};

/// The part of the past that the model is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// The entries, oldest first; results may be shortened, and a note may replace dropped entries.
    pub entries: Vec<Arc<CountedEntry>>,
    /// Number of earlier entries that are left out.
    pub left_out: u64,
    /// Tokens of `entries`, by the counter.
    pub tokens: u64,
    /// Tokens of `entries` if every result of the running turn were whole.
    pub whole_tokens: u64,
    /// Number of shortened results in the running turn.
    pub shortened: usize,
    /// True if any result is shortened, so that the model may want to read its rest.
    pub has_short_results: bool,
    /// `seq` of the oldest user message after all left-out entries.
    pub from_seq: Option<u64>,
    /// The compaction that begins with this request, if it leaves out or shortens more than the one before.
    pub compacted: Option<Box<CompactionReport>>,
    /// If the request continues from a vendor's compaction: the number of first entries before it, which
    /// the vendor skips and which do not count.
    pub resumed: Option<usize>,
    /// The summary that a model has to write first; without it, the remaining strategies decide what to
    /// drop.
    pub due: Option<Due>,
}

impl Window {
    /// The entries that the model reads.
    pub fn read(&self) -> &[Arc<CountedEntry>] {
        let from = self.resumed.unwrap_or_default();
        self.entries.get(from..).unwrap_or_default()
    }

    /// The size of the window.
    pub fn size(&self) -> ContextSize {
        ContextSize {
            messages: self.entries.len() as u64,
            tokens: self.tokens,
        }
    }

    /// Adds the summary that was due.
    #[must_use]
    pub fn summarised(
        mut self,
        summary: &str,
        by: SummarisedBy,
        count: impl Fn(&CountedEntry) -> u64,
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

/// Selects the entries that fit the limits. If a vendor has compacted the past, the model reads the entries
/// after that, as long as they fit. Otherwise:
///
/// - All of the newest turn stays. If it is large, results that the model has read are shortened first, so
///   that earlier turns keep up to half of the tokens.
/// - Entries that earlier requests left out stay left out.
/// - If that does not suffice, results of earlier turns are shortened, the oldest first, then their
///   reasoning is removed, then one of the `strategies` after the other drops entries, until a quarter of
///   the limits is free, so that the next requests begin with the same entries.
/// - The unread results of the newest turn are shortened only if the turn alone does not fit.
///
/// The window may still exceed the limits, because text of people and the model is never changed.
pub fn window(
    past: Past<'_>,
    limits: Limits,
    strategies: &[impl CompactionStrategy],
    count: impl Fn(&CountedEntry) -> u64,
) -> Window {
    let count = &count;
    if let Some(resumed) = resumed::window(past, limits, count) {
        return resumed;
    }
    if strategies.iter().any(CompactionStrategy::keeps_all) {
        return whole(past, count);
    }
    let (earlier, turn) = past.parted();
    let mut turn = Turn::new(turn, count);
    let whole_turn = turn.size();
    let earlier = Earlier::new(earlier, past.gaps, count);
    // A vendor that compacts reads as much as its model can, but entries left out before stay left out.
    let stays = |made: &&Compaction| past.compactor.is_some() || limits.keep(made);
    let standing = past.compaction.filter(stays).cloned();
    let standing = standing.unwrap_or_default();
    let mut shown = earlier.shown(&standing);
    let before = shown.size() + whole_turn;
    let room = room_beside(&turn, limits, limits);
    let is_standing = earlier.explains(&standing) && room.holds(shown.room());
    let (mut compacted, mut due) = (None, None);
    let mut in_force = standing;
    if !is_standing {
        let room = room_beside(&turn, limits.lower(), limits);
        let made = earlier.compact(&in_force, room, strategies);
        let (made, wanted) = made.told(limits, before);
        shown = earlier.shown(&made.compaction);
        in_force = made.compaction.clone();
        (compacted, due) = (Some(Box::new(made)), wanted);
    }
    let taken = shown.tokens + due.as_ref().map_or(0, Due::reserve);
    turn.fit(limits.max_tokens.unwrap_or(u64::MAX).saturating_sub(taken));
    let left_out = in_force.left_out();
    let behind = shown.entries.iter().skip(shown.tail).chain(&turn.entries);
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

/// The window with all entries unchanged.
fn whole(past: Past<'_>, count: &impl Fn(&CountedEntry) -> u64) -> Window {
    let tokens = tokens(past.entries, count);
    Window {
        entries: past.entries.to_vec(),
        left_out: past.gaps.entries(),
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
