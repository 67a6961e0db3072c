//! Reads and changes the database file in a backup, which no gateway uses.

use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{Connection as _, SqliteConnection};

use super::super::Error;
use sepal_core::domain::{EngineId, SandboxId, SessionId};

/// Nothing else uses the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);

/// The sandbox of a session in a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSandbox {
    pub session: SessionId,
    /// The sandbox's id, which also names the workspace.
    pub sandbox: SandboxId,
    /// The engine that keeps the workspace.
    pub engine: EngineId,
}

/// A workspace that was unpacked under another id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedSandbox {
    pub from: SandboxId,
    pub to: SandboxId,
}

/// A database file that is staged for a backup or a restore.
pub(crate) struct StagedDatabase(SqliteConnection);

impl StagedDatabase {
    pub(crate) async fn open(file: &Path) -> Result<Self, Error> {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .journal_mode(SqliteJournalMode::Delete)
            .busy_timeout(BUSY_TIMEOUT);
        let connection = SqliteConnection::connect_with(&options).await?;
        Ok(Self(connection))
    }

    /// Returns the id of the installation, which is made if no gateway ever ran.
    pub(crate) async fn installation(&mut self) -> Result<String, Error> {
        let fresh = format!("{:032x}", rand::random::<u128>());
        let sql = "INSERT INTO installation (name, value) VALUES ('id', $1) \
                   ON CONFLICT (name) DO NOTHING";
        sqlx::query(sql)
            .bind(fresh.as_str())
            .execute(&mut self.0)
            .await?;
        let sql = "SELECT value FROM installation WHERE name = 'id'";
        let row: (String,) = sqlx::query_as(sql).fetch_one(&mut self.0).await?;
        Ok(row.0)
    }

    /// Returns the sandboxes of all sessions.
    pub(crate) async fn sandboxes(&mut self) -> Result<Vec<StoredSandbox>, Error> {
        let sql = "SELECT session, id, keeper FROM sandboxes ORDER BY tenant, session";
        let rows: Vec<(String, String, String)> =
            sqlx::query_as(sql).fetch_all(&mut self.0).await?;
        let stored = rows.into_iter().map(|(session, id, engine)| {
            Ok(StoredSandbox {
                session: SessionId::parse(&session)
                    .ok_or_else(|| Error::corrupt("session id", session))?,
                sandbox: SandboxId::parse(&id).ok_or_else(|| Error::corrupt("sandbox id", id))?,
                engine: engine.into(),
            })
        });
        stored.collect()
    }

    /// Records that `engine` keeps these workspaces under their new ids; all of them or, after an error, none.
    pub(crate) async fn move_sandboxes(
        &mut self,
        moved: &[MovedSandbox],
        engine: &EngineId,
    ) -> Result<(), Error> {
        let mut transaction = self.0.begin().await?;
        for MovedSandbox { from, to } in moved {
            sqlx::query("UPDATE sandboxes SET id = $1, keeper = $2 WHERE id = $3")
                .bind(to.as_str())
                .bind(engine.as_str())
                .bind(from.as_str())
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    /// Closes the file, which then is complete without files beside it.
    pub(crate) async fn close(self) -> Result<(), Error> {
        self.0.close().await?;
        Ok(())
    }
}
