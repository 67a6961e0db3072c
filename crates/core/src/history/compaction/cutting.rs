//! Implements the compaction strategies: each returns the entries that stay.

use super::{Earlier, MIN_SUMMARY, Room, missing};
use crate::domain::{CompactionStrategy, CountedEntry};
use crate::history::groups::groups;
use crate::history::past::{before_notes, seq};

/// The entries in memory that stay: those before `head`, and those from `from` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeptRange {
    pub(super) head: usize,
    pub(super) from: usize,
}

/// Earlier turns from which entries may have to be dropped.
pub(super) struct Cutting<'a, C> {
    pub(super) earlier: &'a Earlier<'a, C>,
    /// Tokens of the shortest form of each entry.
    pub(super) least: Vec<u64>,
    /// The entries that the earlier compaction keeps.
    pub(super) standing: KeptRange,
    /// Tokens of the earlier compaction's note.
    pub(super) note: u64,
    pub(super) room: Room,
}

impl<C: Fn(&CountedEntry) -> u64> Cutting<'_, C> {
    /// The earlier compaction's entries, if they and its note still fit.
    pub(super) fn as_before(&self) -> Option<(KeptRange, CompactionStrategy)> {
        let standing = self.standing;
        let middle = if standing.head > 0 && standing.from > standing.head {
            CompactionStrategy::DeleteMiddle
        } else {
            CompactionStrategy::DeleteOld
        };
        let len = self.least.len();
        let (head, tail) = (
            self.weight(0..standing.head),
            self.weight(standing.from..len),
        );
        let messages = standing.head + len.saturating_sub(standing.from);
        let fits = head + tail + self.note <= self.room.tokens && messages <= self.room.messages;
        fits.then_some((standing, middle))
    }

    /// The entries that the first possible strategy keeps. If none is possible, the oldest entries are
    /// dropped, because the question has to fit.
    pub(super) fn kept(
        &self,
        strategies: &[CompactionStrategy],
    ) -> (KeptRange, CompactionStrategy) {
        let mut by = strategies.iter().copied();
        let by = by.find_map(|strategy| Some((self.by(strategy)?, strategy)));
        by.unwrap_or_else(|| (self.delete_old(), CompactionStrategy::DeleteOld))
    }

    fn by(&self, strategy: CompactionStrategy) -> Option<KeptRange> {
        match strategy {
            CompactionStrategy::None => None,
            CompactionStrategy::DeleteOld => Some(self.delete_old()),
            CompactionStrategy::DeleteMiddle => self.delete_middle(),
            CompactionStrategy::PartialSummary => self.summarised(),
        }
    }

    fn delete_old(&self) -> KeptRange {
        // Entries before an existing gap are older than those after it.
        KeptRange {
            head: 0,
            from: self.newest(self.standing.from, self.room),
        }
    }

    /// Leaves room for a summary; `None` = there is not enough room for one.
    fn summarised(&self) -> Option<KeptRange> {
        let summary = self.room.for_summary();
        let beside = Room {
            tokens: self.room.tokens - summary,
            ..self.room
        };
        (summary >= MIN_SUMMARY).then(|| KeptRange {
            head: 0,
            from: self.newest(self.standing.from, beside),
        })
    }

    /// Keeps the first turn, or only its question if the turn is large; `None` = not even the question fits
    /// into a third of the room, or it was dropped already.
    fn delete_middle(&self) -> Option<KeptRange> {
        let entries = self.earlier.entries;
        let has_hole = self.standing.from > self.standing.head || self.earlier.gap.entries > 0;
        let most = if has_hole {
            self.standing.head
        } else {
            entries.len()
        };
        let entries = entries.get(..most)?;
        let question = entries.iter().position(|entry| seq(entry).is_some())?;
        let mut later = entries.iter().enumerate().skip(question + 1);
        let next = later.find(|(_, entry)| seq(entry).is_some());
        let turn = next.map_or(most, |(index, _)| before_notes(entries, index));
        [turn, question + 1].into_iter().find_map(|head| {
            let tokens = self.weight(0..head) + self.longest_note();
            let fits = tokens <= self.room.tokens / 3 && head <= self.room.messages / 3;
            let beside = Room {
                tokens: self.room.tokens.saturating_sub(tokens),
                messages: self.room.messages.saturating_sub(head),
            };
            fits.then(|| KeptRange {
                head,
                from: self.newest(self.standing.from.max(head), beside),
            })
        })
    }

    /// The index of the oldest group from `lower` on with which all newer groups fit.
    fn newest(&self, lower: usize, room: Room) -> usize {
        let all = self.earlier.entries.get(lower..).unwrap_or_default();
        let (mut from, mut used) = (lower + all.len(), 0_u64);
        for group in groups(all) {
            let begins = from - group.len();
            used = used.saturating_add(self.weight(begins..from));
            if used > room.tokens || self.least.len() - begins > room.messages {
                break;
            }
            from = begins;
        }
        from
    }

    fn weight(&self, range: std::ops::Range<usize>) -> u64 {
        self.least.get(range).unwrap_or_default().iter().sum()
    }

    /// Maximum tokens of the note about a missing middle.
    fn longest_note(&self) -> u64 {
        (self.earlier.count)(&missing(self.earlier.gap.place(self.least.len())))
    }
}
