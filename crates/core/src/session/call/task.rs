//! Identifies the task that a server created for a call, so that a later runner can find the call again.

use serde::{Deserialize, Serialize};

use crate::domain::{Digest, Timestamp};

/// A call that its server runs as a task. The gateway polls the task by its id and never sends the call
/// again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTask {
    /// The server's own task id.
    pub id: String,
    /// Digest of the server that took the call; a different server of the same name is not polled.
    pub server: Digest,
    /// Time that the server keeps the task, in milliseconds from its creation; `None` = not stated, or
    /// unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// The time at which the session learned of the task.
    pub since: Timestamp,
}
