//! Names the strategies by which earlier turns make room for later ones.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The strategy for dropping entries if the context does not fit even with shortened results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StrategyName {
    /// Drops nothing: a request that does not fit fails.
    None,
    /// Drops the oldest turns.
    DeleteOld,
    /// Drops turns between the first and the newest, spread evenly; a note says how many messages.
    DeleteMiddle,
    /// Replaces the oldest turns with a summary that a model writes.
    PartialSummary,
}

/// A text that names no strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a compaction strategy is `none`, `delete-old`, `delete-middle` or `partial-summary`")]
pub struct UnknownStrategy;

impl StrategyName {
    const ALL: [Self; 4] = [
        Self::None,
        Self::DeleteOld,
        Self::DeleteMiddle,
        Self::PartialSummary,
    ];

    /// The error of an invalid list of strategies, which are applied one after the other; `None` =
    /// valid.
    pub fn problem_of(list: &[Self]) -> Option<&'static str> {
        let is_alone = list.len() == 1 || !list.contains(&Self::None);
        let is_once = |(at, one): (usize, &Self)| list.iter().skip(at + 1).all(|next| next != one);
        let is_fine = !list.is_empty() && is_alone && list.iter().enumerate().all(is_once);
        (!is_fine).then_some("name at least one strategy, each once, and `none` only by itself")
    }

    /// The name in settings and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::DeleteOld => "delete-old",
            Self::DeleteMiddle => "delete-middle",
            Self::PartialSummary => "partial-summary",
        }
    }
}

impl FromStr for StrategyName {
    type Err = UnknownStrategy;

    fn from_str(text: &str) -> Result<Self, UnknownStrategy> {
        let mut all = Self::ALL.into_iter();
        all.find(|one| one.as_str() == text).ok_or(UnknownStrategy)
    }
}
