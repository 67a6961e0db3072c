//! Makes room among earlier turns in stages (S0.11): results are shortened, reasoning is removed, and
//! finally entries are dropped by one strategy after the other, until the rest fits.

pub(super) mod summary;

use std::ops::Range;
use std::sync::Arc;

use self::summary::{Due, NOTE_WORDS};
use super::groups::groups;
use super::limits::Limits;
use super::past::seq;
use super::shorten::{SHORT, shorten};
use super::strategies::{CompactionStrategy, EarlierHistory, Group, Room};
use super::turn::Turn;
use crate::domain::{CountedEntry, Entry, StrategyName};
use crate::session::{Compaction, CompactionReport, ContextSize, Gaps, SHORTEN_RESULTS};

/// The `context:compacted` strategy name of removed reasoning.
const DROP_REASONING: &str = "drop-reasoning";

/// The room that `wanted` leaves beside the turn, and at least half of its tokens if the turn's read
/// results can be shortened enough to stay within `most`.
pub(super) fn room_beside<C: Fn(&CountedEntry) -> u64>(
    turn: &Turn<C>,
    wanted: Limits,
    most: Limits,
) -> Room {
    let tokens = wanted.max_tokens.unwrap_or(u64::MAX);
    let most = most.max_tokens.unwrap_or(u64::MAX);
    let beside = (tokens / 2).max(tokens.saturating_sub(turn.tokens));
    let messages = wanted.max_messages.unwrap_or(usize::MAX);
    Room {
        tokens: beside.min(most.saturating_sub(turn.tokens_when_read_is_short())),
        messages: messages.saturating_sub(turn.entries.len()),
    }
}

/// Earlier turns as a request shows them.
pub(super) struct ShownTurns {
    pub(super) entries: Vec<Arc<CountedEntry>>,
    /// The index of the first entry after all that are left out.
    pub(super) tail: usize,
    pub(super) tokens: u64,
    /// Number of entries without the note in between.
    messages: usize,
}

impl ShownTurns {
    /// The room that the entries take.
    pub(super) fn room(&self) -> Room {
        Room {
            tokens: self.tokens,
            messages: self.messages,
        }
    }

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
    pub(super) strategy: String,
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
            strategy: self.strategy,
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
    gaps: &'a Gaps,
    count: &'a C,
}

impl<'a, C: Fn(&CountedEntry) -> u64> Earlier<'a, C> {
    pub(super) fn new(entries: &'a [Arc<CountedEntry>], gaps: &'a Gaps, count: &'a C) -> Self {
        Self {
            entries,
            gaps,
            count,
        }
    }

    /// Returns true if the compaction leaves out all entries that were removed from memory.
    pub(super) fn explains(&self, compaction: &Compaction) -> bool {
        let mut removed = self.gaps.places();
        removed.all(|removed| {
            let is_between = removed.start >= compaction.head && removed.end <= compaction.from;
            let mut kept = compaction.kept.iter();
            is_between && kept.all(|kept| kept.end <= removed.start || kept.start >= removed.end)
        })
    }

    /// The entries that stay, in the form of the compaction, with a note if entries behind the first are
    /// left out or a summary replaces some.
    pub(super) fn shown(&self, by: &Compaction) -> ShownTurns {
        let mut shown = ShownTurns {
            entries: Vec::with_capacity(self.entries.len() + 1),
            tail: 0,
            tokens: 0,
            messages: 0,
        };
        let mut head = 0;
        for (index, entry) in self.entries.iter().enumerate() {
            let place = self.gaps.place(index);
            if !by.keeps(place) {
                continue;
            }
            head += usize::from(place < by.head);
            shown.tail += usize::from(place < by.from);
            shown.entries.push(form(entry, place, by));
        }
        shown.messages = shown.entries.len();
        if let Some(note) = note(by) {
            shown.entries.insert(head, note);
            shown.tail += 1;
        }
        shown.tokens = shown.entries.iter().map(|entry| (self.count)(entry)).sum();
        shown
    }

    /// Makes room: entries are dropped only if their shortest forms do not fit, and no more results are
    /// shortened than necessary.
    pub(super) fn compact<S: CompactionStrategy>(
        &self,
        standing: &Compaction,
        room: Room,
        strategies: &[S],
    ) -> CompactionResult {
        let least: Vec<u64> = self.entries.iter().map(|entry| self.least(entry)).collect();
        let indexes = 0..self.entries.len();
        let before: Vec<bool> = indexes.map(|at| self.is_kept(at, standing)).collect();
        let mut kept = before.clone();
        let mut compaction = standing.clone();
        let fallback: &dyn CompactionStrategy = &StrategyName::DeleteOld;
        let mut by = fallback;
        if !self.explains(standing) {
            self.cut(&mut compaction, &kept);
        }
        if !room.holds(self.least_room(&kept, &least, standing)) {
            // The old summary no longer applies; another one may be due.
            compaction.summary = None;
            let named = strategies.iter().map(|it| it as &dyn CompactionStrategy);
            // The question has to fit, so the oldest entries leave if no strategy suffices.
            for strategy in named.chain([fallback]) {
                let history = EarlierHistory {
                    groups: self.groups(&kept, &least),
                    room,
                    note: self.longest_note(),
                };
                let Some(choice) = strategy.select(&history) else {
                    continue;
                };
                by = strategy;
                let mut index = kept.iter_mut().filter(|kept| **kept);
                for (group, is_kept) in history.groups.iter().zip(choice) {
                    let entries = index.by_ref().take(group.entries.len());
                    entries.for_each(|kept| *kept = is_kept);
                }
                self.cut(&mut compaction, &kept);
                if room.holds(self.least_room(&kept, &least, &compaction)) {
                    break;
                }
            }
        }
        let has_left = compaction != *standing;
        let is_due = has_left && by.summarises();
        let summary = if is_due { room.for_summary() } else { 0 };
        let (short, unthinking) = (compaction.short_before, compaction.unthinking_before);
        self.shorten(&mut compaction, room.tokens.saturating_sub(summary));
        let strategy = if has_left {
            by.name()
        } else if compaction.short_before > short || compaction.unthinking_before == unthinking {
            SHORTEN_RESULTS
        } else {
            DROP_REASONING
        };
        let left = before.iter().zip(&kept).zip(self.entries);
        let left = left.filter(|((was_kept, kept), _)| **was_kept && !**kept);
        let left: Vec<_> = left.map(|(_, entry)| entry).collect();
        CompactionResult {
            strategy: strategy.to_owned(),
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

    /// Maximum tokens of the note about left-out entries.
    fn longest_note(&self) -> u64 {
        let end = self.gaps.place(self.entries.len());
        let longest = note(&Compaction {
            head: 1,
            kept: std::iter::once(1..1).collect(),
            from: end + 1,
            ..Compaction::default()
        });
        longest.map_or(0, |note| (self.count)(&note))
    }

    fn is_kept(&self, index: usize, by: &Compaction) -> bool {
        by.keeps(self.gaps.place(index))
    }

    /// The room that the kept entries take in their shortest form, with the note of the compaction.
    fn least_room(&self, kept: &[bool], least: &[u64], by: &Compaction) -> Room {
        let kept = kept.iter().zip(least).filter(|(kept, _)| **kept);
        let note = note(by).map_or(0, |note| (self.count)(&note));
        kept.fold(Room::default(), |all, (_, tokens)| {
            all.with(Room {
                tokens: *tokens,
                messages: 1,
            })
        })
        .with(Room {
            tokens: note,
            messages: 0,
        })
    }

    /// The groups of the kept entries, oldest first.
    fn groups(&self, kept: &[bool], least: &[u64]) -> Vec<Group<'a>> {
        let mut all = Vec::new();
        let mut next = 0;
        for run in self.runs(kept) {
            let entries = self.entries.get(run.clone()).unwrap_or_default();
            let first = all.len();
            let mut end = run.end;
            for entries in groups(entries) {
                let from = end - entries.len();
                let tokens = least.get(from..end).unwrap_or_default();
                all.push(Group {
                    entries,
                    tokens: tokens.iter().sum(),
                    is_after_gap: from == run.start && self.gaps.place(from) > next,
                });
                end = from;
            }
            all.get_mut(first..).unwrap_or_default().reverse();
            next = self.gaps.place(run.end - 1) + 1;
        }
        all
    }

    /// The longest ranges of kept entries whose places follow each other.
    fn runs(&self, kept: &[bool]) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        let indexes = kept.iter().enumerate().filter(|(_, kept)| **kept);
        for (index, _) in indexes {
            let follows = index > 0 && self.gaps.place(index - 1) + 1 == self.gaps.place(index);
            match runs.last_mut() {
                Some(run) if run.end == index && follows => run.end += 1,
                _ => runs.push(index..index + 1),
            }
        }
        runs
    }

    /// Makes the compaction keep these entries.
    fn cut(&self, made: &mut Compaction, kept: &[bool]) {
        let end = self.gaps.place(kept.len());
        let runs = self.runs(kept).into_iter();
        let mut places: Vec<Range<u64>> = runs
            .map(|run| self.gaps.place(run.start)..self.gaps.place(run.end - 1) + 1)
            .collect();
        made.from = match places.last() {
            Some(last) if last.end == end => last.start,
            _ => end,
        };
        places.retain(|kept| kept.start < made.from);
        let has_head = places.first().is_some_and(|first| first.start == 0);
        made.head = if has_head { places.remove(0).end } else { 0 };
        made.kept = places;
    }

    /// Shortens the entries that stay, the oldest first: results, then reasoning.
    fn shorten(&self, compaction: &mut Compaction, most: u64) {
        let mut tokens = self.shown(compaction).tokens;
        for is_result in [true, false] {
            for (index, entry) in self.entries.iter().enumerate() {
                let place = self.gaps.place(index);
                if !compaction.keeps(place) {
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

/// The note that replaces the left-out entries: their summary, or their number if entries before them stay.
pub(super) fn note(by: &Compaction) -> Option<Arc<CountedEntry>> {
    let entries = by.left_out();
    let text = match &by.summary {
        _ if entries == 0 => return None,
        Some(summary) => format!(
            "{entries} earlier messages are left out here. A model summarised them:\n{summary}"
        ),
        None if !by.kept.is_empty() => format!(
            "{entries} messages of the conversation are left out here and between the next ones, because \
             it is longer than what fits."
        ),
        None if by.head > 0 => format!(
            "{entries} messages of the conversation are left out here, because it is longer than what fits."
        ),
        None => return None,
    };
    Some(CountedEntry::new(Entry::Note { text }))
}
