//! SQLite: one file with many readers and one writer at a time.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::migrate::Migrator;
use sqlx::sqlite::{
    SqliteArguments, SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
    SqliteSynchronous,
};
use sqlx::{Arguments as _, Connection as _, SqliteConnection};
use tokio::sync::Mutex;

use super::super::{Error, data_dir};
use super::{Arg, Row, Statement};

/// Every change of the tables since the first release.
static MIGRATIONS: Migrator = sqlx::migrate!("migrations/sqlite");

/// How long a connection waits for another process (`sepal admin` beside the server).
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

const READERS: u32 = 4;

/// Brings the tables up to date. A power loss may take back the last of the steps, which are then
/// made again at the next start: no sync for each of them.
async fn migrate(options: &SqliteConnectOptions) -> Result<(), Error> {
    let options = options.clone().synchronous(SqliteSynchronous::Normal);
    let mut connection = SqliteConnection::connect_with(&options).await?;
    let migrated = MIGRATIONS.run(&mut connection).await;
    connection.close().await?;
    migrated.map_err(|error| Error::Migration(Arc::new(error)))
}

/// A file of SQLite: many readers, one writer at a time.
#[derive(Debug, Clone)]
pub(in crate::store) struct SqliteDb {
    options: Arc<SqliteConnectOptions>,
    read: SqlitePool,
    write: SqlitePool,
    /// Taken by every writer of this process, so that they queue in order instead of polling
    /// SQLite's lock. Held across awaits by design.
    turn: Arc<Mutex<()>>,
}

impl SqliteDb {
    /// Opens or creates the file and brings its tables up to date.
    pub(in crate::store) async fn open(file: &Path) -> Result<Self, Error> {
        data_dir::touch_private(file)?;
        let options = SqliteConnectOptions::new()
            .filename(file)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(BUSY_TIMEOUT)
            .foreign_keys(true);
        let write = SqlitePoolOptions::new()
            .max_connections(1)
            .test_before_acquire(false)
            .connect_with(options.clone())
            .await?;
        migrate(&options).await?;
        let read = SqlitePoolOptions::new()
            .max_connections(READERS)
            .test_before_acquire(false)
            .connect_with(options.clone().read_only(true))
            .await?;
        Ok(Self {
            options: Arc::new(options),
            read,
            write,
            turn: Arc::default(),
        })
    }

    /// A connection of the caller's own; to be used for writing only while holding the turn.
    pub(in crate::store) async fn connect(&self) -> Result<SqliteConnection, Error> {
        Ok(SqliteConnection::connect_with(&self.options).await?)
    }

    /// The file.
    pub(super) fn file(&self) -> &Path {
        self.options.get_filename()
    }

    /// The turn to write.
    pub(in crate::store) fn turn(&self) -> Arc<Mutex<()>> {
        Arc::clone(&self.turn)
    }

    pub(super) async fn fetch_all<T: Row>(
        &self,
        sql: &'static str,
        args: Vec<Arg>,
    ) -> Result<Vec<T>, Error> {
        let query = sqlx::query_as_with::<_, T, _>(sql, bind(args)?);
        Ok(query.fetch_all(&self.read).await?)
    }

    pub(super) async fn fetch_optional<T: Row>(
        &self,
        sql: &'static str,
        args: Vec<Arg>,
    ) -> Result<Option<T>, Error> {
        let query = sqlx::query_as_with::<_, T, _>(sql, bind(args)?);
        Ok(query.fetch_optional(&self.read).await?)
    }

    pub(super) async fn change_returning<T: Row>(
        &self,
        sql: &'static str,
        args: Vec<Arg>,
    ) -> Result<Vec<T>, Error> {
        let _turn = self.turn.lock().await;
        let query = sqlx::query_as_with::<_, T, _>(sql, bind(args)?);
        Ok(query.fetch_all(&self.write).await?)
    }

    pub(super) async fn execute_all(
        &self,
        statements: Vec<Statement>,
    ) -> Result<Option<u64>, Error> {
        let _turn = self.turn.lock().await;
        let mut tx = self.write.begin_with("BEGIN IMMEDIATE").await?;
        let mut changed = 0;
        for statement in statements {
            let query = sqlx::query_with(statement.sql, bind(statement.args)?);
            let rows = query.execute(&mut *tx).await?.rows_affected();
            if rows == 0 && statement.must_change {
                tx.rollback().await?;
                return Ok(None);
            }
            changed += rows;
        }
        tx.commit().await?;
        Ok(Some(changed))
    }

    pub(super) async fn close(&self) {
        self.read.close().await;
        self.write.close().await;
    }
}

/// Copies a database as it stands at one moment into a file of its own, which must be empty or
/// missing; others may write meanwhile. Gives the newest migration of its tables.
pub(in crate::store) async fn copy(from: &Path, to: &Path) -> Result<i64, Error> {
    let Some(target) = to.to_str() else {
        return Err(Error::Unusable {
            path: to.to_owned(),
            reason: "SQLite takes only names in UTF-8",
            source: None,
        });
    };
    // Before SQLite makes it for everybody to read.
    data_dir::touch_private(to)?;
    let options = SqliteConnectOptions::new()
        .filename(from)
        .read_only(true)
        .busy_timeout(BUSY_TIMEOUT);
    let mut connection = SqliteConnection::connect_with(&options).await?;
    sqlx::query("VACUUM INTO $1")
        .bind(target)
        .execute(&mut connection)
        .await?;
    let sql = "SELECT COALESCE(MAX(version), 0) FROM _sqlx_migrations";
    let schema: (i64,) = sqlx::query_as(sql).fetch_one(&mut connection).await?;
    connection.close().await?;
    Ok(schema.0)
}

/// The newest migration that this program knows.
pub(in crate::store) fn newest_schema() -> i64 {
    let versions = MIGRATIONS.iter().map(|migration| migration.version);
    versions.max().unwrap_or(0)
}

fn bind(args: Vec<Arg>) -> Result<SqliteArguments, Error> {
    let mut bound = SqliteArguments::default();
    for arg in args {
        match arg {
            Arg::Text(value) => bound.add(value),
            Arg::Int(value) => bound.add(value),
            Arg::Bool(value) => bound.add(value),
        }
        .map_err(sqlx::Error::Encode)?;
    }
    Ok(bound)
}

#[cfg(test)]
mod tests {
    use super::SqliteDb;

    #[tokio::test]
    async fn a_writer_waits_for_the_disk_and_for_its_turn() {
        let dir = tempfile::tempdir().unwrap();
        let db = SqliteDb::open(&dir.path().join("s.db")).await.unwrap();
        let mut connection = db.connect().await.unwrap();
        for (sql, expected) in [
            ("SELECT synchronous FROM pragma_synchronous", 2),
            ("SELECT foreign_keys FROM pragma_foreign_keys", 1),
            ("SELECT timeout FROM pragma_busy_timeout", 5_000),
            ("SELECT journal_mode = 'wal' FROM pragma_journal_mode", 1),
        ] {
            let value: (i64,) = sqlx::query_as(sql)
                .fetch_one(&mut connection)
                .await
                .unwrap();
            assert_eq!(value.0, expected, "{sql}");
        }
    }
}
