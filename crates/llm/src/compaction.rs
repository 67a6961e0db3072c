//! Compaction that a vendor makes by itself, where somebody lets it: what is set, what a request asks
//! for, and what an answer tells of it.

use serde::{Deserialize, Serialize};

use super::Request;
use sepal_core::domain::TokenUsage;

/// The least tokens of input at which Anthropic compacts (context editing, `compact_20260112`).
pub(super) const ANTHROPIC_LEAST: u64 = 50_000;
/// The least that is asked for of OpenAI.
pub(super) const OPENAI_LEAST: u64 = 1_000;
/// Thresholds are told in steps of so many tokens, so that a few more tools do not change them.
const STEP: u64 = 1_000;

/// Who makes room in the context of a provider's models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CompactedBy {
    /// Sepal, by the strategies of the session.
    #[default]
    Sepal,
    /// The vendor; what Sepal does is only for what would not fit otherwise.
    Vendor,
}

impl CompactedBy {
    /// Reads the name of one.
    pub fn parse(text: &str) -> Option<Self> {
        let all = [Self::Sepal, Self::Vendor];
        all.into_iter().find(|by| by.as_str() == text)
    }

    /// The name in settings, records and requests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sepal => "sepal",
            Self::Vendor => "vendor",
        }
    }
}

/// What is set of a provider's compaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionSetting {
    #[serde(default)]
    pub by: CompactedBy,
    /// Tokens of input from which on the vendor compacts; none = what Sepal's own limits say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<u64>,
}

impl CompactionSetting {
    /// Whether nothing is set.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// A vendor that compacts what its models are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compactor {
    /// Whose blocks it takes back.
    pub family: String,
    /// Tokens of input from which on it compacts, where somebody said so.
    pub threshold: Option<u64>,
    /// The least that it takes.
    pub least: u64,
}

impl Compactor {
    /// Tokens of input from which on it compacts. Where nobody said it: three quarters of the `room` that
    /// a request has in the model, so that the vendor acts before Sepal has to, and no more than `own`,
    /// where Sepal itself would have made room.
    pub fn threshold(&self, room: u64, own: Option<u64>) -> u64 {
        self.threshold.unwrap_or_else(|| {
            let usual = room / 4 * 3;
            let usual = own.map_or(usual, |own| own.min(usual));
            (usual / STEP * STEP).max(self.least)
        })
    }
}

/// What a request lets its vendor do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compacting {
    /// Tokens of input from which on it compacts.
    pub threshold: u64,
    /// Whether the request goes on from what the vendor compacted before: what stood before that is
    /// missing, and the vendor's block has to go out.
    pub resumes: bool,
}

/// What a vendor compacted before it answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompactedInput {
    /// What stands for it, where people can read it.
    pub summary: Option<String>,
    /// Tokens of what was compacted, where the vendor says it.
    pub before: Option<u64>,
    /// Tokens of what the model read instead, where the vendor says it.
    pub after: Option<u64>,
    /// What that took, as far as the vendor tells it apart: a part of what the answer used.
    pub usage: Option<TokenUsage>,
}

impl Request {
    /// What the vendor may compact, unless its model refuses to be asked. A request that goes on from a
    /// block of the vendor's asks in any case: without the block it would lack what came before.
    pub(super) fn compacting_unless(&self, is_refused: bool) -> Option<Compacting> {
        self.compacting.filter(|it| it.resumes || !is_refused)
    }

    /// Whether blocks of the vendor's that stand for earlier messages go out.
    pub(super) fn resumes(&self) -> bool {
        self.compacting.is_some_and(|it| it.resumes)
    }

    /// What people are told where a model is asked without compaction.
    pub(super) fn not_compacted(&self) -> String {
        let model = &self.model;
        format!("`{model}` does not compact by itself: Sepal makes room in its context")
    }
}

#[cfg(test)]
mod tests {
    use super::{ANTHROPIC_LEAST, CompactedBy, CompactionSetting, Compactor};

    #[test]
    fn a_threshold_is_what_somebody_said_else_below_what_sepal_would_send() {
        fn check(said: Option<u64>, room: u64, own: Option<u64>, expected: u64) {
            let compactor = Compactor {
                family: "f".into(),
                threshold: said,
                least: ANTHROPIC_LEAST,
            };
            assert_eq!(compactor.threshold(room, own), expected);
        }
        check(Some(60_000), 10, Some(10), 60_000);
        check(None, 180_100, None, 135_000);
        check(None, 180_000, Some(100_400), 100_000);
        check(None, 180_000, Some(9_000), ANTHROPIC_LEAST);
    }

    #[test]
    fn a_setting_has_one_name_and_what_is_usual_is_not_kept() {
        for by in [CompactedBy::Sepal, CompactedBy::Vendor] {
            assert_eq!(CompactedBy::parse(by.as_str()), Some(by));
        }
        assert_eq!(CompactedBy::parse("nobody"), None);
        assert!(CompactionSetting::default().is_usual());
        let set = r#"{"by":"vendor","threshold":60000}"#;
        let read: CompactionSetting = serde_json::from_str(set).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), set);
    }
}
