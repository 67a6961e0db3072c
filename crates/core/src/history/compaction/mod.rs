//! The stages that make room among earlier turns (S0.11): results become short, thoughts go, and at
//! last entries leave, by the first strategy that can.

mod cutting;
pub(super) mod summary;

use std::sync::Arc;

use self::cutting::{Cutting, Kept};
use self::summary::{Due, NOTE_WORDS};
use super::limits::Limits;
use super::past::seq;
use super::shorten::{SHORT, shorten};
use super::turn::Turn;
use crate::domain::{CompactionStrategy, Entry, Weighed};
use crate::session::{Compacted, Compaction, ContextSize, Gap, SHORTEN_RESULTS};

/// How `context:compacted` names thoughts of earlier turns that are left out.
const DROP_REASONING: &str = "drop-reasoning";

/// Tokens of the longest summary.
const MAX_SUMMARY: u64 = 2_000;
/// Tokens that a summary needs to say anything.
const MIN_SUMMARY: u64 = 150;

/// What earlier turns may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    tokens: u64,
    messages: usize,
}

impl Room {
    /// What `wanted` leaves beside a turn: up to half of the tokens where the turn's own results can
    /// become short for that, within `most`.
    pub(super) fn beside<C: Fn(&Weighed) -> u64>(
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

    /// What a summary may take of it.
    fn for_summary(self) -> u64 {
        (self.tokens / 4).min(MAX_SUMMARY)
    }

    pub(super) fn holds(self, shown: &Shown) -> bool {
        shown.tokens <= self.tokens && shown.messages <= self.messages
    }
}

/// Earlier turns as a request shows them.
pub(super) struct Shown {
    pub(super) entries: Vec<Arc<Weighed>>,
    /// How many of them stand before what is left out.
    pub(super) head: usize,
    pub(super) tokens: u64,
    /// How many of them were said: all but the note in between.
    messages: usize,
}

impl Shown {
    pub(super) fn size(&self) -> ContextSize {
        ContextSize {
            messages: self.messages as u64,
            tokens: self.tokens,
        }
    }
}

/// A compaction that was made.
pub(super) struct Made {
    pub(super) compaction: Compaction,
    pub(super) strategy: &'static str,
    /// How many entries left.
    pub(super) left: u64,
    /// `seq` of the first message of a person among them.
    pub(super) from_seq: Option<u64>,
    /// What a summary has to stand for.
    pub(super) due: Option<Due>,
}

impl Made {
    /// What people are told of it, with the limits that it was made for, and what has to be summarised.
    /// What was sent is filled in when the request is whole.
    pub(super) fn told(self, limits: Limits, before: ContextSize) -> (Compacted, Option<Due>) {
        let compacted = Compacted {
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
    entries: &'a [Arc<Weighed>],
    gap: Gap,
    count: &'a C,
}

impl<'a, C: Fn(&Weighed) -> u64> Earlier<'a, C> {
    pub(super) fn new(entries: &'a [Arc<Weighed>], gap: Gap, count: &'a C) -> Self {
        Self {
            entries,
            gap,
            count,
        }
    }

    /// Whether all that is missing is left out by it.
    pub(super) fn explains(&self, compaction: &Compaction) -> bool {
        let end = self.gap.place(self.gap.after);
        let covers = compaction.head <= self.gap.after as u64 && compaction.from >= end;
        self.gap.entries == 0 || covers
    }

    /// The entries that stay, in their form, and a note where some of the middle are missing.
    pub(super) fn shown(&self, by: &Compaction) -> Shown {
        let mut shown = Shown {
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

    /// Makes room: entries leave only where their shortest forms do not fit, and no more is shortened
    /// than has to be.
    pub(super) fn compact(
        &self,
        standing: &Compaction,
        room: Room,
        strategies: &[CompactionStrategy],
    ) -> Made {
        let least = self.entries.iter().map(|entry| self.least(entry));
        let cut = Cutting {
            earlier: self,
            least: least.collect(),
            standing: self.kept(standing),
            note: note(standing).map_or(0, |note| (self.count)(&note)),
            room,
        };
        let as_before = cut.as_before();
        // A summary that does not fit any more leaves, even where nothing else does.
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
            // Another one is due, or none.
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
        Made {
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

    /// What it keeps of the entries that are held. What is missing without its word left before.
    fn kept(&self, by: &Compaction) -> Kept {
        let kept = Kept {
            head: self.gap.index(by.head),
            from: self.gap.index(by.from),
        };
        let hole = self.gap.after;
        if self.gap.entries == 0 || kept.from > hole || self.explains(by) {
            return kept;
        }
        let head = if by.from > by.head { kept.head } else { hole };
        Kept {
            head: head.min(hole),
            from: hole,
        }
    }

    /// Shortens what is shown, the oldest first: results, then thoughts.
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

    fn least(&self, entry: &Arc<Weighed>) -> u64 {
        let short = shorten(entry, SHORT).or_else(|| unthinking(entry));
        (self.count)(short.as_ref().unwrap_or(entry))
    }
}

/// How an entry of that place is shown.
pub(super) fn form(entry: &Arc<Weighed>, place: u64, by: &Compaction) -> Arc<Weighed> {
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

/// An answer without what only its vendor reads: thoughts and their signatures, which vendors want
/// back for the running turn only. None = it has none.
fn unthinking(entry: &Weighed) -> Option<Arc<Weighed>> {
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

/// What stands in the place of what is left out: its summary, or how much of the middle is missing.
pub(super) fn note(by: &Compaction) -> Option<Arc<Weighed>> {
    let entries = by
        .from
        .checked_sub(by.head)
        .filter(|entries| *entries > 0)?;
    match &by.summary {
        Some(summary) => Some(Weighed::new(Entry::Note {
            text: format!(
                "{entries} earlier messages are left out here. A model summarised them:\n{summary}"
            ),
        })),
        None => (by.head > 0).then(|| missing(entries)),
    }
}

/// What stands where entries of the middle are missing.
fn missing(missing: u64) -> Arc<Weighed> {
    Weighed::new(Entry::Note {
        text: format!(
            "{missing} messages of the conversation are left out here, because it is longer than \
             what fits."
        ),
    })
}
