//! Fits the newest turn into a window by shortening its results.

use std::sync::Arc;

use super::groups::{tokens, tokens_when_short};
use super::shorten::{SHORT, SHORTEST, length, shorten};
use crate::domain::{CountedEntry, Entry};
use crate::session::ContextSize;

/// The newest turn while it is fitted into a window.
pub(super) struct Turn<C> {
    pub(super) entries: Vec<Arc<CountedEntry>>,
    pub(super) tokens: u64,
    /// Number of shortened results.
    pub(super) shortened: usize,
    count: C,
    /// Index of the first entry that the model has not read yet.
    unread: usize,
}

impl<C: Fn(&CountedEntry) -> u64> Turn<C> {
    pub(super) fn new(entries: &[Arc<CountedEntry>], count: C) -> Self {
        let said = |entry: &Arc<CountedEntry>| matches!(***entry, Entry::Assistant { .. });
        Self {
            entries: entries.to_vec(),
            tokens: tokens(entries, &count),
            shortened: 0,
            unread: entries.iter().rposition(said).map_or(0, |said| said + 1),
            count,
        }
    }

    /// The current size of the turn.
    pub(super) fn size(&self) -> ContextSize {
        ContextSize {
            messages: self.entries.len() as u64,
            tokens: self.tokens,
        }
    }

    pub(super) fn tokens_when_read_is_short(&self) -> u64 {
        let (read, unread) = self.entries.split_at(self.unread);
        tokens_when_short(read, &self.count).saturating_add(tokens(unread, &self.count))
    }

    /// Shortens results until the turn has at most `most` tokens, or no result can be shortened further.
    pub(super) fn fit(&mut self, most: u64) {
        let whole = self.entries.clone();
        let (read, unread) = (0..self.unread, self.unread..whole.len());
        self.shorten(&whole, read, SHORT, in_steps(self.tokens, most));
        // All unread results are cut to the same share, as large as possible.
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

    /// Cuts results of `range` to `bytes` bytes of their whole form, the oldest first, until the turn has
    /// at most `most` tokens.
    fn shorten(
        &mut self,
        whole: &[Arc<CountedEntry>],
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

/// The token target for a turn, in steps of an eighth of the limit: successive requests then shorten the
/// same results, so that the vendor's prompt cache keeps matching.
fn in_steps(tokens: u64, most: u64) -> u64 {
    let step = (most / 8).max(1);
    let excess = tokens.saturating_sub(most).div_ceil(step);
    tokens.saturating_sub(excess.saturating_mul(step))
}
