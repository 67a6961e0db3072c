//! Assigns a sandbox to a session, and records which engine keeps its workspace.
//!
//! The journal names a sandbox when the session begins, but a warm sandbox has an id of its own. So the store
//! records the sandbox that the session really took, at its first call. The store also records the engine:
//! another engine has no such workspace, and an empty one in its place would be wrong.

use std::sync::Arc;

use tokio::sync::OnceCell;

use super::host::SandboxHost;
use sepal_core::domain::{EngineId, Holder, SandboxId, SessionId, SessionKey, TenantId, UserId};
use sepal_store::{self as store, records::SandboxRow};

/// A session's sandbox, which is determined at the first call.
pub struct SandboxAssignment {
    place: Arc<SandboxHost>,
    key: SessionKey,
    owner: UserId,
    /// The sandbox that the journal names.
    first: SandboxId,
    settled: OnceCell<SandboxId>,
}

/// The reason that the files of the session cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum AssignmentError {
    #[error("the store does not tell which sandbox is this session's; try again")]
    Store(#[from] store::Error),
    #[error(
        "this session's files are kept by `{kept_by}`, and this gateway uses `{now}`; they are safe \
         there: start the gateway that uses it again (SPL_SANDBOX, SPL_SANDBOX_DOCKER_HOST), or \
         begin a new session"
    )]
    Elsewhere { kept_by: EngineId, now: EngineId },
}

impl SandboxAssignment {
    /// The assignment of `owner`'s session, which began with the sandbox `first`.
    pub fn new(place: Arc<SandboxHost>, key: SessionKey, owner: UserId, first: SandboxId) -> Self {
        Self {
            place,
            key,
            owner,
            first,
            settled: OnceCell::new(),
        }
    }

    /// Returns the host of the sandboxes.
    pub(super) fn place(&self) -> &Arc<SandboxHost> {
        &self.place
    }

    /// Returns the tenant of the session.
    pub fn tenant(&self) -> &TenantId {
        &self.key.tenant
    }

    /// Returns the user and tenant for whom resources are counted.
    pub fn holder(&self) -> Holder {
        Holder {
            tenant: self.key.tenant.clone(),
            user: self.owner.clone(),
        }
    }

    /// Returns the key of the session.
    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// Returns the id of the session, for logs.
    pub fn session(&self) -> &SessionId {
        &self.key.session
    }

    /// Returns the sandbox that the journal names, for uses that need no running sandbox.
    pub fn first(&self) -> &SandboxId {
        &self.first
    }

    /// Returns the assigned sandbox, if it was already determined here.
    pub fn settled(&self) -> Option<&SandboxId> {
        self.settled.get()
    }

    /// Returns the sandbox to start. Its row is written before anything is created.
    pub async fn sandbox(&self) -> Result<SandboxId, AssignmentError> {
        let settled = self.settled.get_or_try_init(|| self.settle()).await?;
        Ok(settled.clone())
    }

    /// Returns true if the session certainly has no files: its row is written before anything is created.
    pub async fn is_unclaimed(&self) -> bool {
        let rows = self.place.records.sandboxes();
        self.place.begins_empty()
            && self.settled.get().is_none()
            && matches!(rows.of(&self.key).await, Ok(None))
    }

    async fn settle(&self) -> Result<SandboxId, AssignmentError> {
        let runtime = &self.place.runtime;
        let (rows, now) = (self.place.records.sandboxes(), runtime.engine());
        let row = if let Some(row) = rows.of(&self.key).await? {
            row
        } else {
            let warm = runtime.reserve();
            let row = SandboxRow {
                key: self.key.clone(),
                sandbox: warm.unwrap_or_else(|| self.first.clone()),
                engine: now.clone(),
            };
            rows.claim(row).await?
        };
        if row.engine == now {
            return Ok(row.sandbox);
        }
        Err(AssignmentError::Elsewhere {
            kept_by: row.engine,
            now,
        })
    }
}
