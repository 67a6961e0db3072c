//! Detects calls that repeat with the same results.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Call;
use crate::domain::Digest;

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
