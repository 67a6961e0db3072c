//! Servers that make tasks of calls.

use crate::domain::{CallId, Digest, Timestamp};
use crate::session::{CallTask, Command};

/// A server makes a task of a call, or says so once more.
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
