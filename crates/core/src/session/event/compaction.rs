//! What of the past the model reads in another form, or not at all, and since when. It is an event:
//! the same entries are sent from request to request until the next one, so a vendor's prompt cache
//! finds what it was given.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::{MicroUsd, TokenUsage};

/// How `context:compacted` names results in a short form.
pub const SHORTEN_RESULTS: &str = "shorten-results";
/// How `context:compacted` names what a vendor compacted by itself.
pub const BY_VENDOR: &str = "vendor";
/// How `context:compacted` names a limit that a provider's refusal made lower.
pub const LOWER_LIMIT: &str = "lower-limit";
/// How `context:compacted` names a context of nothing but the newest turn.
const FRESH_CONTEXT: &str = "fresh-context";

/// What makes a request smaller that its provider found too long; each is tried before the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutKind {
    /// Results are shorter; every entry stays.
    Shortening,
    /// From here on the history has a lower limit, within which the session's strategies say what leaves.
    LowerLimit,
    /// Nothing but the newest turn stays.
    FreshContext,
}

impl CutKind {
    /// How events name it.
    pub fn strategy(self) -> &'static str {
        match self {
            Self::Shortening => SHORTEN_RESULTS,
            Self::LowerLimit => LOWER_LIMIT,
            Self::FreshContext => FRESH_CONTEXT,
        }
    }

    /// Reads that name; what earlier releases called otherwise began afresh.
    pub(in crate::session) fn of(strategy: &str) -> Self {
        match strategy {
            SHORTEN_RESULTS => Self::Shortening,
            LOWER_LIMIT => Self::LowerLimit,
            _ => Self::FreshContext,
        }
    }
}

/// Whether a cut of that name leaves every entry where it is.
pub(in crate::session) fn drops_nothing(strategy: &str) -> bool {
    strategy == SHORTEN_RESULTS || strategy == LOWER_LIMIT
}

/// How large a working context is.
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

/// How earlier entries are shown. A place counts the entries since the context began, those that are
/// no longer held included.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compaction {
    /// So many of the first entries stay.
    #[serde(default)]
    pub head: u64,
    /// The place from which entries stay beside them.
    #[serde(default)]
    pub from: u64,
    /// Results before this place are short.
    #[serde(default)]
    pub short_before: u64,
    /// Thoughts before this place are left out.
    #[serde(default)]
    pub unthinking_before: u64,
    /// What a model wrote of the entries that are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Arc<str>>,
    /// Tokens of history that it was made for; `None` = no limit.
    #[serde(default)]
    pub max_tokens: Option<u64>,
    /// Entries of history that it was made for; `None` = no limit.
    #[serde(default)]
    pub max_messages: Option<u64>,
}

/// A compaction, and what people are told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacted {
    /// What sufficed: a strategy, `shorten-results` or `drop-reasoning`.
    pub strategy: String,
    pub compaction: Compaction,
    /// How many entries left with it.
    pub left: u64,
    /// `seq` of the oldest message of a person among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_seq: Option<u64>,
    /// `seq` of the first message of a person behind them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_seq: Option<u64>,
    /// Who wrote its summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summarised_by: Option<SummarisedBy>,
    /// The context without it.
    pub before: ContextSize,
    /// The context that was sent.
    pub after: ContextSize,
}

/// The model that wrote a summary, and what that took. Its use is counted as that of other attempts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummarisedBy {
    pub provider: String,
    pub model: String,
    pub usage: TokenUsage,
    /// What it cost, if the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroUsd>,
}

/// What a vendor compacted by itself before it answered. The block that stands for it is kept with the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactedByVendor {
    pub provider: String,
    pub model: String,
    /// What stands for what was said before; `None` = only the vendor can read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Tokens of what was compacted, where the vendor said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// Tokens of what the model read instead, where the vendor said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// What compacting took, where the vendor tells it apart; a part of what the answer used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// What that cost, if the price is known; a part of what the answer cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroUsd>,
}

/// Where entries are missing that no request can show any more; the journal has them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// How many entries stand before it.
    pub after: usize,
    /// How many are missing.
    pub entries: u64,
}

impl Gap {
    /// The place of the entry that is held at `index`.
    pub fn place(self, index: usize) -> u64 {
        let missing = if index < self.after { 0 } else { self.entries };
        (index as u64).saturating_add(missing)
    }

    /// Where the entry of that place is held, or the first held behind it.
    pub fn index(self, place: u64) -> usize {
        let after = self.after as u64;
        let index = if place <= after {
            place
        } else {
            place.saturating_sub(self.entries).max(after)
        };
        usize::try_from(index).unwrap_or(usize::MAX)
    }
}
