//! Records the origin of a fork and the copy of its workspace.

use serde::{Deserialize, Serialize};

use super::SessionId;

/// The place in another session where a session was forked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkOrigin {
    /// The session whose past the fork shares; it may have been deleted.
    pub session: SessionId,
    /// `seq` of the last shared event.
    pub seq: u64,
    /// The original session that all forks of this family descend from.
    pub root: SessionId,
}

/// The initial workspace of a fork, once it is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceCopy {
    /// A copy of the other session's workspace at the time of copying, not at the place of the fork.
    Copied {
        /// Size of the copy, as counted against the limit of workspaces; `None` = the gateway that copied
        /// ended before it reported the size.
        bytes: Option<u64>,
    },
    /// An empty workspace.
    Empty(NoCopy),
}

/// The reason a fork has no copy of the other session's workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoCopy {
    /// The other session was deleted in the meantime.
    Gone,
    /// The workspace exceeds the size limit, or is nested too deep.
    TooLarge,
    /// Another engine holds the workspace.
    Elsewhere,
    /// The disk is nearly full.
    DiskFull,
    /// Copying took too long.
    TooSlow,
    /// Sandboxes are disabled, or their engine is unavailable.
    NoSandbox,
    /// Another error, which is in the log.
    Failed,
}

impl NoCopy {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::TooLarge => "too_large",
            Self::Elsewhere => "elsewhere",
            Self::DiskFull => "disk_full",
            Self::TooSlow => "too_slow",
            Self::NoSandbox => "no_sandbox",
            Self::Failed => "failed",
        }
    }
}
