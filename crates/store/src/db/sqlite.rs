//! Runs statements on an SQLite file, with many readers and one writer at a time.

use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{Arguments as _, Connection as _, Sqlite, SqliteConnection};
use tokio::sync::{Mutex, MutexGuard, Semaphore, SemaphorePermit};
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::super::audit::{Act, ChainHead};
use super::super::{Error, clock, data_dir};
use super::{Arg, Row, Sql, Statement, chain, schema};

/// The time that a connection waits for another writer: one of another process (`sepal admin` beside the
/// server), or a connection that was abandoned here and is still closing. On a busy disk, either can take
/// seconds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

const READERS: u32 = 4;

/// The time that a reader waits for a connection.
const READER_TIMEOUT: Duration = Duration::from_secs(30);

/// The number of pages in the write-ahead log that triggers a checkpoint (16 MiB). A busy session changes
/// the same pages repeatedly, and a checkpoint writes each page into the file only once.
const LOG_PAGES: &str = "4096";

/// Migrates the tables. The migrations are not synced one by one: after a power loss, the next start runs
/// the lost ones again.
async fn migrate(options: &SqliteConnectOptions) -> Result<(), Error> {
    let options = options.clone().synchronous(SqliteSynchronous::Normal);
    let mut connection = SqliteConnection::connect_with(&options).await?;
    let (migrations, file) = (&schema::SQLITE, options.get_filename());
    let taken_over = schema::take_over(&mut connection, migrations, "BEGIN IMMEDIATE", file).await;
    let migrated = match taken_over {
        Ok(()) => {
            let migrated = migrations.run(&mut connection).await;
            migrated.map_err(schema::unmigrated)
        }
        Err(error) => Err(error),
    };
    connection.close().await?;
    migrated
}

/// An SQLite database file with many readers and one writer at a time.
#[derive(Debug, Clone)]
pub(crate) struct SqliteDb {
    options: Arc<SqliteConnectOptions>,
    read: Arc<Readers>,
    /// The only connection that writes, or `None` after an error. Writers queue in order for this lock
    /// instead of polling SQLite's lock, and share one page cache. The lock is held across awaits by design.
    write: Arc<Mutex<Option<SqliteConnection>>>,
    /// Tracks the tasks that write or wait for their turn to write.
    writes: TaskTracker,
}

/// The connections that read. sqlx's pool would ask each one after each use whether it still answers, which
/// costs as much as a short query: two switches between threads.
#[derive(Debug)]
struct Readers {
    options: SqliteConnectOptions,
    idle: std::sync::Mutex<Vec<SqliteConnection>>,
    turns: Semaphore,
}

/// The turn to read. Unless [`Reading::keep`] is called, the connection is closed at the end of the turn.
struct Reading<'a> {
    readers: &'a Readers,
    connection: SqliteConnection,
    _turn: SemaphorePermit<'a>,
}

impl Readers {
    async fn open(options: SqliteConnectOptions) -> Result<Self, sqlx::Error> {
        let first = SqliteConnection::connect_with(&options).await?;
        Ok(Self {
            options,
            idle: std::sync::Mutex::new(vec![first]),
            turns: Semaphore::new(READERS as usize),
        })
    }

    /// Waits for the turn to read; fails after [`READER_TIMEOUT`], and once the store is closed.
    async fn turn(&self) -> Result<Reading<'_>, sqlx::Error> {
        let turn = match tokio::time::timeout(READER_TIMEOUT, self.turns.acquire()).await {
            Ok(turn) => turn.map_err(|_| sqlx::Error::PoolClosed)?,
            Err(_) => return Err(sqlx::Error::PoolTimedOut),
        };
        let idle = self.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => SqliteConnection::connect_with(&self.options).await?,
        };
        Ok(Reading {
            readers: self,
            connection,
            _turn: turn,
        })
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<SqliteConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes all connections, once those who read have done so.
    async fn close(&self) {
        let _all = self.turns.acquire_many(READERS).await;
        self.turns.close();
        let idle = std::mem::take(&mut *self.idle());
        for connection in idle {
            // Nothing was written that could be lost.
            let _ = connection.close().await;
        }
    }
}

impl Reading<'_> {
    /// Returns the connection for the next reader to use.
    fn keep(self) {
        self.readers.idle().push(self.connection);
    }
}

/// The turn to write. Unless [`Writing::keep`] is called, the connection is closed at the end of the turn,
/// which rolls back an unfinished transaction.
pub(crate) struct Writing<'a> {
    place: MutexGuard<'a, Option<SqliteConnection>>,
    pub(crate) connection: SqliteConnection,
}

impl Writing<'_> {
    /// Returns the connection for the next writer to use.
    pub(crate) fn keep(mut self) {
        *self.place = Some(self.connection);
    }
}

impl SqliteDb {
    /// Opens or creates the file and migrates its tables.
    pub(crate) async fn open(file: &Path) -> Result<Self, Error> {
        data_dir::touch_private(file)?;
        let options = SqliteConnectOptions::new()
            .filename(file)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(BUSY_TIMEOUT)
            .pragma("wal_autocheckpoint", LOG_PAGES)
            // Statements that may fail halfway note what they change. The notes stay in memory.
            .pragma("temp_store", "MEMORY")
            // SQLite overwrites deleted rows with zeros.
            .pragma("secure_delete", "ON")
            .foreign_keys(true);
        let write = SqliteConnection::connect_with(&options).await?;
        migrate(&options).await?;
        let read = Readers::open(options.clone().read_only(true)).await?;
        Ok(Self {
            options: Arc::new(options),
            read: Arc::new(read),
            write: Arc::new(Mutex::new(Some(write))),
            writes: TaskTracker::new(),
        })
    }

    /// Runs `work` with the writing connection on a separate task, so that a caller that is dropped, or that
    /// a `select!` does not poll for a while, does not block other writers.
    async fn write<T: Send + 'static>(
        &self,
        work: impl for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, sqlx::Error>>
        + Send
        + 'static,
    ) -> Result<T, Error> {
        let db = self.clone();
        let writing = async move {
            let mut writing = db.writing().await?;
            let written = work(&mut writing.connection).await;
            if is_whole(&written) {
                writing.keep();
            }
            Ok(written?)
        };
        match self.writes.spawn(writing.in_current_span()).await {
            Ok(written) => written,
            Err(ended) => match ended.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(Error::NoAnswer),
            },
        }
    }

    /// Waits for the turn to write. Call this only from a task that does nothing else meanwhile; see
    /// [`Self::write`].
    pub(crate) async fn writing(&self) -> Result<Writing<'_>, Error> {
        let mut place = self.write.lock().await;
        let connection = match place.take() {
            Some(connection) => connection,
            None => SqliteConnection::connect_with(&self.options).await?,
        };
        Ok(Writing { place, connection })
    }

    /// The path of the database file.
    pub(super) fn file(&self) -> &Path {
        self.options.get_filename()
    }

    pub(super) async fn fetch_all<T: Row>(
        &self,
        sql: Sql,
        args: Vec<Arg>,
    ) -> Result<Vec<T>, Error> {
        let query = sqlx::query_as_with::<_, T, _>(sql.for_sqlite(), bind(args)?);
        let mut reading = self.read.turn().await?;
        let rows = query.fetch_all(&mut reading.connection).await?;
        reading.keep();
        Ok(rows)
    }

    pub(super) async fn fetch_optional<T: Row>(
        &self,
        sql: &'static str,
        args: Vec<Arg>,
    ) -> Result<Option<T>, Error> {
        let query = sqlx::query_as_with::<_, T, _>(sql, bind(args)?);
        let mut reading = self.read.turn().await?;
        let row = query.fetch_optional(&mut reading.connection).await?;
        reading.keep();
        Ok(row)
    }

    pub(super) async fn change_returning<T: Row + 'static>(
        &self,
        sql: &'static str,
        args: Vec<Arg>,
        acts: impl Fn(&[T]) -> Vec<Act> + Send + Sync + 'static,
    ) -> Result<Vec<T>, Error> {
        let args = bind(args)?;
        self.write(move |connection| change_returning(connection, sql, args, acts).boxed())
            .await
    }

    pub(super) async fn append(&self, acts: Vec<Act>) -> Result<(), Error> {
        self.write(move |connection| append_alone(connection, acts).boxed())
            .await
    }

    pub(super) async fn execute_all(
        &self,
        statements: Vec<Statement>,
    ) -> Result<Option<u64>, Error> {
        let mut bound = Vec::with_capacity(statements.len());
        for statement in statements {
            let query = sqlx::query_with(statement.sql.for_sqlite(), bind(statement.args)?);
            bound.push(Bound {
                query,
                must_change: statement.must_change,
                act: statement.act,
            });
        }
        self.write(|connection| run_all(connection, bound).boxed())
            .await
    }

    pub(super) async fn change_as_read<T: Row + 'static, A: Send + 'static>(
        &self,
        sql: &'static str,
        args: Vec<Arg>,
        follow: impl Fn(Vec<T>) -> (Vec<Statement>, A) + Send + Sync + 'static,
    ) -> Result<A, Error> {
        let args = bind(args)?;
        self.write(move |connection| change_as_read(connection, sql, args, follow).boxed())
            .await
    }

    /// Records that deleted rows left data behind for [`erase`](Self::erase) to remove. The record is kept
    /// in the database file, so it survives a restart.
    pub(crate) async fn erase_later(&self) -> Result<(), Error> {
        self.set_erasure("PRAGMA user_version = 1").await
    }

    async fn set_erasure(&self, sql: &'static str) -> Result<(), Error> {
        self.write(move |connection| sqlx::query(sql).execute(connection).boxed())
            .await?;
        Ok(())
    }

    /// Removes the data that deleted rows left behind: pages in the write-ahead log, and entries that a
    /// contentless full-text index keeps until its segments are merged. `begin` starts a merge of all
    /// segments, and each `step` is one transaction, so that others can write in between. Returns false
    /// without doing anything if [`erase_later`](Self::erase_later) was not called since the last complete
    /// run.
    pub(crate) async fn erase(
        &self,
        begin: &'static str,
        step: &'static str,
    ) -> Result<bool, Error> {
        if self.erasure().await? == 0 {
            return Ok(false);
        }
        self.set_erasure("PRAGMA user_version = 2").await?;
        let mut sql = begin;
        loop {
            let changes = self.write(move |connection| count_changes(connection, sql).boxed());
            // The statement itself counts as one change.
            if changes.await? < 2 && sql == step {
                break;
            }
            sql = step;
        }
        if !self.empty_log().await? {
            // A reader still uses a page of the log, so the erasure stays pending.
            return Ok(true);
        }
        // Rows that were deleted meanwhile have set the value back to 1.
        if self.erasure().await? == 2 {
            self.set_erasure("PRAGMA user_version = 0").await?;
            self.empty_log().await?;
        }
        Ok(true)
    }

    /// Reads the state of the erasure. 0: nothing was deleted; 1: rows were deleted; 2: an erasure is
    /// running.
    async fn erasure(&self) -> Result<i64, Error> {
        let sql = "SELECT user_version FROM pragma_user_version";
        let value: (i64,) = self
            .write(move |connection| sqlx::query_as(sql).fetch_one(connection).boxed())
            .await?;
        Ok(value.0)
    }

    /// Checkpoints and truncates the write-ahead log. Returns false if a reader prevented that.
    async fn empty_log(&self) -> Result<bool, Error> {
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        let (busy, _, _): (i64, i64, i64) = self
            .write(move |connection| sqlx::query_as(sql).fetch_one(connection).boxed())
            .await?;
        Ok(busy == 0)
    }

    pub(super) async fn close(&self) {
        self.read.close().await;
        self.writes.close();
        self.writes.wait().await;
        let connection = self.write.lock().await.take();
        if let Some(connection) = connection {
            // The next process that opens the file recovers a log that was left behind.
            let _ = connection.close().await;
        }
    }
}

/// Runs a statement and returns the number of rows that it changed, including those of triggers and virtual
/// tables.
async fn count_changes(
    connection: &mut SqliteConnection,
    sql: &'static str,
) -> Result<i64, sqlx::Error> {
    let before = total_changes(connection).await?;
    sqlx::query(sql).execute(&mut *connection).await?;
    Ok(total_changes(connection).await? - before)
}

/// The number of rows that this connection has changed since it was opened.
async fn total_changes(connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
    let changes: (i64,) = sqlx::query_as("SELECT total_changes()")
        .fetch_one(connection)
        .await?;
    Ok(changes.0)
}

/// A statement with its values.
struct Bound {
    query: Query<'static, Sqlite, SqliteArguments>,
    must_change: bool,
    act: Option<Box<Act>>,
}

/// Runs all statements in one transaction. Returns `None` and rolls back if one that must change rows did
/// not.
async fn run_all(
    connection: &mut SqliteConnection,
    statements: Vec<Bound>,
) -> Result<Option<u64>, sqlx::Error> {
    let mut tx = connection.begin_with("BEGIN IMMEDIATE").await?;
    let mut changed = 0;
    let mut acts = Vec::new();
    for statement in statements {
        let rows = statement.query.execute(&mut *tx).await?.rows_affected();
        if rows == 0 && statement.must_change {
            tx.rollback().await?;
            return Ok(None);
        }
        changed += rows;
        acts.extend(statement.act.filter(|_| rows > 0).map(|act| *act));
    }
    append(&mut tx, acts).await?;
    tx.commit().await?;
    Ok(Some(changed))
}

/// Runs a statement that returns rows, and records what was done.
async fn change_returning<T: Row>(
    connection: &mut SqliteConnection,
    sql: &'static str,
    args: SqliteArguments,
    acts: impl Fn(&[T]) -> Vec<Act>,
) -> Result<Vec<T>, sqlx::Error> {
    let mut tx = connection.begin_with("BEGIN IMMEDIATE").await?;
    let query = sqlx::query_as_with::<_, T, _>(sql, args);
    let rows = query.fetch_all(&mut *tx).await?;
    append(&mut tx, acts(&rows)).await?;
    tx.commit().await?;
    Ok(rows)
}

async fn append_alone(
    connection: &mut SqliteConnection,
    acts: Vec<Act>,
) -> Result<(), sqlx::Error> {
    let mut tx = connection.begin_with("BEGIN IMMEDIATE").await?;
    append(&mut tx, acts).await?;
    tx.commit().await
}

/// Appends the records of acts to their chains.
async fn append(connection: &mut SqliteConnection, acts: Vec<Act>) -> Result<(), sqlx::Error> {
    for act in acts {
        let chain = act.chain().to_owned();
        let head: Option<ChainHead> = sqlx::query_as(chain::HEAD)
            .bind(&chain)
            .fetch_optional(&mut *connection)
            .await?;
        let record = act.follow(head.as_ref(), clock::now().0);
        sqlx::query_with(chain::APPEND, bind(chain::values(&chain, &record))?)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// Reads rows and runs the statements that `follow` derives from them, in one transaction. Rolls back if
/// there are none.
async fn change_as_read<T: Row, A>(
    connection: &mut SqliteConnection,
    sql: &'static str,
    args: SqliteArguments,
    follow: impl Fn(Vec<T>) -> (Vec<Statement>, A),
) -> Result<A, sqlx::Error> {
    let mut tx = connection.begin_with("BEGIN IMMEDIATE").await?;
    let query = sqlx::query_as_with::<_, T, _>(sql, args);
    let (statements, answer) = follow(query.fetch_all(&mut *tx).await?);
    if statements.is_empty() {
        tx.rollback().await?;
        return Ok(answer);
    }
    let mut acts = Vec::new();
    for statement in statements {
        let query = sqlx::query_with(statement.sql.for_sqlite(), bind(statement.args)?);
        let rows = query.execute(&mut *tx).await?.rows_affected();
        acts.extend(statement.act.filter(|_| rows > 0).map(|act| *act));
    }
    append(&mut tx, acts).await?;
    tx.commit().await?;
    Ok(answer)
}

/// Returns true if the connection can be used again after this answer: it succeeded, or a unique constraint
/// refused a statement, which leaves at most a transaction that the next use rolls back.
fn is_whole<T>(answer: &Result<T, sqlx::Error>) -> bool {
    answer.as_ref().map_or_else(
        |error| {
            error
                .as_database_error()
                .is_some_and(sqlx::error::DatabaseError::is_unique_violation)
        },
        |_| true,
    )
}

/// Copies a consistent snapshot of a database into a file, which must be empty or missing. Others may write
/// meanwhile. Returns the newest migration in the copied database.
pub(crate) async fn copy(from: &Path, to: &Path) -> Result<i64, Error> {
    let Some(target) = to.to_str() else {
        return Err(Error::Unusable {
            path: to.to_owned(),
            reason: "SQLite takes only names in UTF-8",
            source: None,
        });
    };
    // Creates the file before SQLite would create it readable by others.
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

fn bind(args: Vec<Arg>) -> Result<SqliteArguments, sqlx::Error> {
    let mut bound = SqliteArguments::default();
    for arg in args {
        match arg {
            Arg::Text(value) => bound.add(value),
            Arg::Int(value) => bound.add(value),
            Arg::Bool(value) => bound.add(value),
            Arg::Bytes(value) => bound.add(value),
        }
        .map_err(sqlx::Error::Encode)?;
    }
    Ok(bound)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::poll;

    use super::super::{Statement, args};
    use super::SqliteDb;
    use crate::Error;

    /// A dropped or unpolled writing future, as in a `select!`, does not keep others from writing.
    #[tokio::test]
    async fn a_caller_that_stops_waiting_keeps_nobody_from_writing() {
        let dir = tempfile::tempdir().unwrap();
        let db = SqliteDb::open(&dir.path().join("s.db")).await.unwrap();
        let add = |id: &str| {
            let sql = "INSERT INTO tenants (id, name, created_at) VALUES ($1, $1, 0)";
            db.execute_all(vec![Statement::new(sql, args![id])])
        };
        let mut first = Box::pin(add("first"));
        assert!(poll!(&mut first).is_pending());
        let second = tokio::time::timeout(Duration::from_secs(10), add("second"));
        assert_eq!(second.await.unwrap().unwrap(), Some(1));
        assert_eq!(first.await.unwrap(), Some(1));
        let mut dropped = Box::pin(add("dropped"));
        assert!(poll!(&mut dropped).is_pending());
        drop(dropped);
        assert_eq!(add("last").await.unwrap(), Some(1));
        let sql = "SELECT id FROM tenants ORDER BY created_at, id";
        let rows: Vec<(String,)> = db
            .fetch_all(super::super::Sql::from(sql), args![])
            .await
            .unwrap();
        let ids: Vec<&str> = rows.iter().map(|row| row.0.as_str()).collect();
        assert_eq!(ids, ["dropped", "first", "last", "second"]);
    }

    /// Dropped readers give their turns back, and closing waits for the others only.
    #[tokio::test]
    async fn readers_that_stop_waiting_keep_nobody_from_reading() {
        let dir = tempfile::tempdir().unwrap();
        let db = SqliteDb::open(&dir.path().join("s.db")).await.unwrap();
        let read = || db.fetch_optional::<(String,)>("SELECT id FROM tenants", args![]);
        // A reader may have its answer at once, and is not dropped then.
        let mut dropped = 0;
        while dropped < 2 * super::READERS {
            let mut reader = Box::pin(read());
            dropped += u32::from(poll!(&mut reader).is_pending());
        }
        let readers = (0..20).map(|_| read());
        let all = futures::future::try_join_all(readers);
        let answers = tokio::time::timeout(Duration::from_secs(10), all).await;
        assert_eq!(answers.unwrap().unwrap(), vec![None; 20]);
        db.close().await;
        let refused = read().await.unwrap_err();
        assert!(
            matches!(&refused, Error::Database(cause) if matches!(**cause, sqlx::Error::PoolClosed))
        );
    }

    #[tokio::test]
    async fn a_writer_waits_for_the_disk_and_for_its_turn() {
        let dir = tempfile::tempdir().unwrap();
        let db = SqliteDb::open(&dir.path().join("s.db")).await.unwrap();
        let mut writing = db.writing().await.unwrap();
        let connection = &mut writing.connection;
        for (sql, expected) in [
            ("SELECT synchronous FROM pragma_synchronous", 2),
            ("SELECT foreign_keys FROM pragma_foreign_keys", 1),
            ("SELECT timeout FROM pragma_busy_timeout", 30_000),
            ("SELECT journal_mode = 'wal' FROM pragma_journal_mode", 1),
            ("PRAGMA wal_autocheckpoint", 4_096),
            ("PRAGMA secure_delete", 1),
        ] {
            let value: (i64,) = sqlx::query_as(sql)
                .fetch_one(&mut *connection)
                .await
                .unwrap();
            assert_eq!(value.0, expected, "{sql}");
        }
    }
}
