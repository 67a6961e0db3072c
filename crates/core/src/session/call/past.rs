//! Decisions about calls that are gone.

use serde::{Deserialize, Serialize};

use super::{Call, CallStatus, Decider};
use crate::domain::{CallId, Digest, ToolRef};

/// What a person decided about a call whose queue is gone: a decision that is sent again, because its
/// answer was lost, is still a repeat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PastDecision {
    pub call: CallId,
    /// Whether it was to run.
    pub is_approved: bool,
    pub tool: ToolRef,
    /// Hash of what would run, with the person's changes.
    pub digest: Digest,
    /// Hash of server, tool and arguments, with the person's changes.
    pub equal: Digest,
    /// Whether there were changes.
    pub is_edited: bool,
    /// Whether nobody decided it in time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_expired: bool,
}

impl PastDecision {
    /// Of a call that has ended; none where nobody decided it, and it did not expire.
    pub(in crate::session) fn of(call: &Call) -> Option<Self> {
        let CallStatus::Ended {
            by: Some(by),
            status,
        } = &call.status
        else {
            return None;
        };
        if !call.has_expired && !matches!(by, Decider::Person(_)) {
            return None;
        }
        let facts = call.facts.as_ref()?;
        Some(Self {
            call: call.id.clone(),
            is_approved: status != "rejected",
            tool: facts.tool.clone(),
            digest: facts.digest.clone(),
            equal: facts.equal.clone(),
            is_edited: call.original_args.is_some(),
            has_expired: call.has_expired,
        })
    }
}
