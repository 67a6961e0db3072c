//! What of the past fits the limits. From the question of the running turn on nothing leaves; results
//! are shortened before earlier turns do, and a call is never parted from its results (S2.9).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::shorten::{SHORT, SHORTEST, length, shorten};
use crate::domain::{Entry, Weighed};
use crate::session::Control;

/// What the model may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Limits {
    /// Tokens of history; `None` = no limit.
    pub max_tokens: Option<u64>,
    /// Entries of history; `None` = no limit.
    pub max_messages: Option<usize>,
}

impl Limits {
    /// Those of a session where the settings say `usual`: a session may read whatever the model's
    /// window holds instead.
    #[must_use]
    pub fn of(control: &Control, usual: Self) -> Self {
        if control.reads_whole {
            Self::default()
        } else {
            usual
        }
    }

    /// These limits in a model that reads `window` tokens, `taken` of which are not history: a tenth
    /// stays free, because counts are estimates (S3.35).
    #[must_use]
    pub fn within(self, window: u64, taken: u64) -> Self {
        self.at_most((window / 10 * 9).saturating_sub(taken))
    }

    /// These limits, with no more tokens than that.
    #[must_use]
    pub fn at_most(self, tokens: u64) -> Self {
        Self {
            max_tokens: Some(self.max_tokens.map_or(tokens, |most| most.min(tokens))),
            ..self
        }
    }

    /// Whether everything that these limits let through, `others` let through too.
    pub fn are_within(self, others: Self) -> bool {
        fn is_within<T: Ord>(most: Option<T>, other: Option<T>) -> bool {
            match (most, other) {
                (_, None) => true,
                (None, Some(_)) => false,
                (Some(most), Some(other)) => most <= other,
            }
        }
        is_within(self.max_tokens, others.max_tokens)
            && is_within(self.max_messages, others.max_messages)
    }
}

/// What the model is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// The entries, oldest first; results may be in a short form.
    pub entries: Vec<Arc<Weighed>>,
    /// How many older ones fell out.
    pub left_out: usize,
    pub left_out_tokens: u64,
    /// Tokens of `entries`, by the counter.
    pub tokens: u64,
    /// Tokens that they would have if every result were whole.
    pub whole_tokens: u64,
    /// How many results of the running turn are in a short form.
    pub shortened: usize,
}

impl Window {
    /// `seq` of the oldest message of a person that the model reads.
    pub fn from_seq(&self) -> Option<u64> {
        self.entries.iter().find_map(seq)
    }
}

/// What was said, as far as the session still holds it.
#[derive(Debug, Clone, Copy)]
pub struct Past<'a> {
    /// The entries, oldest first.
    pub entries: &'a [Arc<Weighed>],
    /// `seq` of the message that the newest turn began with; `None` = not known.
    pub question: Option<u64>,
}

impl<'a> Past<'a> {
    /// How many of the newest entries make up the newest turn: its question and what came after it,
    /// which no request may leave out. Messages that came while it ran begin nothing new.
    pub fn newest_turn(self) -> usize {
        let newest = self.entries.iter().rposition(|entry| seq(entry).is_some());
        let first = self.question.and_then(|question| {
            let is_asked = |entry: &Arc<Weighed>| seq(entry).is_some_and(|seq| seq >= question);
            self.entries.iter().position(is_asked)
        });
        let mut from = first.or(newest).unwrap_or_default();
        // Remarks that the model was to read with the question.
        while from > 0
            && matches!(
                self.entries.get(from - 1).map(|e| &***e),
                Some(Entry::Note { .. })
            )
        {
            from -= 1;
        }
        self.entries.len() - from
    }

    /// What came before the newest turn, and the newest turn.
    fn parted(self) -> (&'a [Arc<Weighed>], &'a [Arc<Weighed>]) {
        self.entries
            .split_at(self.entries.len() - self.newest_turn())
    }
}

/// What fits the limits. All of the newest turn is in it; where it is large, results that the model
/// has read are shortened first, so that earlier turns keep up to half of the tokens. Then earlier
/// turns leave, the oldest first, their results short before they are gone. Only if the newest turn
/// alone does not fit are its newest results shortened too. It may still be larger than the limit:
/// what people and the model wrote is never changed.
pub fn window(past: Past<'_>, limits: Limits, count: impl Fn(&Weighed) -> u64) -> Window {
    let count = &count;
    let most = limits.max_tokens.unwrap_or(u64::MAX);
    let (earlier, turn) = past.parted();
    let within = limits.newest_groups(earlier, turn.len());
    let (_, allowed) = earlier.split_at(within);
    let mut turn = Turn::new(turn, count);
    let (shown, shown_tokens) = if tokens(allowed, count).saturating_add(turn.tokens) <= most {
        (allowed.to_vec(), tokens(allowed, count))
    } else {
        let short = turn.tokens_when_read_is_short();
        let room = (most / 2).max(most.saturating_sub(turn.tokens));
        let kept = newest_within(allowed, room.min(most.saturating_sub(short)), count);
        let kept = allowed.get(kept..).unwrap_or_default();
        turn.fit(most.saturating_sub(tokens_when_short(kept, count)));
        lengthen(kept, most.saturating_sub(turn.tokens), count)
    };
    let left_out = earlier.len() - shown.len();
    let (gone, whole) = past.entries.split_at(left_out);
    Window {
        left_out,
        left_out_tokens: tokens(gone, count),
        tokens: shown_tokens.saturating_add(turn.tokens),
        whole_tokens: tokens(whole, count),
        shortened: turn.shortened,
        entries: shown.into_iter().chain(turn.entries).collect(),
    }
}

/// What has to be kept for every later window with these limits: all that could be shown again, and
/// results of earlier turns in short form where none could show them whole.
pub fn retain(
    past: Past<'_>,
    limits: Limits,
    count: impl Fn(&Weighed) -> u64,
) -> Vec<Arc<Weighed>> {
    let count = &count;
    let (earlier, turn) = past.parted();
    let most = limits.max_tokens.unwrap_or(u64::MAX);
    let within = limits.newest_groups(earlier, turn.len());
    let (_, allowed) = earlier.split_at(within);
    let least = tokens_when_short(turn, count);
    let kept = newest_within(allowed, most.saturating_sub(least), count);
    let mut whole = least;
    let kept = allowed.get(kept..).unwrap_or_default();
    let mut retained: Vec<Arc<Weighed>> = Vec::with_capacity(kept.len() + turn.len());
    for group in groups(kept) {
        whole = whole.saturating_add(tokens(group, count));
        let as_is = whole <= most;
        let entries = group.iter().rev();
        retained.extend(entries.map(|entry| {
            let short = (!as_is).then(|| shorten(entry, SHORT)).flatten();
            short.unwrap_or_else(|| Arc::clone(entry))
        }));
    }
    retained.reverse();
    retained.extend_from_slice(turn);
    retained
}

impl Limits {
    /// Where the newest groups of earlier turns begin that may be shown beside a turn of so many
    /// entries.
    fn newest_groups(self, earlier: &[Arc<Weighed>], turn: usize) -> usize {
        let Some(most) = self.max_messages else {
            return 0;
        };
        let mut from = earlier.len();
        for group in groups(earlier) {
            if earlier.len() - from + group.len() + turn > most {
                break;
            }
            from -= group.len();
        }
        from
    }
}

/// The newest turn on its way into a window.
struct Turn<C> {
    entries: Vec<Arc<Weighed>>,
    tokens: u64,
    shortened: usize,
    count: C,
    /// Where the results begin that the model has not read yet.
    unread: usize,
}

impl<C: Fn(&Weighed) -> u64> Turn<C> {
    fn new(entries: &[Arc<Weighed>], count: C) -> Self {
        let said = |entry: &Arc<Weighed>| matches!(***entry, Entry::Assistant { .. });
        Self {
            entries: entries.to_vec(),
            tokens: tokens(entries, &count),
            shortened: 0,
            unread: entries.iter().rposition(said).map_or(0, |said| said + 1),
            count,
        }
    }

    fn tokens_when_read_is_short(&self) -> u64 {
        let (read, unread) = self.entries.split_at(self.unread);
        tokens_when_short(read, &self.count).saturating_add(tokens(unread, &self.count))
    }

    /// Shortens results until it has `most` tokens, or nothing is left to shorten.
    fn fit(&mut self, most: u64) {
        let whole = self.entries.clone();
        let (read, unread) = (0..self.unread, self.unread..whole.len());
        self.shorten(&whole, read, SHORT, most);
        // Each of the newest results keeps the same share, as long as it can be.
        let longest = unread.clone().filter_map(|at| length(whole.get(at)?)).max();
        let mut share = longest.unwrap_or_default();
        while self.tokens > most && share > SHORT {
            share = (share / 4 * 3).max(SHORT);
            self.shorten(&whole, unread.clone(), share, 0);
        }
        self.shorten(&whole, 0..whole.len(), SHORTEST, most);
        let pairs = self.entries.iter().zip(&whole);
        self.shortened = pairs
            .filter(|(shown, whole)| !Arc::ptr_eq(shown, whole))
            .count();
    }

    /// Gives results of `range` `bytes` of their whole form, the oldest first, until `most` tokens
    /// are left.
    fn shorten(
        &mut self,
        whole: &[Arc<Weighed>],
        range: std::ops::Range<usize>,
        bytes: usize,
        most: u64,
    ) {
        for at in range {
            if self.tokens <= most {
                return;
            }
            let (Some(shown), Some(whole)) = (self.entries.get_mut(at), whole.get(at)) else {
                return;
            };
            if let Some(short) = shorten(whole, bytes) {
                self.tokens -= (self.count)(shown);
                self.tokens += (self.count)(&short);
                *shown = short;
            }
        }
    }
}

/// Groups, the newest first. A group is an assistant's calls with their results, or one other entry.
fn groups(mut entries: &[Arc<Weighed>]) -> impl Iterator<Item = &[Arc<Weighed>]> {
    std::iter::from_fn(move || {
        let begins = |entry: &Arc<Weighed>| !matches!(***entry, Entry::ToolResult { .. });
        let (rest, group) = match entries.iter().rposition(begins) {
            Some(at) => entries.split_at(at),
            None if entries.is_empty() => return None,
            None => entries.split_at(0),
        };
        entries = rest;
        Some(group)
    })
}

/// Where the newest groups begin that have `most` tokens when their results are short.
fn newest_within(entries: &[Arc<Weighed>], most: u64, count: &impl Fn(&Weighed) -> u64) -> usize {
    let (mut from, mut used) = (entries.len(), 0_u64);
    for group in groups(entries) {
        used = used.saturating_add(tokens_when_short(group, count));
        if used > most {
            break;
        }
        from -= group.len();
    }
    from
}

/// Entries of earlier turns: results are whole in the newest groups, as far as `most` tokens suffice,
/// and short in the others.
fn lengthen(
    entries: &[Arc<Weighed>],
    most: u64,
    count: &impl Fn(&Weighed) -> u64,
) -> (Vec<Arc<Weighed>>, u64) {
    let mut used = tokens_when_short(entries, count);
    let mut from = entries.len();
    for group in groups(entries) {
        let whole = used - tokens_when_short(group, count) + tokens(group, count);
        if whole > most {
            break;
        }
        used = whole;
        from -= group.len();
    }
    let (short, whole) = entries.split_at(from);
    let short = short.iter();
    let short = short.map(|entry| shorten(entry, SHORT).unwrap_or_else(|| Arc::clone(entry)));
    (short.chain(whole.iter().cloned()).collect(), used)
}

fn tokens(entries: &[Arc<Weighed>], count: &impl Fn(&Weighed) -> u64) -> u64 {
    entries.iter().map(|entry| count(entry)).sum()
}

fn tokens_when_short(entries: &[Arc<Weighed>], count: &impl Fn(&Weighed) -> u64) -> u64 {
    let short = |entry: &Arc<Weighed>| {
        let short = shorten(entry, SHORT);
        short.map_or_else(|| count(entry), |short| count(&short))
    };
    entries.iter().map(short).sum()
}

fn seq(entry: &Arc<Weighed>) -> Option<u64> {
    match &***entry {
        Entry::User { seq, .. } => Some(*seq),
        Entry::Assistant { .. } | Entry::ToolResult { .. } | Entry::Note { .. } => None,
    }
}

#[cfg(test)]
mod tests;
