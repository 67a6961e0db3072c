//! Records which earlier entries the model reads shortened or not at all. Compaction is an event, so that
//! successive requests send the same entries until the next compaction and the vendor's prompt cache keeps
//! matching.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::{MicroUsd, TokenUsage};

/// The `context:compacted` strategy name of shortened results.
pub const SHORTEN_RESULTS: &str = "shorten-results";
/// The `context:compacted` strategy name of a vendor's own compaction.
pub const BY_VENDOR: &str = "vendor";
/// The `context:compacted` strategy name of a limit lowered after a provider refused a request.
pub const LOWER_LIMIT: &str = "lower-limit";
/// The `context:compacted` strategy name of a context cut to the newest turn.
const FRESH_CONTEXT: &str = "fresh-context";

/// The ways to shrink a request that its provider refused as too long, in the order in which they are
/// tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutKind {
    /// Results are shortened; every entry stays.
    Shortening,
    /// The history gets a lower limit, within which the session's strategies choose the entries to drop.
    LowerLimit,
    /// Only the newest turn stays.
    FreshContext,
}

impl CutKind {
    /// The strategy name in events.
    pub fn strategy(self) -> &'static str {
        match self {
            Self::Shortening => SHORTEN_RESULTS,
            Self::LowerLimit => LOWER_LIMIT,
            Self::FreshContext => FRESH_CONTEXT,
        }
    }

    /// Parses the strategy name in an event; unknown names, from earlier releases, mean a fresh context.
    pub(in crate::session) fn of(strategy: &str) -> Self {
        match strategy {
            SHORTEN_RESULTS => Self::Shortening,
            LOWER_LIMIT => Self::LowerLimit,
            _ => Self::FreshContext,
        }
    }
}

/// Returns true if a cut with this strategy name keeps every entry.
pub(in crate::session) fn drops_nothing(strategy: &str) -> bool {
    strategy == SHORTEN_RESULTS || strategy == LOWER_LIMIT
}

/// The size of a working context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextSize {
    pub messages: u64,
    pub tokens: u64,
}

impl std::ops::Add for ContextSize {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self {
            messages: self.messages.saturating_add(more.messages),
            tokens: self.tokens.saturating_add(more.tokens),
        }
    }
}

/// The form in which earlier entries are shown. A place counts the entries since the context began, including
/// those no longer in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compaction {
    /// Number of first entries that stay.
    #[serde(default)]
    pub head: u64,
    /// The places between `head` and `from` whose entries stay, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Range<u64>>,
    /// The place from which all entries stay.
    #[serde(default)]
    pub from: u64,
    /// Results before this place are shortened.
    #[serde(default)]
    pub short_before: u64,
    /// Reasoning before this place is left out.
    #[serde(default)]
    pub unthinking_before: u64,
    /// A model's summary of the entries that are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Arc<str>>,
    /// Token limit of the history that this was computed for; `None` = no limit.
    #[serde(default)]
    pub max_tokens: Option<u64>,
    /// Entry limit of the history that this was computed for; `None` = no limit.
    #[serde(default)]
    pub max_messages: Option<u64>,
}

impl Compaction {
    /// Returns true if the entry at `place` stays.
    pub fn keeps(&self, place: u64) -> bool {
        place < self.head
            || place >= self.from
            || self.kept.iter().any(|kept| kept.contains(&place))
    }

    /// Number of entries that are left out.
    pub fn left_out(&self) -> u64 {
        let kept: u64 = self.kept.iter().map(|kept| kept.end - kept.start).sum();
        self.from.saturating_sub(self.head).saturating_sub(kept)
    }
}

/// A compaction with its figures for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionReport {
    /// The strategy that sufficed, or `shorten-results` or `drop-reasoning`.
    pub strategy: String,
    pub compaction: Compaction,
    /// Number of entries that this compaction dropped.
    pub left: u64,
    /// `seq` of the oldest user message among the dropped entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_seq: Option<u64>,
    /// `seq` of the first user message after the dropped entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_seq: Option<u64>,
    /// The model that wrote the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summarised_by: Option<SummarisedBy>,
    /// The context without this compaction.
    pub before: ContextSize,
    /// The context that was sent.
    pub after: ContextSize,
}

/// The model that wrote a summary, with its usage, which is counted like that of other attempts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummarisedBy {
    pub provider: String,
    pub model: String,
    pub usage: TokenUsage,
    /// The cost, if the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroUsd>,
}

/// A vendor's own compaction before an answer. The block that replaces the compacted entries is stored with
/// the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactedByVendor {
    pub provider: String,
    pub model: String,
    /// The text that replaces the compacted entries; `None` = only the vendor can read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Tokens before the compaction, if the vendor reported them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// Tokens after the compaction, if the vendor reported them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// Usage of the compaction, if the vendor reports it separately; a part of the answer's usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// Cost of the compaction, if the price is known; a part of the answer's cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroUsd>,
}

/// A place where entries were removed from memory because no request can include them; the journal has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Gap {
    /// Number of entries in memory before the gap.
    after: usize,
    /// Number of removed entries.
    entries: u64,
}

/// The gaps among the entries in memory, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Gaps(Vec<Gap>);

impl Gaps {
    /// No gaps.
    pub const NONE: &'static Self = &Self(Vec::new());

    /// The gaps of the entries in memory, from the place of each, and the place after all of them.
    pub fn between(places: impl IntoIterator<Item = u64>, end: u64) -> Self {
        let (mut gaps, mut next, mut after) = (Vec::new(), 0, 0);
        let mut skip = |after: usize, from: u64, to: u64| {
            let entries = to.saturating_sub(from);
            if entries > 0 {
                gaps.push(Gap { after, entries });
            }
        };
        for place in places {
            skip(after, next, place);
            next = place + 1;
            after += 1;
        }
        skip(after, next, end);
        Self(gaps)
    }

    /// The place of the entry at `index` in memory.
    pub fn place(&self, index: usize) -> u64 {
        let before = self.0.iter().take_while(|gap| gap.after <= index);
        index as u64 + before.map(|gap| gap.entries).sum::<u64>()
    }

    /// Number of removed entries.
    pub fn entries(&self) -> u64 {
        self.0.iter().map(|gap| gap.entries).sum()
    }

    /// The places of the removed entries.
    pub fn places(&self) -> impl Iterator<Item = Range<u64>> {
        self.0.iter().map(|gap| {
            let end = self.place(gap.after);
            end - gap.entries..end
        })
    }

    /// Removes the oldest `count` entries, with the gaps before the rest; returns the entries of these gaps.
    pub(in crate::session) fn remove_oldest(&mut self, count: usize) -> u64 {
        let mut removed = 0;
        self.0.retain_mut(|gap| {
            let is_before = gap.after <= count;
            if is_before {
                removed += gap.entries;
            } else {
                gap.after -= count;
            }
            !is_before
        });
        removed
    }
}
