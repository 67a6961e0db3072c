//! Which sandbox belongs to which session, and who keeps its workspace.

use super::super::Error;
use super::super::db::{Db, args};
use super::tenant_id;
use crate::domain::{EngineId, SandboxId, SessionId, SessionKey};

/// A session's sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxRow {
    pub key: SessionKey,
    /// Its id, by which the workspace is named.
    pub sandbox: SandboxId,
    /// What keeps the workspace (`sandbox::Runtime::keeper`).
    pub engine: EngineId,
}

/// A row beside the list of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedSandbox {
    pub row: SandboxRow,
    /// Whether the list of sessions has its session. One that was deleted is not there, one that
    /// began a moment ago may not be there yet.
    pub is_listed: bool,
}

/// The sandboxes.
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

    /// Gives a session its sandbox, unless it has one; says which it has.
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

    /// All of them; for the janitor, who looks at every tenant's.
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

    /// The listed sessions that have no row here: from before there were rows, or without a
    /// sandbox so far.
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

    /// Forgets the row of a session; its workspace must be gone.
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

#[derive(sqlx::FromRow)]
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
