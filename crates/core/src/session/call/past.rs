//! Remembers decisions about calls of earlier queues.

use serde::{Deserialize, Serialize};

use super::{Call, CallStatus, Decider};
use crate::domain::{CallId, Digest, ToolRef};

/// A person's decision about a call whose queue is gone. It makes a decision that is sent again, because
/// its answer was lost, count as a repeat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PastDecision {
    pub call: CallId,
    /// True if the call was approved.
    pub is_approved: bool,
    pub tool: ToolRef,
    /// Hash of what would run, with the person's changes.
    pub digest: Digest,
    /// Hash of server, tool and arguments, with the person's changes.
    pub equal: Digest,
    /// True if the arguments were edited.
    pub is_edited: bool,
    /// True if the call expired undecided.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_expired: bool,
}

impl PastDecision {
    /// The past decision of an ended call; `None` if neither a person decided it nor its time expired.
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
