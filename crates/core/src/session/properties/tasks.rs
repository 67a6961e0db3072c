//! Makes random tasks that servers create for calls.

use crate::domain::{CallId, Digest, Timestamp};
use crate::session::{CallTask, Command};

/// A server creates a task for a call, perhaps again.
pub(super) fn created(call: CallId, seed: u8) -> Command {
    Command::TaskCreated {
        call,
        task: CallTask {
            id: format!("task {}", seed % 3),
            server: Digest::from_wire("server"),
            ttl_ms: (seed % 2 == 0).then_some(1_000),
            since: Timestamp::default(),
        },
    }
}
