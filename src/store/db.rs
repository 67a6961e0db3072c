//! The database behind the records: one SQL text with `$1` placeholders for every kind of it.
//! Only this file knows the drivers; PostgreSQL will be a second variant here.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{
    SqliteArguments, SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
    SqliteRow, SqliteSynchronous,
};
use sqlx::{Arguments as _, Connection as _, FromRow, SqliteConnection};
use tokio::sync::Mutex;

use super::{Error, data_dir};

/// How long a connection waits for another process (`sepal admin` beside the server).
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

const READERS: u32 = 4;

/// A database with the tables of this version.
#[derive(Debug, Clone)]
pub(super) enum Db {
    /// One file.
    Sqlite(SqliteDb),
}

/// A file of SQLite: many readers, one writer at a time.
#[derive(Debug, Clone)]
pub(super) struct SqliteDb {
    options: SqliteConnectOptions,
    pub(super) read: SqlitePool,
    write: SqlitePool,
    /// Taken by every writer of this process, so that they queue in order instead of polling
    /// SQLite's lock. Held across awaits by design.
    turn: Arc<Mutex<()>>,
}

impl SqliteDb {
    /// Opens or creates the file and brings its tables up to date.
    pub(super) async fn open(file: &Path) -> Result<Self, Error> {
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
        sqlx::migrate!("migrations/sqlite")
            .run(&write)
            .await
            .map_err(|error| Error::Migration(Arc::new(error)))?;
        let read = SqlitePoolOptions::new()
            .max_connections(READERS)
            .test_before_acquire(false)
            .connect_with(options.clone().read_only(true))
            .await?;
        Ok(Self {
            options,
            read,
            write,
            turn: Arc::default(),
        })
    }

    /// A connection of the caller's own; to be used for writing only while holding the turn.
    pub(super) async fn connect(&self) -> Result<SqliteConnection, Error> {
        Ok(SqliteConnection::connect_with(&self.options).await?)
    }

    /// The turn to write.
    pub(super) fn turn(&self) -> Arc<Mutex<()>> {
        Arc::clone(&self.turn)
    }

    async fn execute_all(&self, statements: Vec<Statement>) -> Result<Option<u64>, Error> {
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

    async fn close(&self) {
        self.read.close().await;
        self.write.close().await;
    }
}

/// A row that every driver can read; derive `sqlx::FromRow`.
pub(super) trait Row: for<'r> FromRow<'r, SqliteRow> + Send + Unpin {}
impl<T: for<'r> FromRow<'r, SqliteRow> + Send + Unpin> Row for T {}

/// A value for a placeholder, in the types that every database has.
#[derive(Debug, Clone)]
pub(super) enum Arg {
    /// TEXT.
    Text(Option<String>),
    /// BIGINT: counts, and times in ms since 1970.
    Int(Option<i64>),
    /// BOOLEAN.
    Bool(bool),
}

impl From<&str> for Arg {
    fn from(value: &str) -> Self {
        Self::Text(Some(value.to_owned()))
    }
}
impl From<Option<&str>> for Arg {
    fn from(value: Option<&str>) -> Self {
        Self::Text(value.map(str::to_owned))
    }
}
impl From<i64> for Arg {
    fn from(value: i64) -> Self {
        Self::Int(Some(value))
    }
}
impl From<bool> for Arg {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

/// Lists arguments of mixed types.
macro_rules! args {
    ($($value:expr),* $(,)?) => { vec![$($crate::store::db::Arg::from($value)),*] };
}
pub(super) use args;

/// One writing statement of a transaction.
#[derive(Debug)]
pub(super) struct Statement {
    sql: &'static str,
    args: Vec<Arg>,
    must_change: bool,
}

impl Statement {
    /// A statement that may change nothing.
    pub(super) fn new(sql: &'static str, args: Vec<Arg>) -> Self {
        Self {
            sql,
            args,
            must_change: false,
        }
    }

    /// A statement without whose change the whole transaction is rolled back.
    pub(super) fn required(sql: &'static str, args: Vec<Arg>) -> Self {
        Self {
            must_change: true,
            ..Self::new(sql, args)
        }
    }
}

impl Db {
    /// All rows.
    pub(super) async fn fetch_all<T: Row>(
        &self,
        sql: &'static str,
        args: Vec<Arg>,
    ) -> Result<Vec<T>, Error> {
        let Self::Sqlite(db) = self;
        let query = sqlx::query_as_with::<_, T, _>(sql, bind(args)?);
        Ok(query.fetch_all(&db.read).await?)
    }

    /// The row, if there is one.
    pub(super) async fn fetch_optional<T: Row>(
        &self,
        sql: &'static str,
        args: Vec<Arg>,
    ) -> Result<Option<T>, Error> {
        let Self::Sqlite(db) = self;
        let query = sqlx::query_as_with::<_, T, _>(sql, bind(args)?);
        Ok(query.fetch_optional(&db.read).await?)
    }

    /// Runs a writing statement that returns rows (`… RETURNING …`).
    pub(super) async fn change_returning<T: Row>(
        &self,
        sql: &'static str,
        args: Vec<Arg>,
    ) -> Result<Vec<T>, Error> {
        let Self::Sqlite(db) = self;
        let _turn = db.turn.lock().await;
        let query = sqlx::query_as_with::<_, T, _>(sql, bind(args)?);
        Ok(query.fetch_all(&db.write).await?)
    }

    /// Runs one writing statement; gives the number of changed rows.
    pub(super) async fn execute(&self, sql: &'static str, args: Vec<Arg>) -> Result<u64, Error> {
        let changed = self.execute_all(vec![Statement::new(sql, args)]).await?;
        Ok(changed.unwrap_or(0))
    }

    /// Runs all statements in one transaction, or none: `None` when a required one changed nothing.
    pub(super) async fn execute_all(
        &self,
        statements: Vec<Statement>,
    ) -> Result<Option<u64>, Error> {
        let Self::Sqlite(db) = self;
        db.execute_all(statements).await
    }

    /// Asks for a sign of life.
    pub(super) async fn ping(&self) -> Result<(), Error> {
        let Self::Sqlite(db) = self;
        sqlx::query("SELECT 1").execute(&db.read).await?;
        Ok(())
    }

    /// Ends every connection.
    pub(super) async fn close(&self) {
        let Self::Sqlite(db) = self;
        db.close().await;
    }
}

/// Says `Taken(name)` where a unique rule refused the statement.
pub(super) fn taken(name: &str) -> impl FnOnce(Error) -> Error {
    move |error| match &error {
        Error::Database(cause)
            if cause
                .as_database_error()
                .is_some_and(sqlx::error::DatabaseError::is_unique_violation) =>
        {
            Error::Taken(name.to_owned())
        }
        Error::Database(_)
        | Error::Redis { .. }
        | Error::NoAnswer
        | Error::Migration(_)
        | Error::Taken(_)
        | Error::TooLarge { .. }
        | Error::Corrupt { .. }
        | Error::Sealed(_)
        | Error::Unusable { .. }
        | Error::Locked { .. } => error,
    }
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

/// The file of `sqlite://path`; without an address, `sepal.db` in the data folder.
pub(super) fn sqlite_file(address: Option<&str>, data_dir: &Path) -> Result<PathBuf, Error> {
    let Some(address) = address else {
        return Ok(data_dir.join("sepal.db"));
    };
    let path = address
        .strip_prefix("sqlite://")
        .or_else(|| address.strip_prefix("sqlite:"))
        .map(|path| path.split_once('?').map_or(path, |(path, _)| path));
    match path {
        Some(path) if !path.is_empty() && path != ":memory:" => Ok(path.into()),
        Some(_) => Err(unusable_address(address, "the address names no file")),
        None => Err(unusable_address(
            address,
            "this version keeps its records in SQLite (`sqlite://<file>`)",
        )),
    }
}

/// Only the scheme: the rest may hold a password.
fn unusable_address(address: &str, reason: &'static str) -> Error {
    let scheme = address.split(':').next().unwrap_or_default();
    Error::Unusable {
        path: format!("{scheme}:…").into(),
        reason,
        source: None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{SqliteDb, sqlite_file};

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

    #[test]
    fn an_address_names_a_file_or_is_refused_without_its_password() {
        let check = |address, expected: &str| {
            let text = match sqlite_file(address, Path::new("data")) {
                Ok(path) => path.display().to_string(),
                Err(error) => error.to_string(),
            };
            assert_eq!(text, expected);
        };
        check(None, "data/sepal.db");
        check(Some("sqlite://data/sepal.db"), "data/sepal.db");
        check(Some("sqlite:///var/lib/s.db?mode=rwc"), "/var/lib/s.db");
        check(Some("sqlite:s.db"), "s.db");
        check(
            Some("sqlite::memory:"),
            "cannot use `sqlite:…`: the address names no file",
        );
        check(
            Some("postgres://a:secret@b/c"),
            "cannot use `postgres:…`: this version keeps its records in SQLite (`sqlite://<file>`)",
        );
    }
}
