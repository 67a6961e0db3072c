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

/// What the workspace of a fork begins with, once that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceCopy {
    /// A copy of the other session's, as it was at that moment and not at the place of the fork.
    Copied {
        /// How much is in it, as the limit of workspaces counts; none = the gateway that made it ended
        /// before it could tell.
        bytes: Option<u64>,
    },
    /// Nothing.
    Empty(NoCopy),
}

/// Why a fork has nothing of the other session's workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoCopy {
    /// The other session was deleted meanwhile.
    Gone,
    /// It is larger than a workspace may be, or nested too deep.
    TooLarge,
    /// Another engine keeps it.
    Elsewhere,
    /// The disk is nearly full.
    DiskFull,
    /// It took too long.
    TooSlow,
    /// Sandboxes are off, or their engine is away.
    NoSandbox,
    /// The log says why.
    Failed,
}

impl NoCopy {
    /// Its word on the wire.
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
