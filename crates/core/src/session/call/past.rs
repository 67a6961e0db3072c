//! Remembers earlier queues: people's decisions about their calls, and calls that repeat with the same results.

use std::sync::Arc;

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

/// The calls of one answer, with their results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepeatedCalls {
    /// Hash of server, tool and arguments of each call, in order.
    pub equal: Vec<Digest>,
    /// Hash of each call's outcome.
    pub results: Vec<Digest>,
    /// Number of times in a row, from 1.
    pub times: u32,
}

impl RepeatedCalls {
    /// The calls of an ended queue; `None` if the queue is empty, or one of its calls was not valid or has
    /// no result.
    pub(in crate::session) fn of(queue: &[Arc<Call>]) -> Option<Self> {
        let calls = queue.iter().map(|call| {
            let equal = call.facts.as_ref()?.equal.clone();
            Some((equal, call.result_digest.clone()?))
        });
        let (equal, results): (Vec<_>, Vec<_>) =
            calls.collect::<Option<Vec<_>>>()?.into_iter().unzip();
        (!equal.is_empty()).then_some(Self {
            equal,
            results,
            times: 1,
        })
    }
}
