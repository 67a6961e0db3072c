//! Holds the runtime of all sandboxes, and the limits of each.

use std::sync::Arc;
use std::time::Duration;

use super::{Bounds, DiskMonitor, Runtime};
use sepal_core::domain::{AllowedHosts, McpNetwork, SandboxId, SandboxKind, SessionKey};
use sepal_store::{self as store, Records};

/// The host of sandboxed tools for all sessions.
pub struct SandboxHost {
    /// The runtime that was found at start, or that may still become available.
    pub runtime: Arc<dyn Runtime>,
    /// The monitor of the disk that sandboxes may fill: while the disk is nearly full, they are paused.
    pub disk: DiskMonitor,
    /// The store of the assignments of sandboxes to sessions.
    pub records: Records,
    /// The time limit of one command.
    pub command_limit: Duration,
    /// Most bytes that are kept of each stream of a command.
    pub output_bytes: u64,
    /// The resource limits of one sandbox.
    pub bounds: Bounds,
    /// The time for which an idle sandbox is kept.
    pub idle_limit: Duration,
    /// The hosts that the bundled server's commands may reach.
    pub network: McpNetwork,
    /// The hosts that people may allow for the commands of their own sessions.
    pub network_on_request: Arc<AllowedHosts>,
    /// The limits on the history of a workspace.
    pub checkpoints: CheckpointLimits,
    /// The settings for installing packages of servers.
    pub packages: PackageInstalling,
    /// True if the image of the sandboxes is the operator's own.
    pub has_foreign_image: bool,
}

/// The limits on the history of a workspace.
#[derive(Debug, Clone, Copy)]
pub struct CheckpointLimits {
    /// The most steps of one session; 0 = no history.
    pub steps: u64,
    /// Most bytes of file contents of one session; 0 = no history.
    pub bytes: u64,
}

/// The settings for installing packages of servers.
#[derive(Debug, Clone)]
pub struct PackageInstalling {
    /// True if packages are installed at all.
    pub is_on: bool,
    /// The npm registry, without a slash at the end.
    pub npm_registry: String,
    /// The Python package index, in pip's format, without a slash at the end.
    pub pypi_index: String,
    /// Hosts that an installation may reach in addition to its registry.
    pub more_hosts: Vec<String>,
    /// Most bytes of a bundle's file.
    pub bundle_bytes: u64,
    /// The limits of one installation; its workspace holds the installed files.
    pub bounds: Bounds,
}

impl SandboxHost {
    /// Returns true if there are sandboxed tools; once true, this never becomes false.
    pub fn is_on(&self) -> bool {
        self.runtime.kind() != SandboxKind::None
    }

    /// Returns true if a workspace is certainly empty before its first use: a Docker engine copies the files
    /// that an image has in that folder into a new volume, and our own image has none there.
    pub fn begins_empty(&self) -> bool {
        match self.runtime.kind() {
            SandboxKind::Bubblewrap => true,
            SandboxKind::Docker => !self.has_foreign_image,
            SandboxKind::None => false,
        }
    }

    /// Returns the image that a digest binds, beside server, definition and arguments.
    pub fn image(&self) -> String {
        format!(
            "{}:{}",
            self.runtime.kind().as_str(),
            env!("CARGO_PKG_VERSION")
        )
    }

    /// Returns the image that a digest binds for the session's own sandbox: it includes the hosts that the
    /// sandbox may reach, and those that the session was allowed.
    pub fn bundled_image(&self, of_session: &[String]) -> String {
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

    /// Removes the workspace of a trial, which belongs to no session.
    pub async fn discard(&self, sandbox: &SandboxId) {
        if let Err(error) = self.runtime.remove_workspace(sandbox).await {
            tracing::warn!(sandbox.id = %sandbox, ?error, "A workspace is left to the janitor");
        }
    }

    /// Removes the workspace and the row of a deleted session. The janitor removes what fails here.
    pub async fn remove(&self, key: &SessionKey, first: &SandboxId) {
        if let Err(error) = self.try_remove(key, first).await {
            tracing::warn!(session.id = %key.session, ?error, "A workspace is left to the janitor");
        }
    }

    async fn try_remove(&self, key: &SessionKey, first: &SandboxId) -> Result<(), CleanupError> {
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

/// The reason that a deleted session left something behind.
#[derive(Debug, thiserror::Error)]
enum CleanupError {
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Sandbox(#[from] super::Error),
}
