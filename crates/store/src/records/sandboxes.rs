//! Stores which sandbox belongs to which session, and which engine keeps its workspace.

use super::super::Error;
use super::super::db::{Db, args};
use super::tenant_id;
use sepal_core::domain::{EngineId, SandboxId, SessionId, SessionKey};

/// The sandbox of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxRow {
    pub key: SessionKey,
    /// The sandbox's id, which also names the workspace.
    pub sandbox: SandboxId,
    /// The engine that keeps the workspace (`sandbox::Runtime::keeper`).
    pub engine: EngineId,
}

/// A sandbox, compared with the list of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedSandbox {
    pub row: SandboxRow,
    /// True if the list of sessions has its session. A deleted session is not in the list, and one that
    /// began a moment ago may not be in it yet.
    pub is_listed: bool,
}

/// Access to the stored sandboxes.
pub struct Sandboxes<'s> {
    db: &'s Db,
}

impl<'s> Sandboxes<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// The sandbox of a session, if it has one.
    pub async fn of(&self, key: &SessionKey) -> Result<Option<SandboxRow>, Error> {
        let row: Option<Row> = self
            .db
            .fetch_optional(
                "SELECT tenant, session, id, keeper, TRUE AS is_listed FROM sandboxes \
                 WHERE tenant = $1 AND session = $2",
                args![key.tenant.as_str(), key.session.as_str()],
            )
            .await?;
        Ok(row.map(Row::into_listed).transpose()?.map(|it| it.row))
    }

    /// Assigns a sandbox to a session, unless it has one. Returns the session's sandbox.
    pub async fn claim(&self, row: SandboxRow) -> Result<SandboxRow, Error> {
        let changed = self
            .db
            .execute(
                "INSERT INTO sandboxes (tenant, session, id, keeper) VALUES ($1, $2, $3, $4) \
                 ON CONFLICT (tenant, session) DO NOTHING",
                args![
                    row.key.tenant.as_str(),
                    row.key.session.as_str(),
                    row.sandbox.as_str(),
                    row.engine.as_str()
                ],
            )
            .await?;
        if changed == 1 {
            return Ok(row);
        }
        Ok(self.of(&row.key).await?.unwrap_or(row))
    }

    /// All sandboxes of every tenant, for the janitor.
    pub async fn all(&self) -> Result<Vec<ListedSandbox>, Error> {
        let rows: Vec<Row> = self
            .db
            .fetch_all(
                "SELECT b.tenant, b.session, b.id, b.keeper, s.id IS NOT NULL AS is_listed \
                 FROM sandboxes b LEFT JOIN sessions s ON s.tenant = b.tenant AND s.id = b.session",
                args![],
            )
            .await?;
        rows.into_iter().map(Row::into_listed).collect()
    }

    /// The listed sessions without a stored sandbox: those from before sandboxes were stored, and those that
    /// have no sandbox yet.
    pub async fn sessions_without(&self) -> Result<Vec<SessionKey>, Error> {
        let rows: Vec<(String, String)> = self
            .db
            .fetch_all(
                "SELECT s.tenant, s.id FROM sessions s LEFT JOIN sandboxes b \
                 ON b.tenant = s.tenant AND b.session = s.id WHERE b.id IS NULL",
                args![],
            )
            .await?;
        let keys = rows.into_iter();
        keys.map(|(tenant, session)| key(tenant, session)).collect()
    }

    /// Deletes the row of a session. Its workspace must already be removed.
    pub async fn forget(&self, key: &SessionKey) -> Result<(), Error> {
        self.db
            .execute(
                "DELETE FROM sandboxes WHERE tenant = $1 AND session = $2",
                args![key.tenant.as_str(), key.session.as_str()],
            )
            .await?;
        Ok(())
    }
}

#[derive(sqlx_macros::FromRow)]
struct Row {
    tenant: String,
    session: String,
    id: String,
    keeper: String,
    is_listed: bool,
}

impl Row {
    fn into_listed(self) -> Result<ListedSandbox, Error> {
        Ok(ListedSandbox {
            row: SandboxRow {
                key: key(self.tenant, self.session)?,
                sandbox: SandboxId::parse(&self.id)
                    .ok_or_else(|| Error::corrupt("sandbox id", self.id))?,
                engine: self.keeper.into(),
            },
            is_listed: self.is_listed,
        })
    }
}

fn key(tenant: String, session: String) -> Result<SessionKey, Error> {
    Ok(SessionKey {
        tenant: tenant_id(tenant)?,
        session: SessionId::parse(&session).ok_or_else(|| Error::corrupt("session id", session))?,
    })
}
