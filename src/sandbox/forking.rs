//! The files of a fork: a copy of what the other session's workspace has now.
//!
//! Each try copies into a fresh sandbox, and only what is whole becomes the session's, by its row. So
//! what a killed gateway leaves half-way belongs to nobody, and goes with the janitor.

use std::time::Duration;

use super::assignment::SandboxAssignment;
use super::host::SandboxHost;
use super::{Copied, CopyOrder, CopyWatch, CopyWay, Error};
use crate::domain::{NoCopy, SandboxId, SandboxKind, SessionKey, WorkspaceCopy};
use crate::store::records::SandboxRow;

/// How long a copy may take: less than the janitor leaves alone what belongs to nobody.
const LIMIT: Duration = Duration::from_mins(5);

impl SandboxHost {
    /// Whether a session has a workspace that a fork could have a copy of. Where the store does not
    /// tell, it may have one.
    pub(crate) async fn has_workspace(&self, key: &SessionKey) -> bool {
        !matches!(self.records.sandboxes().of(key).await, Ok(None))
    }
}

impl SandboxAssignment {
    /// Gives the session a copy of the workspace of the one at `source`, of the same tenant. Done
    /// twice, it has one. `watch` tells how far it is; when this is dropped, the copy stops.
    pub(crate) async fn copy_from(&self, source: &SessionKey, watch: &CopyWatch) -> WorkspaceCopy {
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
            // A gateway that ended before it could say so.
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
            .make((row.sandbox, sandbox.clone()), CopyWay::Whole, watch)
            .await?;
        let listed = place.records.sessions().find(source).await;
        if !matches!(listed, Ok(Some(_))) {
            // Its row goes before its files do, which may have been half of them by then.
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
            // Another gateway was faster, or the store is away.
            place.discard(&sandbox).await;
        }
        claimed.map_err(failed)?;
        copied(bytes)
    }

    /// Copies one workspace into another; its size in bytes, or `None` where it is a copy on write.
    pub(super) async fn make(
        &self,
        (from, to): (SandboxId, SandboxId),
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
            Ok(Ok(Copied::Whole(bytes))) => Ok(Some(bytes)),
            Ok(Ok(Copied::OnWrite)) => Ok(None),
            Ok(Ok(Copied::Missing)) => Err(NoCopy::Gone),
            Ok(Ok(Copied::TooLarge)) => Err(NoCopy::TooLarge),
            Ok(Err(Error::DiskFull { .. })) => Err(NoCopy::DiskFull),
            Ok(Err(error)) => {
                tracing::warn!(session.id = %self.session(), ?error, "A workspace is not copied");
                Err(NoCopy::Failed)
            }
            Err(_) => Err(NoCopy::TooSlow),
        }
    }
}
