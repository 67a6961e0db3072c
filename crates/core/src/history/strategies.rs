//! Defines how earlier turns make room: each strategy chooses the entries that stay.

use std::sync::Arc;

use crate::domain::{CountedEntry, Entry, StrategyName};
use crate::history::past::seq;

/// Maximum tokens of a summary.
const MAX_SUMMARY: u64 = 2_000;
/// Minimum tokens for a useful summary.
const MIN_SUMMARY: u64 = 150;

/// Chooses which of the earlier entries a model still reads, if not all of them fit (S0.11, S3.12).
///
/// Strategies are applied one after the other, each to what the one before left, until the rest fits. If
/// the last one does not suffice, the oldest entries are dropped. The system prompt and the newest turn are
/// never offered to a strategy, so they always stay. What a strategy drops stays out of later requests until
/// the context is much wider, so that requests begin alike and a vendor's prompt cache works.
pub trait CompactionStrategy: Send + Sync {
    /// The name in `context:compacted` events and in the journal.
    fn name(&self) -> &str;

    /// Returns for each group whether it stays; missing answers mean that it does. `None` = the strategy
    /// cannot make room here.
    fn select(&self, history: &EarlierHistory<'_>) -> Option<Vec<bool>>;

    /// Returns true if nothing may be dropped or shortened.
    fn keeps_all(&self) -> bool {
        false
    }

    /// Returns true if a model has to summarise the dropped entries. `select` leaves room for the summary.
    fn summarises(&self) -> bool {
        false
    }
}

/// The room for earlier turns, or the room that some of them take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Room {
    pub tokens: u64,
    /// Number of entries.
    pub messages: usize,
}

impl Room {
    /// The tokens for a summary.
    pub(super) fn for_summary(self) -> u64 {
        (self.tokens / 4).min(MAX_SUMMARY)
    }

    /// Returns true if entries of that size fit.
    #[must_use]
    pub fn holds(self, size: Self) -> bool {
        size.tokens <= self.tokens && size.messages <= self.messages
    }

    pub(super) fn with(self, more: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(more.tokens),
            messages: self.messages.saturating_add(more.messages),
        }
    }

    fn without(self, less: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(less.tokens),
            messages: self.messages.saturating_sub(less.messages),
        }
    }
}

/// The entries before the newest turn that a strategy chooses from.
#[derive(Debug)]
pub struct EarlierHistory<'a> {
    /// The groups that no earlier compaction dropped, oldest first.
    pub groups: Vec<Group<'a>>,
    /// The room for the groups that stay.
    pub room: Room,
    /// Maximum tokens of the note that is shown if entries behind the first are left out.
    pub note: u64,
}

/// Entries that stay or leave together: calls with their results, or one other entry.
#[derive(Debug, Clone, Copy)]
pub struct Group<'a> {
    pub entries: &'a [Arc<CountedEntry>],
    /// Tokens of the entries in their shortest form.
    pub tokens: u64,
    /// True if entries directly before this group were dropped.
    pub is_after_gap: bool,
}

impl Group<'_> {
    /// Returns true if the group is a message of a person.
    pub fn is_message(&self) -> bool {
        self.entries
            .first()
            .is_some_and(|first| seq(first).is_some())
    }

    fn is_note(&self) -> bool {
        let first = self.entries.first().map(|first| &***first);
        matches!(first, Some(Entry::Note { .. }))
    }
}

impl<T: CompactionStrategy + ?Sized> CompactionStrategy for Arc<T> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn select(&self, history: &EarlierHistory<'_>) -> Option<Vec<bool>> {
        (**self).select(history)
    }

    fn keeps_all(&self) -> bool {
        (**self).keeps_all()
    }

    fn summarises(&self) -> bool {
        (**self).summarises()
    }
}

/// The strategies that settings can name.
impl CompactionStrategy for StrategyName {
    fn name(&self) -> &str {
        self.as_str()
    }

    fn select(&self, history: &EarlierHistory<'_>) -> Option<Vec<bool>> {
        match self {
            Self::None => None,
            Self::DeleteOld => Some(newest(history, history.room)),
            Self::DeleteMiddle => delete_middle(history),
            Self::PartialSummary => beside_summary(history),
        }
    }

    fn keeps_all(&self) -> bool {
        *self == Self::None
    }

    fn summarises(&self) -> bool {
        *self == Self::PartialSummary
    }
}

/// Keeps the newest groups that fit beside a summary; `None` = there is not enough room for one.
fn beside_summary(history: &EarlierHistory<'_>) -> Option<Vec<bool>> {
    let summary = history.room.for_summary();
    let tokens = history.room.tokens - summary;
    (summary >= MIN_SUMMARY).then(|| {
        newest(
            history,
            Room {
                tokens,
                ..history.room
            },
        )
    })
}

/// Keeps the newest groups that fit.
fn newest(history: &EarlierHistory<'_>, mut room: Room) -> Vec<bool> {
    if history
        .groups
        .iter()
        .skip(1)
        .any(|group| group.is_after_gap)
    {
        room.tokens = room.tokens.saturating_sub(history.note);
    }
    let mut choice = Choice::new(history, room);
    choice.add_newest(0, room);
    choice.kept
}

/// Keeps the first turn (or only its question if the turn is large), the newest groups, and turns spread
/// evenly over what is between (S0.14). `None` = not even the question fits into a third of the room, or it
/// was dropped already.
fn delete_middle(history: &EarlierHistory<'_>) -> Option<Vec<bool>> {
    let groups = &history.groups;
    groups.first().filter(|first| !first.is_after_gap)?;
    let behind_gap = groups.iter().skip(1).position(|group| group.is_after_gap);
    let oldest = groups.get(..behind_gap.map_or(groups.len(), |at| at + 1))?;
    let question = oldest.iter().position(Group::is_message)?;
    let turn = turns(oldest, question + 1).next().unwrap_or(oldest.len());
    [turn, question + 1].into_iter().find_map(|head| {
        let mut choice = Choice::new(history, history.room);
        let mut taken = choice.size(0..head);
        taken.tokens += history.note;
        let third = Room {
            tokens: history.room.tokens / 3,
            messages: history.room.messages / 3,
        };
        third.holds(taken).then(|| {
            choice.add(0..head);
            choice.room.tokens = choice.room.tokens.saturating_sub(history.note);
            let two_thirds = Room {
                tokens: choice.room.tokens / 3 * 2,
                messages: choice.room.messages / 3 * 2,
            };
            let from = choice.add_newest(head, two_thirds);
            choice.spread(head..from);
            choice.add_newest(head, choice.room);
            choice.kept
        })
    })
}

/// The indexes from `from` on at which a turn begins: its message, or the notes directly before it.
fn turns<'a>(groups: &'a [Group<'a>], from: usize) -> impl Iterator<Item = usize> + 'a {
    let messages = (from..groups.len()).filter(|at| groups.get(*at).is_some_and(Group::is_message));
    messages.map(move |at| {
        let before = groups.get(from..at).unwrap_or_default();
        at - before
            .iter()
            .rev()
            .take_while(|group| group.is_note())
            .count()
    })
}

/// A choice in the making, with the room that is left.
struct Choice<'a> {
    groups: &'a [Group<'a>],
    kept: Vec<bool>,
    room: Room,
}

impl<'a> Choice<'a> {
    fn new(history: &'a EarlierHistory<'a>, room: Room) -> Self {
        Self {
            groups: &history.groups,
            kept: vec![false; history.groups.len()],
            room,
        }
    }

    /// The tokens and messages of these groups.
    fn size(&self, range: std::ops::Range<usize>) -> Room {
        let groups = self.groups.get(range).unwrap_or_default();
        Room {
            tokens: groups.iter().map(|group| group.tokens).sum(),
            messages: groups.iter().map(|group| group.entries.len()).sum(),
        }
    }

    fn add(&mut self, range: std::ops::Range<usize>) {
        self.room = self.room.without(self.size(range.clone()));
        if let Some(kept) = self.kept.get_mut(range) {
            kept.fill(true);
        }
    }

    /// Keeps the newest groups that fit into `room`, down to `least`, and returns the index of the oldest.
    fn add_newest(&mut self, least: usize, mut room: Room) -> usize {
        let mut from = self.groups.len();
        while from > least {
            let size = self.size(from - 1..from);
            if !self.kept.get(from - 1).copied().unwrap_or_default() {
                if !room.holds(size) {
                    break;
                }
                room = room.without(size);
                self.add(from - 1..from);
            }
            from -= 1;
        }
        from
    }

    /// Keeps every second, third, ... turn of these groups: as many as fit.
    fn spread(&mut self, among: std::ops::Range<usize>) {
        let Some(groups) = self.groups.get(..among.end) else {
            return;
        };
        let begins: Vec<usize> = turns(groups, among.start).collect();
        let ends = begins.iter().skip(1).copied().chain([among.end]);
        let turns: Vec<_> = begins
            .iter()
            .zip(ends)
            .map(|(from, to)| *from..to)
            .collect();
        let turns: Vec<_> = turns
            .into_iter()
            .filter(|turn| self.room.holds(self.size(turn.clone())))
            .collect();
        let every = |step: usize| turns.iter().skip(step / 2).step_by(step).cloned();
        let fits = |step: &usize| {
            let all = every(*step).fold(Room::default(), |all, turn| all.with(self.size(turn)));
            self.room.holds(all)
        };
        if let Some(step) = (1..=turns.len()).find(fits) {
            every(step).for_each(|turn| self.add(turn));
        }
    }
}
