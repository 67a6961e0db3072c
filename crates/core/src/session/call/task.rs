//! The task that a server made of a call: by it the call is found again, whoever runs the session then.

use serde::{Deserialize, Serialize};

use crate::domain::{Digest, Timestamp};

/// A call that its server runs on its own. Whoever knows the id asks what became of it, and never calls
/// again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTask {
    /// The server's own id of it.
    pub id: String,
    /// What the server was when it took the call: another one of its name is not asked.
    pub server: Digest,
    /// How long the server said that it keeps the task, in milliseconds from its creation; none = it did
    /// not say, or for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// When the session heard of it.
    pub since: Timestamp,
}
