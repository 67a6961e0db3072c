//! Clones a session's workspace into a throwaway one: what is tried in it changes nothing.
//!
//! The clone belongs to no session, like the sandbox in which a server is tried out, so the janitor removes
//! the clones that a killed gateway leaves.

use std::sync::Arc;

use super::assignment::SandboxAssignment;
use super::host::SandboxHost;
use super::{CopyWatch, CopyWay};
use sepal_core::domain::{NoCopy, SandboxId, SandboxKind};

/// A sandbox of its own with a copy of a session's workspace.
pub struct WorkspaceClone {
    place: Arc<SandboxHost>,
    sandbox: SandboxId,
    is_on_write: bool,
}

impl WorkspaceClone {
    /// Returns the sandbox that holds the copy.
    pub fn sandbox(&self) -> &SandboxId {
        &self.sandbox
    }

    /// Returns true if the copy shows the workspace itself until something is written (copy on write):
    /// unwritten files have the same versions as in the workspace, later changes to the workspace are
    /// visible, and only one sandbox at a time can use the copy.
    pub fn is_on_write(&self) -> bool {
        self.is_on_write
    }

    /// Removes the clone, once nothing runs in it.
    pub async fn discard(self) {
        self.place.discard(&self.sandbox).await;
    }
}

impl SandboxAssignment {
    /// Clones the current workspace of the session. Dropping the future stops the copy.
    pub async fn clone_workspace(&self) -> Result<WorkspaceClone, NoCopy> {
        let place = self.place();
        if place.runtime.kind() == SandboxKind::None {
            return Err(NoCopy::NoSandbox);
        }
        let row = place.records.sandboxes().of(self.key()).await;
        let row = row.map_err(|error| {
            tracing::warn!(session.id = %self.session(), ?error, "Which workspace to copy is not known");
            NoCopy::Failed
        })?;
        let mut clone = WorkspaceClone {
            place: Arc::clone(place),
            sandbox: SandboxId::from_bits(rand::random()),
            is_on_write: false,
        };
        let Some(row) = row else {
            return Ok(clone);
        };
        if row.engine != place.runtime.engine() {
            return Err(NoCopy::Elsewhere);
        }
        let watch = CopyWatch::default();
        let copy = clone.sandbox.clone();
        match self.make(row.sandbox, copy, CopyWay::OnWrite, &watch).await {
            // The row is written before anything is created; without a workspace, an empty copy is correct.
            Ok(bytes) => clone.is_on_write = bytes.is_none(),
            Err(NoCopy::Gone) => {}
            Err(reason) => {
                clone.discard().await;
                return Err(reason);
            }
        }
        Ok(clone)
    }
}
