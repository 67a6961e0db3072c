//! Runs statements on PostgreSQL, with a connection pool whose waits are all bounded, and serializable
//! transactions.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sqlx::error::DatabaseError;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{Arguments as _, Connection as _, PgConnection, Postgres};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::super::audit::{Act, ChainHead};
use super::super::{Error, clock};
use super::{Arg, Row, Sql, Statement, address, chain, schema};

/// The limit for connecting to a server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The limit for the wait until one of the pool's connections is free. A burst of sessions on a busy machine
/// queues for longer than a connection may take to open.
const TURN_TIMEOUT: Duration = Duration::from_secs(30);

/// The limit for the answer to a statement or transaction.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The server's own limit for a statement. It is shorter than [`ANSWER_TIMEOUT`], so that no statement takes
/// effect long after we stopped waiting.
const STATEMENT_TIMEOUT: &str = "8s";

/// The server's limit for a pause within a transaction: a gateway that stands still holds its locks no longer.
/// It is shorter than [`STATEMENT_TIMEOUT`], so that the statements of others that wait for them succeed.
const PAUSE_TIMEOUT: &str = "5s";

/// The limit for migrating the tables, including the wait for migrations of other gateways.
const MIGRATION_TIMEOUT: Duration = Duration::from_mins(5);

/// The connections of one gateway's pool. The connection that holds the lock is not among them.
const CONNECTIONS: u32 = 10;

/// A connection that was idle for longer is pinged before it is used.
const TRUSTED_FOR: Duration = Duration::from_secs(1);

/// The number of attempts at a transaction that the server aborts because of a conflict.
const TRIES: u32 = 8;

/// A database on a PostgreSQL server.
#[derive(Debug, Clone)]
pub(crate) struct PostgresDb {
    options: Arc<PgConnectOptions>,
    pool: PgPool,
    /// One permit for each connection, so that waiting for a free one does not count as connecting.
    turns: Arc<Semaphore>,
    /// Counts the times that the server gave no connection.
    refusals: Arc<AtomicU64>,
}

impl PostgresDb {
    /// Connects to the server and migrates the tables. Of several gateways that start at once, one migrates
    /// while the others wait.
    pub(super) async fn open(options: Box<PgConnectOptions>) -> Result<Self, Error> {
        let options = options.application_name("sepal");
        let mut first = enter(&options).await?;
        let migrated = tokio::time::timeout(MIGRATION_TIMEOUT, migrate(&options, &mut first));
        migrated.await.map_err(|_| Error::NoAnswer)??;
        let options = durable(options, &mut first).await?;
        let _ = first.close().await;
        let options = options.options([
            ("statement_timeout", STATEMENT_TIMEOUT),
            ("idle_in_transaction_session_timeout", PAUSE_TIMEOUT),
        ]);
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(CONNECT_TIMEOUT)
            .test_before_acquire(false)
            .before_acquire(|connection, meta| {
                Box::pin(async move {
                    if meta.idle_for > TRUSTED_FOR {
                        connection.ping().await?;
                    }
                    Ok(true)
                })
            })
            .connect_lazy_with(options.clone());
        Ok(Self {
            options: Arc::new(options),
            pool,
            turns: Arc::new(Semaphore::new(CONNECTIONS as usize)),
            refusals: Arc::default(),
        })
    }

    /// The server's address without its password.
    pub(super) fn address(&self) -> String {
        address::shown(&self.options)
    }

    /// Opens a connection outside the pool, with `name` as its application name.
    pub(super) async fn connect(&self, name: &str) -> Result<PgConnection, Error> {
        // Keepalives let the server notice within seconds that this machine vanished, and release its locks.
        let alive = [
            ("tcp_keepalives_idle", "10"),
            ("tcp_keepalives_interval", "5"),
            ("tcp_keepalives_count", "3"),
        ];
        let options = (*self.options).clone();
        enter(&options.application_name(name).options(alive)).await
    }

    /// Takes a connection from the pool, in the order of the calls. Fails at once if the server gave somebody
    /// else no connection meanwhile.
    pub(crate) async fn lease(&self) -> Result<Lease, Error> {
        let refusals = self.refusals.load(Ordering::Relaxed);
        let turn = tokio::time::timeout(TURN_TIMEOUT, Arc::clone(&self.turns).acquire_owned());
        let Ok(Ok(turn)) = turn.await else {
            return Err(sqlx::Error::PoolTimedOut.into());
        };
        if self.refusals.load(Ordering::Relaxed) != refusals {
            return Err(sqlx::Error::PoolTimedOut.into());
        }
        // Boxed: it is 4 KiB, which every future that reads or writes would contain, also those on SQLite.
        match Box::pin(self.pool.acquire()).await {
            Ok(connection) => Ok(Lease {
                connection,
                is_settled: false,
                _turn: turn,
            }),
            Err(error) => {
                self.refusals.fetch_add(1, Ordering::Relaxed);
                Err(error.into())
            }
        }
    }

    pub(super) async fn fetch_all<T: Row>(
        &self,
        sql: Sql,
        args: Vec<Arg>,
    ) -> Result<Vec<T>, Error> {
        let query = sqlx::query_as_with::<Postgres, T, _>(sql.for_postgres(), bind(args)?);
        let mut lease = self.lease().await?;
        let answer = within(query.fetch_all(&mut *lease)).await;
        lease.settle(answer)
    }

    pub(super) async fn fetch_optional<T: Row>(
        &self,
        sql: &'static str,
        args: Vec<Arg>,
    ) -> Result<Option<T>, Error> {
        let query = sqlx::query_as_with::<Postgres, T, _>(sql, bind(args)?);
        let mut lease = self.lease().await?;
        let answer = within(query.fetch_optional(&mut *lease)).await;
        lease.settle(answer)
    }

    pub(super) async fn change_returning<T: Row>(
        &self,
        sql: &'static str,
        args: Vec<Arg>,
        acts: impl Fn(&[T]) -> Vec<Act> + Send + Sync,
    ) -> Result<Vec<T>, Error> {
        let mut tries = 0;
        loop {
            let mut lease = self.lease().await?;
            let answer = within(change(&mut lease, sql, args.clone(), &acts)).await;
            let answer = lease.settle(answer);
            tries += 1;
            match answer {
                Err(error) if is_broken_off(&error) && tries < TRIES => step_aside(tries).await,
                Ok(_) | Err(_) => return answer,
            }
        }
    }

    pub(super) async fn append(&self, acts: &[Act]) -> Result<(), Error> {
        let mut lease = self.lease().await?;
        let answer = within(append_alone(&mut lease, acts.to_vec())).await;
        lease.settle(answer)
    }

    pub(super) async fn execute_all(&self, statements: &[Statement]) -> Result<Option<u64>, Error> {
        self.execute(BEGIN, statements).await
    }

    pub(super) async fn execute_in_turn(
        &self,
        statements: &[Statement],
    ) -> Result<Option<u64>, Error> {
        self.execute(BEGIN_IN_TURN, statements).await
    }

    async fn execute(
        &self,
        begin: &'static str,
        statements: &[Statement],
    ) -> Result<Option<u64>, Error> {
        let mut tries = 0;
        loop {
            let mut lease = self.lease().await?;
            let answer = within(execute(&mut lease, begin, statements)).await;
            let answer = lease.settle(answer);
            tries += 1;
            match answer {
                Err(error) if is_broken_off(&error) && tries < TRIES => step_aside(tries).await,
                Ok(_) | Err(_) => return answer,
            }
        }
    }

    pub(super) async fn change_as_read<T: Row, A: Send>(
        &self,
        turn: &str,
        sql: &'static str,
        args: Vec<Arg>,
        follow: impl Fn(Vec<T>) -> (Vec<Statement>, A) + Send + Sync,
    ) -> Result<A, Error> {
        let mut tries = 0;
        loop {
            let mut lease = self.lease().await?;

            let answer = within(change_as_read(&mut lease, turn, sql, args.clone(), &follow)).await;
            let answer = lease.settle(answer);
            tries += 1;
            match answer {
                Err(error) if is_broken_off(&error) && tries < TRIES => step_aside(tries).await,
                Ok(_) | Err(_) => return answer,
            }
        }
    }

    pub(super) async fn close(&self) {
        // Does not wait for a hung connection.
        let _ = tokio::time::timeout(ANSWER_TIMEOUT, self.pool.close()).await;
    }
}

/// A connection from the pool. If it is dropped before [`Lease::settle`], the connection is closed, because
/// unread answers may remain on it.
pub(crate) struct Lease {
    connection: PoolConnection<Postgres>,
    is_settled: bool,
    /// Freed after the connection, because fields are dropped in their order.
    _turn: OwnedSemaphorePermit,
}

impl Lease {
    /// Returns the connection to the pool, or closes it if the answer timed out.
    pub(crate) fn settle<T>(mut self, answer: Result<T, Error>) -> Result<T, Error> {
        self.is_settled = !matches!(answer, Err(Error::NoAnswer));
        answer
    }
}

impl Deref for Lease {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for Lease {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.is_settled {
            self.connection.close_on_drop();
        }
    }
}

/// Waits for an answer, for at most [`ANSWER_TIMEOUT`].
pub(crate) async fn within<T>(
    work: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, Error> {
    match tokio::time::timeout(ANSWER_TIMEOUT, work).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(Error::NoAnswer),
    }
}

/// Brings the tables to this version.
async fn migrate(options: &PgConnectOptions, connection: &mut PgConnection) -> Result<(), Error> {
    let (migrations, server) = (&schema::POSTGRES, address::shown(options));
    schema::take_over(connection, migrations, "BEGIN", server.as_ref()).await?;
    let migrated = migrations.run(connection).await;
    migrated.map_err(schema::unmigrated)
}

/// Opens a connection. The error names the server and the reason.
async fn enter(options: &PgConnectOptions) -> Result<PgConnection, Error> {
    let unusable = |reason, source| Error::Unusable {
        path: address::shown(options).into(),
        reason,
        source,
    };
    match tokio::time::timeout(CONNECT_TIMEOUT, PgConnection::connect_with(options)).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(error)) => {
            let reason = match error.as_database_error() {
                Some(_) => "the server does not let us in",
                None => "the server cannot be reached",
            };
            Err(unusable(reason, Some(Arc::new(error))))
        }
        Err(_) => Err(unusable("the server does not answer", None)),
    }
}

/// Connects to the server once and returns its address without the password.
pub(super) async fn try_server(options: &PgConnectOptions) -> Result<String, Error> {
    let _ = within(enter(options).await?.close()).await;
    Ok(address::shown(options))
}

/// Makes sure that a commit is on the server's disk before it is acknowledged, even if the server's default
/// is `synchronous_commit = off`. Stricter defaults (replicas) are kept.
async fn durable(
    options: PgConnectOptions,
    connection: &mut PgConnection,
) -> Result<PgConnectOptions, Error> {
    let sql = "SELECT current_setting('synchronous_commit'), current_setting('fsync')";
    let (commit, fsync): (String, String) =
        within(sqlx::query_as(sql).fetch_one(connection)).await?;
    if fsync == "off" {
        tracing::warn!("PostgreSQL runs with `fsync = off`: a power loss may destroy the database");
    }
    Ok(match commit.as_str() {
        "off" => options.options([("synchronous_commit", "on")]),
        _ => options,
    })
}

const BEGIN: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE";
/// Each statement sees what other transactions committed before it.
const BEGIN_IN_TURN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// Waits until no other transaction appends to a chain. As the first statement of a transaction it takes no
/// snapshot, so that the transaction reads what the one before wrote, and is not aborted for it.
const TURN: &str = "LOCK TABLE _audit_turn IN EXCLUSIVE MODE";

async fn change<T: Row>(
    connection: &mut PgConnection,
    sql: &'static str,
    args: Vec<Arg>,
    acts: impl Fn(&[T]) -> Vec<Act>,
) -> Result<Vec<T>, sqlx::Error> {
    let mut tx = connection.begin_with(BEGIN).await?;
    sqlx::query(TURN).execute(&mut *tx).await?;
    let query = sqlx::query_as_with::<Postgres, T, _>(sql, bind(args)?);
    let rows = query.fetch_all(&mut *tx).await?;
    append(&mut tx, acts(&rows)).await?;
    tx.commit().await?;
    Ok(rows)
}

async fn append_alone(connection: &mut PgConnection, acts: Vec<Act>) -> Result<(), sqlx::Error> {
    let mut tx = connection.begin_with(BEGIN_IN_TURN).await?;
    sqlx::query(TURN).execute(&mut *tx).await?;
    append(&mut tx, acts).await?;
    tx.commit().await
}

/// Appends the records of acts to their chains. The transaction has taken its [`TURN`].
async fn append(connection: &mut PgConnection, acts: Vec<Act>) -> Result<(), sqlx::Error> {
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

async fn execute(
    connection: &mut PgConnection,
    begin: &'static str,
    statements: &[Statement],
) -> Result<Option<u64>, sqlx::Error> {
    let mut tx = connection.begin_with(begin).await?;
    if statements.iter().any(|statement| statement.act.is_some()) {
        sqlx::query(TURN).execute(&mut *tx).await?;
    }
    let mut changed = 0;
    let mut acts = Vec::new();
    for statement in statements {
        let query = sqlx::query_with(
            statement.sql.clone().for_postgres(),
            bind(statement.args.clone())?,
        );
        let rows = query.execute(&mut *tx).await?.rows_affected();
        if rows == 0 && statement.must_change {
            tx.rollback().await?;
            return Ok(None);
        }
        changed += rows;
        acts.extend(
            statement
                .act
                .iter()
                .filter(|_| rows > 0)
                .map(|act| (**act).clone()),
        );
    }
    append(&mut tx, acts).await?;
    tx.commit().await?;
    Ok(Some(changed))
}

/// Transactions with the same `turn` run one after the other: each reads after it has taken the advisory
/// lock, and so sees what the previous one wrote. Serializable transactions would abort each other instead.
async fn change_as_read<T: Row, A>(
    connection: &mut PgConnection,
    turn: &str,
    sql: &'static str,
    args: Vec<Arg>,
    follow: impl Fn(Vec<T>) -> (Vec<Statement>, A),
) -> Result<A, sqlx::Error> {
    let mut tx = connection.begin_with(BEGIN_IN_TURN).await?;
    let lock = "SELECT pg_advisory_xact_lock(hashtext('sepal'), hashtext($1))";
    sqlx::query(lock).bind(turn).execute(&mut *tx).await?;
    let query = sqlx::query_as_with::<Postgres, T, _>(sql, bind(args)?);
    let (statements, answer) = follow(query.fetch_all(&mut *tx).await?);
    if statements.iter().any(|statement| statement.act.is_some()) {
        sqlx::query(TURN).execute(&mut *tx).await?;
    }
    let mut acts = Vec::new();
    for statement in statements {
        let query = sqlx::query_with(statement.sql.for_postgres(), bind(statement.args)?);
        let rows = query.execute(&mut *tx).await?.rows_affected();
        acts.extend(statement.act.filter(|_| rows > 0).map(|act| *act));
    }
    append(&mut tx, acts).await?;
    tx.commit().await?;
    Ok(answer)
}

/// Returns true if the server aborted the transaction because of another one, so that a retry may succeed.
fn is_broken_off(error: &Error) -> bool {
    let Error::Database(error) = error else {
        return false;
    };
    let code = error.as_database_error().and_then(DatabaseError::code);
    matches!(code.as_deref(), Some("40001" | "40P01"))
}

/// Sleeps for a random time, so that conflicting transactions do not meet again: at most 20 ms after the
/// first attempt, and twice as long after each further one, up to 640 ms, because transactions take longer
/// on a busy server.
async fn step_aside(tries: u32) {
    let longest = 20_000 << tries.clamp(1, 6).saturating_sub(1);
    let pause = Duration::from_micros(rand::random_range(500..longest));
    tokio::time::sleep(pause).await;
}

fn bind(args: Vec<Arg>) -> Result<PgArguments, sqlx::Error> {
    let mut bound = PgArguments::default();
    for arg in args {
        match arg {
            Arg::Text(value) => bound.add(value.map(without_nul)),
            Arg::Int(value) => bound.add(value),
            Arg::Bool(value) => bound.add(value),
            Arg::Bytes(value) => bound.add(value),
        }
        .map_err(sqlx::Error::Encode)?;
    }
    Ok(bound)
}

/// PostgreSQL's TEXT cannot hold NUL, and one such title must not fail a whole batch of rows.
fn without_nul(text: String) -> String {
    if text.contains('\0') {
        text.replace('\0', "\u{fffd}")
    } else {
        text
    }
}
