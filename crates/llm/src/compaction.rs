//! Compaction by a vendor, which is optional: the settings, the request parameter, and the result in an
//! answer.

use serde::{Deserialize, Serialize};

use super::Request;
use sepal_core::domain::TokenUsage;

/// The smallest threshold in input tokens that Anthropic accepts (context editing, `compact_20260112`).
pub(super) const ANTHROPIC_LEAST: u64 = 50_000;
/// The smallest threshold that is sent to OpenAI.
pub(super) const OPENAI_LEAST: u64 = 1_000;
/// Thresholds are rounded to steps of this many tokens, so that a few more tools do not change them.
const STEP: u64 = 1_000;

/// The party that compacts the context of a provider's models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CompactedBy {
    /// Sepal, by the strategies of the session.
    #[default]
    Sepal,
    /// The vendor. Sepal only removes what would not fit otherwise.
    Vendor,
}

impl CompactedBy {
    /// Parses a name.
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

/// The compaction settings of a provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionSetting {
    #[serde(default)]
    pub by: CompactedBy,
    /// Input tokens from which on the vendor compacts; `None` = derived from Sepal's own limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<u64>,
}

impl CompactionSetting {
    /// Returns true if the settings are the defaults.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// A vendor that compacts the input of its models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compactor {
    /// The provider family whose blocks the vendor accepts.
    pub family: String,
    /// Input tokens from which on the vendor compacts, if configured.
    pub threshold: Option<u64>,
    /// The smallest threshold that the vendor accepts.
    pub least: u64,
}

impl Compactor {
    /// Input tokens from which on the vendor compacts. The default is three quarters of `room`, the space
    /// that a request has in the model, so that the vendor acts before Sepal has to; and at most `own`, the
    /// size at which Sepal itself would compact.
    pub fn threshold(&self, room: u64, own: Option<u64>) -> u64 {
        self.threshold.unwrap_or_else(|| {
            let usual = room / 4 * 3;
            let usual = own.map_or(usual, |own| own.min(usual));
            (usual / STEP * STEP).max(self.least)
        })
    }
}

/// The compaction that a request permits its vendor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compacting {
    /// Input tokens from which on the vendor compacts.
    pub threshold: u64,
    /// True if the request resumes from an earlier compaction by the vendor: the messages before it are
    /// missing, so the vendor's block must be sent.
    pub resumes: bool,
}

/// The compaction that a vendor made before it answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompactedInput {
    /// The summary that replaces the compacted input, if people can read it.
    pub summary: Option<String>,
    /// Tokens of the compacted input, if the vendor reports them.
    pub before: Option<u64>,
    /// Tokens of the input that the model read instead, if the vendor reports them.
    pub after: Option<u64>,
    /// Tokens that compaction used, if the vendor reports them; part of the answer's usage.
    pub usage: Option<TokenUsage>,
}

impl Request {
    /// The permitted compaction, unless the model refuses the parameter. A request that resumes from a
    /// compaction block always permits it: without the block the earlier messages would be missing.
    pub(super) fn compacting_unless(&self, is_refused: bool) -> Option<Compacting> {
        self.compacting.filter(|it| it.resumes || !is_refused)
    }

    /// Returns true if compaction blocks of the vendor are sent.
    pub(super) fn resumes(&self) -> bool {
        self.compacting.is_some_and(|it| it.resumes)
    }

    /// The message for people if a model is used without its vendor's compaction.
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
