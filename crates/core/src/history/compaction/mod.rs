//! Makes room among earlier turns in stages (S0.11): results are shortened, reasoning is removed, and
//! finally entries are dropped by the first possible strategy.

mod cutting;
pub(super) mod summary;

use std::sync::Arc;

use self::cutting::{Cutting, KeptRange};
use self::summary::{Due, NOTE_WORDS};
use super::limits::Limits;
use super::past::seq;
use super::shorten::{SHORT, shorten};
use super::turn::Turn;
use crate::domain::{CompactionStrategy, CountedEntry, Entry};
use crate::session::{Compaction, CompactionReport, ContextSize, Gap, SHORTEN_RESULTS};

/// The `context:compacted` strategy name of removed reasoning.
const DROP_REASONING: &str = "drop-reasoning";

/// Maximum tokens of a summary.
const MAX_SUMMARY: u64 = 2_000;
/// Minimum tokens for a useful summary.
const MIN_SUMMARY: u64 = 150;

/// The room for earlier turns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    tokens: u64,
    messages: usize,
}

impl Room {
    /// The room that `wanted` leaves beside the turn, and at least half of its tokens if the turn's read
    /// results can be shortened enough to stay within `most`.
    pub(super) fn beside<C: Fn(&CountedEntry) -> u64>(
        turn: &Turn<C>,
        wanted: Limits,
        most: Limits,
    ) -> Self {
        let tokens = wanted.max_tokens.unwrap_or(u64::MAX);
        let most = most.max_tokens.unwrap_or(u64::MAX);
        let beside = (tokens / 2).max(tokens.saturating_sub(turn.tokens));
        let messages = wanted.max_messages.unwrap_or(usize::MAX);
        Self {
            tokens: beside.min(most.saturating_sub(turn.tokens_when_read_is_short())),
            messages: messages.saturating_sub(turn.entries.len()),
        }
    }

    /// The tokens for a summary.
    fn for_summary(self) -> u64 {
        (self.tokens / 4).min(MAX_SUMMARY)
    }

    pub(super) fn holds(self, shown: &ShownTurns) -> bool {
        shown.tokens <= self.tokens && shown.messages <= self.messages
    }
}

/// Earlier turns as a request shows them.
pub(super) struct ShownTurns {
    pub(super) entries: Vec<Arc<CountedEntry>>,
    /// Number of entries before the left-out ones.
    pub(super) head: usize,
    pub(super) tokens: u64,
    /// Number of entries without the note in between.
    messages: usize,
}

impl ShownTurns {
    pub(super) fn size(&self) -> ContextSize {
        ContextSize {
            messages: self.messages as u64,
            tokens: self.tokens,
        }
    }
}

/// The result of a compaction.
pub(super) struct CompactionResult {
    pub(super) compaction: Compaction,
    pub(super) strategy: &'static str,
    /// Number of dropped entries.
    pub(super) left: u64,
    /// `seq` of the first user message among them.
    pub(super) from_seq: Option<u64>,
    /// The summary that a model still has to write.
    pub(super) due: Option<Due>,
}

impl CompactionResult {
    /// The event with the limits that the compaction was made for, and the summary that is still due. The
    /// figures of the sent request are filled in later.
    pub(super) fn told(
        self,
        limits: Limits,
        before: ContextSize,
    ) -> (CompactionReport, Option<Due>) {
        let compacted = CompactionReport {
            strategy: self.strategy.to_owned(),
            compaction: Compaction {
                max_tokens: limits.max_tokens,
                max_messages: limits.max_messages.map(|most| most as u64),
                ..self.compaction
            },
            left: self.left,
            from_seq: self.from_seq,
            to_seq: None,
            summarised_by: None,
            before,
            after: before,
        };
        (compacted, self.due)
    }
}

/// Earlier turns, oldest first.
pub(super) struct Earlier<'a, C> {
    entries: &'a [Arc<CountedEntry>],
    gap: Gap,
    count: &'a C,
}

impl<'a, C: Fn(&CountedEntry) -> u64> Earlier<'a, C> {
    pub(super) fn new(entries: &'a [Arc<CountedEntry>], gap: Gap, count: &'a C) -> Self {
        Self {
            entries,
            gap,
            count,
        }
    }

    /// Returns true if the compaction leaves out all entries that were removed from memory.
    pub(super) fn explains(&self, compaction: &Compaction) -> bool {
        let end = self.gap.place(self.gap.after);
        let covers = compaction.head <= self.gap.after as u64 && compaction.from >= end;
        self.gap.entries == 0 || covers
    }

    /// The entries that stay, in the form of the compaction, with a note if the middle or a summary
    /// replaces some.
    pub(super) fn shown(&self, by: &Compaction) -> ShownTurns {
        let mut shown = ShownTurns {
            entries: Vec::with_capacity(self.entries.len() + 1),
            head: 0,
            tokens: 0,
            messages: 0,
        };
        for (index, entry) in self.entries.iter().enumerate() {
            let place = self.gap.place(index);
            if place < by.head {
                shown.head += 1;
            } else if place < by.from {
                continue;
            }
            shown.entries.push(form(entry, place, by));
        }
        shown.messages = shown.entries.len();
        if let Some(note) = note(by) {
            shown.entries.insert(shown.head, note);
            shown.head += 1;
        }
        shown.tokens = shown.entries.iter().map(|entry| (self.count)(entry)).sum();
        shown
    }

    /// Makes room: entries are dropped only if their shortest forms do not fit, and no more results are
    /// shortened than necessary.
    pub(super) fn compact(
        &self,
        standing: &Compaction,
        room: Room,
        strategies: &[CompactionStrategy],
    ) -> CompactionResult {
        let least = self.entries.iter().map(|entry| self.least(entry));
        let cut = Cutting {
            earlier: self,
            least: least.collect(),
            standing: self.kept(standing),
            note: note(standing).map_or(0, |note| (self.count)(&note)),
            room,
        };
        let as_before = cut.as_before();
        // A summary that no longer fits is dropped, even if no entry is.
        let summary_leaves = as_before.is_none() && standing.summary.is_some();
        let (kept, by) = as_before.unwrap_or_else(|| cut.kept(strategies));
        let mut compaction = Compaction {
            head: kept.head as u64,
            from: self.gap.place(kept.from),
            ..standing.clone()
        };
        if kept == cut.standing && self.gap.entries == 0 {
            (compaction.head, compaction.from) = (standing.head, standing.from);
        }
        let is_cut = compaction.from > standing.from || compaction.head != standing.head;
        let has_left = is_cut || summary_leaves;
        if has_left {
            // The old summary no longer applies; another one may be due.
            compaction.summary = None;
        }
        let (short, unthinking) = (compaction.short_before, compaction.unthinking_before);
        let is_due = has_left && by == CompactionStrategy::PartialSummary;
        let summary = if is_due { room.for_summary() } else { 0 };
        self.shorten(&mut compaction, room.tokens.saturating_sub(summary));
        let strategy = if has_left {
            by.as_str()
        } else if compaction.short_before > short || compaction.unthinking_before == unthinking {
            SHORTEN_RESULTS
        } else {
            DROP_REASONING
        };
        let was_there = |index: usize| index < cut.standing.head || index >= cut.standing.from;
        let left = self.entries.iter().enumerate().take(kept.from);
        let left = left.filter(|(index, _)| *index >= kept.head && was_there(*index));
        let left: Vec<_> = left.map(|(_, entry)| entry).collect();
        CompactionResult {
            strategy,
            left: left.len() as u64,
            from_seq: left.iter().copied().find_map(seq),
            due: is_due.then(|| Due {
                earlier: standing.summary.clone(),
                entries: left.into_iter().cloned().collect(),
                max_tokens: summary.saturating_sub(NOTE_WORDS),
            }),
            compaction,
        }
    }

    /// The entries in memory that a compaction keeps. Entries removed from memory that it does not cover
    /// count as dropped before.
    fn kept(&self, by: &Compaction) -> KeptRange {
        let kept = KeptRange {
            head: self.gap.index(by.head),
            from: self.gap.index(by.from),
        };
        let hole = self.gap.after;
        if self.gap.entries == 0 || kept.from > hole || self.explains(by) {
            return kept;
        }
        let head = if by.from > by.head { kept.head } else { hole };
        KeptRange {
            head: head.min(hole),
            from: hole,
        }
    }

    /// Shortens the entries that stay, the oldest first: results, then reasoning.
    fn shorten(&self, compaction: &mut Compaction, most: u64) {
        let mut tokens = self.shown(compaction).tokens;
        for is_result in [true, false] {
            for (index, entry) in self.entries.iter().enumerate() {
                let place = self.gap.place(index);
                if place >= compaction.head && place < compaction.from {
                    continue;
                }
                if tokens <= most {
                    return;
                }
                let now = form(entry, place, compaction);
                let short = if is_result {
                    shorten(&now, SHORT)
                } else {
                    unthinking(&now)
                };
                if let Some(short) = short {
                    tokens = tokens.saturating_sub((self.count)(&now)) + (self.count)(&short);
                    let before = if is_result {
                        &mut compaction.short_before
                    } else {
                        &mut compaction.unthinking_before
                    };
                    *before = place + 1;
                }
            }
        }
    }

    fn least(&self, entry: &Arc<CountedEntry>) -> u64 {
        let short = shorten(entry, SHORT).or_else(|| unthinking(entry));
        (self.count)(short.as_ref().unwrap_or(entry))
    }
}

/// The form of the entry at `place` under a compaction.
pub(super) fn form(entry: &Arc<CountedEntry>, place: u64, by: &Compaction) -> Arc<CountedEntry> {
    let short = (place < by.short_before)
        .then(|| shorten(entry, SHORT))
        .flatten();
    let short = short.or_else(|| {
        (place < by.unthinking_before)
            .then(|| unthinking(entry))
            .flatten()
    });
    short.unwrap_or_else(|| Arc::clone(entry))
}

/// An answer without its native blocks: reasoning and signatures, which vendors only want back in the
/// running turn. `None` = there are none.
fn unthinking(entry: &CountedEntry) -> Option<Arc<CountedEntry>> {
    match &**entry {
        Entry::Assistant {
            text,
            calls,
            native: Some(_),
        } => Some(entry.reworded(Entry::Assistant {
            text: text.clone(),
            calls: calls.clone(),
            native: None,
        })),
        Entry::Assistant { .. }
        | Entry::User { .. }
        | Entry::ToolResult { .. }
        | Entry::Note { .. } => None,
    }
}

/// The note that replaces the left-out entries: their summary, or the number of entries missing in the
/// middle.
pub(super) fn note(by: &Compaction) -> Option<Arc<CountedEntry>> {
    let entries = by
        .from
        .checked_sub(by.head)
        .filter(|entries| *entries > 0)?;
    match &by.summary {
        Some(summary) => Some(CountedEntry::new(Entry::Note {
            text: format!(
                "{entries} earlier messages are left out here. A model summarised them:\n{summary}"
            ),
        })),
        None => (by.head > 0).then(|| missing(entries)),
    }
}

/// The note about entries missing in the middle.
fn missing(missing: u64) -> Arc<CountedEntry> {
    CountedEntry::new(Entry::Note {
        text: format!(
            "{missing} messages of the conversation are left out here, because it is longer than \
             what fits."
        ),
    })
}
