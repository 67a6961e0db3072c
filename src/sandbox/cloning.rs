//! A copy of a session's workspace that is no session's: what is tried in it changes nothing.
//!
//! It belongs to nobody, like the place of a server that is tried out: what a killed gateway leaves of it
//! goes with the janitor.

use std::sync::Arc;

use super::assignment::SandboxAssignment;
use super::host::SandboxHost;
use super::{CopyWatch, CopyWay};
use crate::domain::{NoCopy, SandboxId, SandboxKind};

/// A sandbox of its own with what a session's workspace had.
pub(crate) struct WorkspaceClone {
    place: Arc<SandboxHost>,
    sandbox: SandboxId,
    is_on_write: bool,
}

impl WorkspaceClone {
    /// Where the copy is.
    pub(crate) fn sandbox(&self) -> &SandboxId {
        &self.sandbox
    }

    /// Whether it shows the workspace itself until something is written: files that were not have the
    /// versions that they have there, what is changed there meanwhile is seen, and one sandbox at a time
    /// can see it.
    pub(crate) fn is_on_write(&self) -> bool {
        self.is_on_write
    }

    /// Removes it, once nothing runs in it.
    pub(crate) async fn discard(self) {
        self.place.discard(&self.sandbox).await;
    }
}

impl SandboxAssignment {
    /// Copies the workspace of the session, as it is now. The copy stops when this is dropped.
    pub(crate) async fn clone_workspace(&self) -> Result<WorkspaceClone, NoCopy> {
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
        let sandboxes = (row.sandbox, clone.sandbox.clone());
        match self.make(sandboxes, CopyWay::OnWrite, &watch).await {
            // Its row comes before anything is made: then the copy is as empty as the workspace.
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
