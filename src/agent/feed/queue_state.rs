//! The calls of a turn as they stand.

use std::sync::Arc;

use crate::domain::Timestamp;
use crate::session::{Call, Control, waiting_since};

/// The calls of the running turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueueState {
    /// All calls of the last answer.
    pub calls: Vec<Arc<Call>>,
    /// What the model said with them.
    pub said: String,
    /// The `seq` that this reflects.
    pub seq: u64,
}

impl QueueState {
    /// The calls of a session as its journal says.
    pub(in crate::agent) fn of(control: &Control) -> Self {
        let (calls, said) = match &control.turn {
            Some(turn) => (turn.queue.clone(), turn.said.clone()),
            None => (Vec::new(), String::new()),
        };
        Self {
            calls,
            said,
            seq: control.seq,
        }
    }

    /// When the oldest of the calls that wait for a decision was asked for; none = none waits.
    pub fn waiting_since(&self) -> Option<Timestamp> {
        waiting_since(&self.calls)
    }
}
