//! Runs the SQL of the records on SQLite or PostgreSQL, with one SQL text with `$1` placeholders for both.
//!
//! Only this folder uses the database drivers.

mod address;
mod audited;
mod chain;
mod counted;
mod hold;
mod keyed;
mod postgres;
mod rows;
mod schema;
mod sql;
mod sqlite;
mod staged;

use std::path::{Path, PathBuf};

use sqlx::FromRow;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;

use super::Error;
use super::audit::{Act, acting};
use super::keyed::KeyedRequest;
use super::versions::RecordName;
use address::Address;

pub(super) use counted::{Counted, read_versions};
pub(super) use hold::Hold;
pub(super) use postgres::{PostgresDb, within};
pub(super) use rows::{AnyRow, Cell, ColumnKind, TableColumn};
pub(super) use schema::newest_schema;
pub(super) use sql::{PerRow, Sql};
pub(super) use sqlite::{SqliteDb, copy};
pub(super) use staged::StagedDatabase;
pub use staged::{MovedSandbox, StoredSandbox};

/// The database's file name in the data folder.
pub(super) const DATABASE_FILE: &str = "sepal.db";

/// A database whose tables match this version of the program.
#[derive(Debug, Clone)]
pub(super) enum Db {
    /// An SQLite file.
    Sqlite(SqliteDb),
    /// A PostgreSQL server.
    Postgres(PostgresDb),
}

/// A row that every driver can read; derive `sqlx_macros::FromRow`.
pub(super) trait Row:
    for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin
{
}
impl<T> Row for T where T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin
{}

/// A value for a placeholder, in one of the types that both databases have.
#[derive(Debug, Clone)]
pub(super) enum Arg {
    /// TEXT.
    Text(Option<String>),
    /// BIGINT: counts, and times in ms since 1970.
    Int(Option<i64>),
    /// BOOLEAN.
    Bool(bool),
    /// BLOB, or BYTEA.
    Bytes(Vec<u8>),
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
impl From<Option<i64>> for Arg {
    fn from(value: Option<i64>) -> Self {
        Self::Int(value)
    }
}
impl From<Vec<u8>> for Arg {
    fn from(value: Vec<u8>) -> Self {
        Self::Bytes(value)
    }
}
impl From<bool> for Arg {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

/// Builds a list of arguments of mixed types.
macro_rules! args {
    ($($value:expr),* $(,)?) => { vec![$($crate::db::Arg::from($value)),*] };
}
pub(super) use args;

/// One writing statement of a transaction.
#[derive(Debug, Clone)]
pub(super) struct Statement {
    sql: Sql,
    args: Vec<Arg>,
    must_change: bool,
    /// What the statement does, recorded in the same transaction if it changes rows.
    act: Option<Box<Act>>,
    /// True if the statement only removes or renews what the gateway keeps for itself.
    is_upkeep: bool,
    record: Option<RecordName>,
}

impl Statement {
    /// A statement that is allowed to change no rows.
    pub(super) fn new(sql: impl Into<Sql>, args: Vec<Arg>) -> Self {
        Self {
            sql: sql.into(),
            args,
            must_change: false,
            act: None,
            is_upkeep: false,
            record: None,
        }
    }

    /// Says which record this statement changes, if its changes are counted.
    pub(super) fn changing(mut self, record: RecordName) -> Self {
        self.record = Some(record);
        self
    }

    /// A statement that rolls back the whole transaction if it changes no rows.
    pub(super) fn required(sql: &'static str, args: Vec<Arg>) -> Self {
        Self {
            must_change: true,
            ..Self::new(sql, args)
        }
    }

    /// Records the act in the transaction, if the statement changes rows.
    pub(super) fn recorded(self, act: Act) -> Self {
        Self {
            act: Some(Box::new(act)),
            ..self
        }
    }

    /// Says that the statement needs no record: it removes what has expired, or renews what nobody decided.
    pub(super) fn upkeep(self) -> Self {
        Self {
            is_upkeep: true,
            ..self
        }
    }
}

impl Db {
    /// Opens the database at `address`, or `sepal.db` in the data folder, and migrates its tables.
    pub(super) async fn open(address: Option<&str>, data_dir: &Path) -> Result<Self, Error> {
        match Address::parse(address, data_dir)? {
            Address::Sqlite(file) => Ok(Self::Sqlite(SqliteDb::open(&file).await?)),
            Address::Postgres(options) => Ok(Self::Postgres(PostgresDb::open(options).await?)),
        }
    }

    /// The kind of database, and its location without credentials.
    pub(super) fn describe(&self) -> (&'static str, String) {
        match self {
            Self::Sqlite(db) => ("sqlite", format!("one file `{}`", db.file().display())),
            Self::Postgres(db) => ("postgres", format!("PostgreSQL `{}`", db.address())),
        }
    }

    /// Runs a query and returns all rows.
    pub(super) async fn fetch_all<T: Row>(
        &self,
        sql: impl Into<Sql> + Send,
        args: Vec<Arg>,
    ) -> Result<Vec<T>, Error> {
        let sql = sql.into();
        match self {
            Self::Sqlite(db) => db.fetch_all(sql, args).await,
            Self::Postgres(db) => db.fetch_all(sql, args).await,
        }
    }

    /// Runs a query and returns its row, if there is one.
    pub(super) async fn fetch_optional<T: Row>(
        &self,
        sql: &'static str,
        args: Vec<Arg>,
    ) -> Result<Option<T>, Error> {
        match self {
            Self::Sqlite(db) => db.fetch_optional(sql, args).await,
            Self::Postgres(db) => db.fetch_optional(sql, args).await,
        }
    }

    /// Runs a writing statement that returns rows (`… RETURNING …`), and records the acts that `acts` makes
    /// of the rows.
    pub(super) async fn change_returning<T: Row + 'static>(
        &self,
        sql: &'static str,
        args: Vec<Arg>,
        acts: impl Fn(&[T]) -> Vec<Act> + Send + Sync + 'static,
    ) -> Result<Vec<T>, Error> {
        match self {
            Self::Sqlite(db) => db.change_returning(sql, args, acts).await,
            Self::Postgres(db) => db.change_returning(sql, args, acts).await,
        }
    }

    /// Runs a writing statement that returns rows (`… RETURNING …`) and is no act.
    pub(super) async fn execute_returning<T: Row + 'static>(
        &self,
        sql: &'static str,
        args: Vec<Arg>,
    ) -> Result<Vec<T>, Error> {
        check_recorded(&[Statement::new(sql, Vec::new())])?;
        match self {
            Self::Sqlite(db) => db.change_returning(sql, args, |_: &[T]| Vec::new()).await,
            // One statement is a transaction of its own. It appends to no chain, so it takes no turn.
            Self::Postgres(db) => db.fetch_all(sql.into(), args).await,
        }
    }

    /// Runs one writing statement and returns the number of changed rows.
    pub(super) async fn execute(&self, sql: &'static str, args: Vec<Arg>) -> Result<u64, Error> {
        let changed = self.execute_all(vec![Statement::new(sql, args)]).await?;
        Ok(changed.unwrap_or(0))
    }

    /// Runs one writing statement that is an act, and returns the number of changed rows.
    pub(super) async fn record(
        &self,
        act: Act,
        sql: &'static str,
        args: Vec<Arg>,
    ) -> Result<u64, Error> {
        let statement = Statement::new(sql, args).recorded(act);
        Ok(self.execute_all(vec![statement]).await?.unwrap_or(0))
    }

    /// Appends the records of acts that change nothing else.
    pub(super) async fn append(&self, acts: Vec<Act>) -> Result<(), Error> {
        let chains = acts.iter().map(|act| act.chain().to_owned()).collect();
        let done = match self {
            Self::Sqlite(db) => db.append(acts).await,
            Self::Postgres(db) => db.append(&acts).await,
        };
        self.explained(chains, done).await
    }

    /// Runs one statement that needs no record, although its table is audited; see [`Statement::upkeep`].
    pub(super) async fn keep_up(&self, sql: &'static str, args: Vec<Arg>) -> Result<u64, Error> {
        let statement = Statement::new(sql, args).upkeep();
        Ok(self.execute_all(vec![statement]).await?.unwrap_or(0))
    }

    /// Runs one writing statement that is an act on a record whose changes are counted, and returns the number
    /// of changed rows.
    pub(super) async fn change(
        &self,
        record: RecordName,
        act: Act,
        sql: &'static str,
        args: Vec<Arg>,
    ) -> Result<u64, Error> {
        let statement = Statement::new(sql, args).recorded(act).changing(record);
        Ok(self.execute_all(vec![statement]).await?.unwrap_or(0))
    }

    /// Notes that a request with a key changes something that is not stored in this database.
    pub(super) async fn note_change(&self, request: &KeyedRequest) -> Result<(), Error> {
        self.execute_all(vec![keyed::note_change(request)]).await?;
        Ok(())
    }

    /// Counts a change of a record that is not stored in this database.
    pub(super) async fn count(&self, record: RecordName) -> Result<(), Error> {
        self.execute_counted(vec![Counted::of(record)], Vec::new())
            .await?;
        Ok(())
    }

    /// Runs all statements in one transaction and returns the number of changed rows. Returns `None` and
    /// rolls back if a required statement changed no rows, and [`Error::Changed`] if a record does not have
    /// the version that the writer requires.
    pub(super) async fn execute_all(
        &self,
        statements: Vec<Statement>,
    ) -> Result<Option<u64>, Error> {
        check_recorded(&statements)?;
        let records = statements.iter().filter_map(|it| it.record.clone());
        let counted = records.map(Counted::of).collect();
        self.execute_counted(counted, statements).await
    }

    async fn execute_counted(
        &self,
        counted: Vec<Counted>,
        statements: Vec<Statement>,
    ) -> Result<Option<u64>, Error> {
        let mut all: Vec<Statement> = counted.iter().map(Counted::statement).collect();
        let chains = chains_of(&statements);
        if let Some(request) = acting::request().filter(|_| !chains.is_empty()) {
            all.push(keyed::note_change(&request));
        }
        let counts = all.len() as u64;
        all.extend(statements);
        let done = match self {
            Self::Sqlite(db) => db.execute_all(all).await,
            Self::Postgres(db) => db.execute_all(&all).await,
        };
        let changed = self.explained(chains, done).await?;
        if changed.is_none() {
            Counted::check(self, &counted).await?;
        }
        Ok(changed.map(|rows| rows.saturating_sub(counts)))
    }

    /// Runs statements that are each correct regardless of what other transactions wrote before them. They
    /// use row locks instead of serializable isolation, so that concurrent transactions wait instead of
    /// aborting each other.
    pub(super) async fn execute_in_turn(&self, statements: Vec<Statement>) -> Result<(), Error> {
        check_recorded(&statements)?;
        let chains = chains_of(&statements);
        let done = match self {
            Self::Sqlite(db) => db.execute_all(statements).await,
            Self::Postgres(db) => db.execute_in_turn(&statements).await,
        };
        self.explained(chains, done).await?;
        Ok(())
    }

    /// Passes on what came of a change. The error is [`Error::TenantDeleted`] if the chain of one of its acts
    /// went with its tenant.
    async fn explained<T>(&self, chains: Vec<String>, done: Result<T, Error>) -> Result<T, Error> {
        if done.as_ref().is_err_and(is_without_value) {
            for chain in chains {
                let found: Option<(i64,)> = self
                    .fetch_optional(chain::DELETED, args![chain.as_str()])
                    .await?;
                if found.is_some() {
                    return Err(Error::TenantDeleted);
                }
            }
        }
        done
    }

    /// Reads rows and writes the statements that `follow` derives from them, as one step. Calls with the
    /// same `turn` run one after the other, so each reads what the previous call wrote.
    pub(super) async fn change_as_read<T: Row + 'static, A: Send + 'static>(
        &self,
        turn: &str,
        sql: &'static str,
        args: Vec<Arg>,
        follow: impl Fn(Vec<T>) -> (Vec<Statement>, A) + Send + Sync + 'static,
    ) -> Result<A, Error> {
        let follow = move |rows| {
            let (statements, answer) = follow(rows);
            debug_assert_eq!(audited::unrecorded(&statements), None);
            (statements, answer)
        };
        match self {
            // SQLite has one writer at a time, so `turn` is not needed.
            Self::Sqlite(db) => db.change_as_read(sql, args, follow).await,
            Self::Postgres(db) => db.change_as_read(turn, sql, args, follow).await,
        }
    }

    /// Checks that the database answers.
    pub(super) async fn ping(&self) -> Result<(), Error> {
        let sql = "SELECT id FROM tenants LIMIT 0";
        self.fetch_optional::<(String,)>(sql, args![]).await?;
        Ok(())
    }

    /// Closes every connection.
    pub(super) async fn close(&self) {
        match self {
            Self::Sqlite(db) => db.close().await,
            Self::Postgres(db) => db.close().await,
        }
    }
}

/// The chains of the acts of a transaction.
fn chains_of(statements: &[Statement]) -> Vec<String> {
    let acts = statements.iter().filter_map(|it| it.act.as_ref());
    acts.map(|act| act.chain().to_owned()).collect()
}

/// Returns true if a table refused a row without a value.
fn is_without_value(error: &Error) -> bool {
    let Error::Database(cause) = error else {
        return false;
    };
    let refusal = cause.as_database_error();
    refusal.is_some_and(|it| matches!(it.kind(), sqlx::error::ErrorKind::NotNullViolation))
}

/// Refuses a transaction that changes an audited table without an act. Only in debug builds: elsewhere a
/// forgotten record must not stop the installation, and is logged.
fn check_recorded(statements: &[Statement]) -> Result<(), Error> {
    let Some(table) = audited::unrecorded(statements) else {
        return Ok(());
    };
    if cfg!(debug_assertions) {
        return Err(Error::Unrecorded(table));
    }
    tracing::error!(
        db.table = table,
        "A change of `{table}` was not recorded in the audit"
    );
    Ok(())
}

/// Connects to the server at `address` and returns its address without the password. Returns `None` if
/// `address` names a file.
pub(super) async fn try_server(
    address: Option<&str>,
    data_dir: &Path,
) -> Result<Option<String>, Error> {
    match Address::parse(address, data_dir)? {
        Address::Sqlite(_) => Ok(None),
        Address::Postgres(options) => postgres::try_server(&options).await.map(Some),
    }
}

/// The location of a database.
pub(super) enum DatabaseLocation {
    /// A file at this path.
    File(PathBuf),
    /// A database server.
    Server,
}

/// Returns the location of the database at `address`.
pub(super) fn place(address: Option<&str>, data_dir: &Path) -> Result<DatabaseLocation, Error> {
    Ok(match Address::parse(address, data_dir)? {
        Address::Sqlite(file) => DatabaseLocation::File(file),
        Address::Postgres(_) => DatabaseLocation::Server,
    })
}

/// Turns a violation of a unique constraint into `Taken(name)`, and passes other errors on.
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
        | Error::NoWorker(_)
        | Error::Migration(_)
        | Error::Taken(_)
        | Error::Changed
        | Error::TenantDeleted
        | Error::TooLarge { .. }
        | Error::Corrupt { .. }
        | Error::Unrecorded(_)
        | Error::Sealed(_)
        | Error::OtherSecretKey
        | Error::NoSecretKey
        | Error::Unusable { .. }
        | Error::Locked { .. } => error,
    }
}
