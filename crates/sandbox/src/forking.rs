//! Copies the files of a forked session from the other session's current workspace.
//!
//! Each attempt copies into a fresh sandbox, and only a complete copy becomes the session's, when its row is
//! written. An incomplete copy of a killed gateway therefore belongs to no session, and the janitor removes
//! it.

use std::time::Duration;

use super::assignment::SandboxAssignment;
use super::host::SandboxHost;
use super::{CopyOrder, CopyResult, CopyWatch, CopyWay, Error};
use sepal_core::domain::{NoCopy, SandboxId, SandboxKind, SessionKey, WorkspaceCopy};
use sepal_store::records::SandboxRow;

/// The time limit of a copy: shorter than the janitor's grace period for workspaces without a session.
const LIMIT: Duration = Duration::from_mins(5);

impl SandboxHost {
    /// Returns true if a session has a workspace that a fork could copy. If the store fails, the session may
    /// have one.
    pub async fn has_workspace(&self, key: &SessionKey) -> bool {
        !matches!(self.records.sandboxes().of(key).await, Ok(None))
    }
}

impl SandboxAssignment {
    /// Copies the workspace of the session at `source`, of the same tenant, into this session. Idempotent: a
    /// repeated call keeps the existing workspace. `watch` reports the progress; dropping the future stops
    /// the copy.
    pub async fn copy_from(&self, source: &SessionKey, watch: &CopyWatch) -> WorkspaceCopy {
        match self.try_copy(source, watch).await {
            Ok(copy) => copy,
            Err(reason) => WorkspaceCopy::Empty(reason),
        }
    }

    async fn try_copy(
        &self,
        source: &SessionKey,
        watch: &CopyWatch,
    ) -> Result<WorkspaceCopy, NoCopy> {
        let place = self.place();
        let (rows, engine) = (place.records.sandboxes(), place.runtime.engine());
        let failed = |error| {
            tracing::warn!(session.id = %self.session(), ?error, "A fork has no copy of the workspace");
            NoCopy::Failed
        };
        let copied = |bytes| Ok(WorkspaceCopy::Copied { bytes });
        if rows.of(self.key()).await.map_err(failed)?.is_some() {
            // A gateway made the copy and ended before it could report it.
            return copied(None);
        }
        let Some(row) = rows.of(source).await.map_err(failed)? else {
            return Err(NoCopy::Gone);
        };
        if place.runtime.kind() == SandboxKind::None {
            return Err(NoCopy::NoSandbox);
        }
        if row.engine != engine {
            return Err(NoCopy::Elsewhere);
        }
        let sandbox = SandboxId::from_bits(rand::random());
        let bytes = self
            .make(row.sandbox, sandbox.clone(), CopyWay::Whole, watch)
            .await?;
        let listed = place.records.sessions().find(source).await;
        if !matches!(listed, Ok(Some(_))) {
            // The row of a deleted session is removed before its files, so the copy may be incomplete.
            place.discard(&sandbox).await;
            return Err(NoCopy::Gone);
        }
        let claim = SandboxRow {
            key: self.key().clone(),
            sandbox: sandbox.clone(),
            engine,
        };
        let claimed = rows.claim(claim).await;
        if !matches!(&claimed, Ok(row) if row.sandbox == sandbox) {
            // Another gateway was faster, or the store is unavailable.
            place.discard(&sandbox).await;
        }
        claimed.map_err(failed)?;
        copied(bytes)
    }

    /// Copies one workspace into another. Returns its size in bytes, or `None` for a copy on write.
    pub(super) async fn make(
        &self,
        from: SandboxId,
        to: SandboxId,
        way: CopyWay,
        watch: &CopyWatch,
    ) -> Result<Option<u64>, NoCopy> {
        let place = self.place();
        let order = CopyOrder {
            from,
            to,
            bounds: place.bounds,
            way,
            watch: watch.clone(),
        };
        let _stop = watch.stop_on_drop();
        let copying = tokio::time::timeout(LIMIT, place.runtime.copy_workspace(order));
        match copying.await {
            Ok(Ok(CopyResult::Whole(bytes))) => Ok(Some(bytes)),
            Ok(Ok(CopyResult::OnWrite)) => Ok(None),
            Ok(Ok(CopyResult::Missing)) => Err(NoCopy::Gone),
            Ok(Ok(CopyResult::TooLarge)) => Err(NoCopy::TooLarge),
            Ok(Err(Error::DiskFull { .. })) => Err(NoCopy::DiskFull),
            Ok(Err(error)) => {
                tracing::warn!(session.id = %self.session(), ?error, "A workspace is not copied");
                Err(NoCopy::Failed)
            }
            Err(_) => Err(NoCopy::TooSlow),
        }
    }
}
