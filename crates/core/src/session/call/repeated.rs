//! Calls that come again and give the same.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Call;
use crate::domain::Digest;

/// Calls that a turn made, and what they gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepeatedCalls {
    /// Hash of server, tool and arguments of each, in their order.
    pub equal: Vec<Digest>,
    /// Hash of all that each gave.
    pub results: Vec<Digest>,
    /// How often in a row, from 1.
    pub times: u32,
}

impl RepeatedCalls {
    /// Those of a queue that has ended; none = one of them could not be run.
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
