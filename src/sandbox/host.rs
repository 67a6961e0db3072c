//! Where the sandboxes of all sessions are, and how much each may use.

use std::sync::Arc;
use std::time::Duration;

use super::{Bounds, DiskMonitor, Runtime};
use crate::domain::{AllowedHosts, McpNetwork, SandboxId, SandboxKind, SessionKey};
use crate::store::{self, Records};

/// Where sandboxed tools run, for all sessions.
pub struct SandboxHost {
    /// The runtime that was found at start, or that may still come.
    pub runtime: Arc<dyn Runtime>,
    /// The disk that sandboxes may fill: while it is nearly full, they stand still.
    pub disk: DiskMonitor,
    /// Where it is kept which sandbox is whose.
    pub records: Records,
    /// The time limit of one command.
    pub command_limit: Duration,
    /// Most that is kept of each stream of a command.
    pub output_bytes: u64,
    /// How much one sandbox may use.
    pub bounds: Bounds,
    /// How long a sandbox without calls is kept.
    pub idle_limit: Duration,
    /// What the bundled server's commands may reach.
    pub network: McpNetwork,
    /// What people may let the commands of their own sessions reach.
    pub network_on_request: Arc<AllowedHosts>,
    /// How much of the history of a workspace is kept.
    pub checkpoints: CheckpointLimits,
    /// How packages of servers are installed.
    pub packages: PackageInstalling,
    /// Whether the image of the sandboxes is the operator's own.
    pub has_foreign_image: bool,
}

/// How much of the history of a workspace is kept.
#[derive(Debug, Clone, Copy)]
pub struct CheckpointLimits {
    /// Steps of one session; 0 = nothing is kept.
    pub steps: u64,
    /// Bytes of files' contents of one session; 0 = nothing is kept.
    pub bytes: u64,
}

/// How packages of servers are installed.
#[derive(Debug, Clone)]
pub struct PackageInstalling {
    /// Whether any are.
    pub is_on: bool,
    /// Where those of npm come from, without a slash at the end.
    pub npm_registry: String,
    /// Where those of Python come from, as pip takes it, without a slash at the end.
    pub pypi_index: String,
    /// More hosts that an installation may reach, beside that of its registry.
    pub more_hosts: Vec<String>,
    /// Bytes that the file of a bundle may have.
    pub bundle_bytes: u64,
    /// How much one installation may use; its workspace is what is installed.
    pub bounds: Bounds,
}

impl SandboxHost {
    /// Whether there are sandboxed tools at all; once there are, there always are.
    pub fn is_on(&self) -> bool {
        self.runtime.kind() != SandboxKind::None
    }

    /// Whether a workspace that nothing has run in is certainly empty: an engine copies what an image
    /// has in that folder into a new one, and ours has nothing there.
    pub(crate) fn begins_empty(&self) -> bool {
        match self.runtime.kind() {
            SandboxKind::Bubblewrap => true,
            SandboxKind::Docker => !self.has_foreign_image,
            SandboxKind::None => false,
        }
    }

    /// What a digest binds beside server, definition and arguments.
    pub(crate) fn image(&self) -> String {
        format!(
            "{}:{}",
            self.runtime.kind().as_str(),
            env!("CARGO_PKG_VERSION")
        )
    }

    /// What it binds for the session's own sandbox: with the hosts, where it may reach any, and those that
    /// the session was allowed.
    pub(crate) fn bundled_image(&self, of_session: &[String]) -> String {
        let hosts = self.network.hosts();
        let mut image = self.image();
        if !hosts.is_empty() {
            image.push('+');
            image.push_str(&hosts.join(","));
        }
        if !of_session.is_empty() {
            image.push_str("+session:");
            image.push_str(&of_session.join(","));
        }
        image
    }

    /// Removes the workspace of a trial, which is no session's.
    pub(crate) async fn discard(&self, sandbox: &SandboxId) {
        if let Err(error) = self.runtime.remove_workspace(sandbox).await {
            tracing::warn!(sandbox.id = %sandbox, ?error, "A workspace is left to the janitor");
        }
    }

    /// Removes what a deleted session leaves behind. What cannot be removed now is the janitor's.
    pub(crate) async fn remove(&self, key: &SessionKey, first: &SandboxId) {
        if let Err(error) = self.try_remove(key, first).await {
            tracing::warn!(session.id = %key.session, ?error, "A workspace is left to the janitor");
        }
    }

    async fn try_remove(&self, key: &SessionKey, first: &SandboxId) -> Result<(), Left> {
        let rows = self.records.sandboxes();
        let row = rows.of(key).await?;
        let is_here = row
            .as_ref()
            .is_none_or(|row| row.engine == self.runtime.engine());
        if is_here {
            let sandbox = row.as_ref().map_or(first, |row| &row.sandbox);
            self.runtime.remove_workspace(sandbox).await?;
            rows.forget(key).await?;
        }
        Ok(())
    }
}

/// Why something of a deleted session is still there.
#[derive(Debug, thiserror::Error)]
enum Left {
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Sandbox(#[from] super::Error),
}
