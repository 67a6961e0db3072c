//! PostgreSQL: a pool whose every wait is bounded, and writes that see each other as if they came
//! one after the other.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use sqlx::error::DatabaseError;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{Arguments as _, Connection as _, PgConnection, Postgres};

use super::super::Error;
use super::{Arg, Row, Sql, Statement, address};

/// How long a server may take to let us in.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// After this nobody waits for an answer any more.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// After this the server gives a statement up: before we do, so that nothing lands much later.
const STATEMENT_TIMEOUT: &str = "8s";

/// How long other gateways may take to bring the tables up to date, with ours after them.
const MIGRATION_TIMEOUT: Duration = Duration::from_mins(5);

/// Connections of one gateway, beside the one that holds the database.
const CONNECTIONS: u32 = 10;

/// A connection that was idle for longer is tried before it is used.
const TRUSTED_FOR: Duration = Duration::from_secs(1);

/// How often a transaction is tried that the server broke off because of another one.
const TRIES: u32 = 8;

/// A database of a server.
#[derive(Debug, Clone)]
pub(in crate::store) struct PostgresDb {
    options: Arc<PgConnectOptions>,
    pool: PgPool,
}

impl PostgresDb {
    /// Reaches the server and brings the tables up to date; of gateways that start at once, one
    /// does so while the others wait.
    pub(super) async fn open(options: Box<PgConnectOptions>) -> Result<Self, Error> {
        let options = options.application_name("sepal");
        let mut first = enter(&options).await?;
        let migrations = sqlx::migrate!("migrations/postgres");
        let migrated = tokio::time::timeout(MIGRATION_TIMEOUT, migrations.run(&mut first));
        migrated
            .await
            .map_err(|_| Error::NoAnswer)?
            .map_err(|error| Error::Migration(Arc::new(error)))?;
        let options = durable(options, &mut first).await?;
        let _ = first.close().await;
        let options = options.options([("statement_timeout", STATEMENT_TIMEOUT)]);
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
        })
    }

    /// The address without its password.
    pub(super) fn address(&self) -> String {
        address::shown(&self.options)
    }

    /// A connection of the caller's own, under that name in the server's list.
    pub(super) async fn connect(&self, name: &str) -> Result<PgConnection, Error> {
        // The server notices a machine that vanished, in place of keeping what it held for hours.
        let alive = [
            ("tcp_keepalives_idle", "10"),
            ("tcp_keepalives_interval", "5"),
            ("tcp_keepalives_count", "3"),
        ];
        let options = (*self.options).clone();
        enter(&options.application_name(name).options(alive)).await
    }

    /// A connection of the pool.
    pub(in crate::store) async fn lease(&self) -> Result<Lease, Error> {
        Ok(Lease {
            connection: self.pool.acquire().await?,
            is_settled: false,
        })
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
    ) -> Result<Vec<T>, Error> {
        let mut tries = 0;
        loop {
            let mut lease = self.lease().await?;
            let answer = within(change(&mut lease, sql, args.clone())).await;
            let answer = lease.settle(answer);
            tries += 1;
            match answer {
                Err(error) if is_broken_off(&error) && tries < TRIES => step_aside(tries).await,
                Ok(_) | Err(_) => return answer,
            }
        }
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
        (sql, args): (&'static str, Vec<Arg>),
        follow: impl Fn(Vec<T>) -> (Vec<Statement>, A) + Send + Sync,
    ) -> Result<A, Error> {
        let mut tries = 0;
        loop {
            let mut lease = self.lease().await?;
            let read = (sql, args.clone());
            let answer = within(change_as_read(&mut lease, turn, read, &follow)).await;
            let answer = lease.settle(answer);
            tries += 1;
            match answer {
                Err(error) if is_broken_off(&error) && tries < TRIES => step_aside(tries).await,
                Ok(_) | Err(_) => return answer,
            }
        }
    }

    pub(super) async fn close(&self) {
        // A connection that hangs is not waited for.
        let _ = tokio::time::timeout(ANSWER_TIMEOUT, self.pool.close()).await;
    }
}

/// A connection of the pool. Dropped in the middle of a statement it is closed, because nobody
/// knows what would come out of it next.
pub(in crate::store) struct Lease {
    connection: PoolConnection<Postgres>,
    is_settled: bool,
}

impl Lease {
    /// Gives the connection back, unless the answer is still to come.
    pub(in crate::store) fn settle<T>(mut self, answer: Result<T, Error>) -> Result<T, Error> {
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

/// Waits for an answer, but not for ever.
pub(in crate::store) async fn within<T>(
    work: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, Error> {
    match tokio::time::timeout(ANSWER_TIMEOUT, work).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(Error::NoAnswer),
    }
}

/// A new connection; the error names the server and says why there is none.
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

/// The address of a server that lets us in.
pub(super) async fn try_server(options: &PgConnectOptions) -> Result<String, Error> {
    let _ = within(enter(options).await?.close()).await;
    Ok(address::shown(options))
}

/// Takes care that a commit is on the server's disk before it is acknowledged, whatever the
/// server's default is; a stricter one (replicas) stays.
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
/// Each statement sees what others have written before it.
const BEGIN_IN_TURN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

async fn change<T: Row>(
    connection: &mut PgConnection,
    sql: &'static str,
    args: Vec<Arg>,
) -> Result<Vec<T>, sqlx::Error> {
    let mut tx = connection.begin_with(BEGIN).await?;
    let query = sqlx::query_as_with::<Postgres, T, _>(sql, bind(args)?);
    let rows = query.fetch_all(&mut *tx).await?;
    tx.commit().await?;
    Ok(rows)
}

async fn execute(
    connection: &mut PgConnection,
    begin: &'static str,
    statements: &[Statement],
) -> Result<Option<u64>, sqlx::Error> {
    let mut tx = connection.begin_with(begin).await?;
    let mut changed = 0;
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
    }
    tx.commit().await?;
    Ok(Some(changed))
}

/// Those of the same turn come one after the other: each reads after it has got its turn, and so what
/// the one before has written. Serializable transactions would break each other off instead.
async fn change_as_read<T: Row, A>(
    connection: &mut PgConnection,
    turn: &str,
    (sql, args): (&'static str, Vec<Arg>),
    follow: impl Fn(Vec<T>) -> (Vec<Statement>, A),
) -> Result<A, sqlx::Error> {
    let mut tx = connection.begin_with(BEGIN_IN_TURN).await?;
    let lock = "SELECT pg_advisory_xact_lock(hashtext('sepal'), hashtext($1))";
    sqlx::query(lock).bind(turn).execute(&mut *tx).await?;
    let query = sqlx::query_as_with::<Postgres, T, _>(sql, bind(args)?);
    let (statements, answer) = follow(query.fetch_all(&mut *tx).await?);
    for statement in statements {
        let query = sqlx::query_with(statement.sql.for_postgres(), bind(statement.args)?);
        query.execute(&mut *tx).await?;
    }
    tx.commit().await?;
    Ok(answer)
}

/// Whether the server undid a transaction because of another one: the same may work now.
fn is_broken_off(error: &Error) -> bool {
    let Error::Database(error) = error else {
        return false;
    };
    let code = error.as_database_error().and_then(DatabaseError::code);
    matches!(code.as_deref(), Some("40001" | "40P01"))
}

/// A moment by chance, so that those who met do not meet again: at most 20 ms after the first try, and twice
/// as long after each further one, up to 640 ms, because a busy server takes longer for each transaction.
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

/// PostgreSQL's TEXT holds no NUL; one odd title must not spoil a batch of rows.
fn without_nul(text: String) -> String {
    if text.contains('\0') {
        text.replace('\0', "\u{fffd}")
    } else {
        text
    }
}
