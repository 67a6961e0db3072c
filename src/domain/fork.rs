//! Where a session was forked from.

use serde::{Deserialize, Serialize};

use super::SessionId;

/// Where a session was forked from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkOrigin {
    /// The session whose past it shares; it may be gone by now.
    pub session: SessionId,
    /// `seq` of the last event that both have.
    pub seq: u64,
    /// The session that the first fork of this family was made from.
    pub root: SessionId,
}
