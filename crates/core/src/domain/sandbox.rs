//! Where things run, as people are told it.

use serde::{Deserialize, Serialize};

/// What holds the sandboxes of this installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxKind {
    /// Containers of a Docker engine.
    Docker,
    /// Linux namespaces by bubblewrap.
    Bubblewrap,
    /// No sandbox: tools that need one are off.
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

/// What holds a limit in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Enforcement {
    /// The kernel, by a control group.
    Cgroup,
    /// The kernel, per process.
    Rlimit,
    /// The kernel, by a quota of the file system, and a task of ours below that.
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
    /// A container of the server's own.
    Container,
    /// A remote server.
    Remote,
}

/// The place in which a call runs and what it may reach from there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunsIn {
    pub kind: RunsInKind,
    /// The hosts it may reach; empty = no network.
    pub hosts: Vec<String>,
}
