//! What a waiting call wants before it may run, beside the yes of its session's owner.

use sepal_policy::Approver;
use serde::{Deserialize, Serialize};

use crate::domain::Timestamp;

/// What must be there before a call that is asked for may start. Plain = the yes of the owner.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wants {
    /// Whose yes it needs: all of them, each once, in order. Empty = the owner's alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<Approver>,
    /// Whether a yes needs a fresh proof of presence.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fresh_gesture: bool,
    /// When the call is rejected because nobody decided it; `None` = never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// How long it could be decided until then, in milliseconds: what the rejection says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_after_ms: Option<u64>,
}

impl Wants {
    /// What rules want of a call; it does not expire.
    pub fn new(approvers: &[Approver], fresh_gesture: bool) -> Self {
        let is_plain = approvers.iter().all(|who| *who == Approver::Owner);
        Self {
            approvers: if is_plain {
                Vec::new()
            } else {
                approvers.to_vec()
            },
            fresh_gesture,
            expires_at: None,
            expires_after_ms: None,
        }
    }

    /// It may be decided from `now` on, for so long.
    #[must_use]
    pub fn expiring(mut self, now: Timestamp, after_ms: Option<u64>) -> Self {
        self.expires_after_ms = after_ms;
        self.expires_at = after_ms.map(|ms| {
            let ms = i64::try_from(ms).unwrap_or(i64::MAX);
            Timestamp(now.0.saturating_add(ms))
        });
        self
    }

    /// Whether the yes of the owner suffices, whenever it comes.
    pub fn is_plain(&self) -> bool {
        self.approvers.is_empty() && !self.fresh_gesture && self.expires_at.is_none()
    }
}
