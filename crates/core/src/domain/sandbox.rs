//! Describes the places where calls run, for display.

use serde::{Deserialize, Serialize};

/// The runtime of this installation's sandboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxKind {
    /// Containers of a Docker engine.
    Docker,
    /// Linux namespaces made by bubblewrap.
    Bubblewrap,
    /// No sandboxes: tools that need one are disabled.
    None,
}

impl SandboxKind {
    /// The name in settings and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Bubblewrap => "bubblewrap",
            Self::None => "none",
        }
    }
}

/// The mechanism that enforces a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Enforcement {
    /// The kernel, by a control group.
    Cgroup,
    /// The kernel, per process.
    Rlimit,
    /// The kernel, by a quota of the file system, plus a task of ours below the quota.
    Quota,
    /// A task of ours that measures and kills.
    Watchdog,
    /// Nothing.
    None,
}

/// The kind of place in which a call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunsInKind {
    /// The session's own sandbox.
    Sandbox,
    /// A separate container of the server.
    Container,
    /// A remote server.
    Remote,
}

/// The place in which a call runs, with its network access.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunsIn {
    pub kind: RunsInKind,
    /// The reachable hosts; empty = no network.
    pub hosts: Vec<String>,
}
