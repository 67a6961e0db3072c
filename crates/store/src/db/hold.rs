//! Keeps a second server from using a PostgreSQL database when no Redis coordinates the gateways, with an
//! advisory lock on a connection that lives as long as the store.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::{Connection as _, PgConnection};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::super::{Error, Holder};
use super::postgres::{PostgresDb, within};

/// The interval at which the holder checks its connection.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// The time that a start waits for the lock: a server killed a moment ago may still seem to hold it.
const PATIENCE: Duration = Duration::from_secs(3);

const PAUSE: Duration = Duration::from_millis(100);

/// The key of the lock: `sepa` in ASCII and a hash of the schema, so that installations in two schemas do
/// not collide.
const LOCK: &str = "SELECT pg_try_advisory_lock(1936027745, hashtext(current_schema()))";
const UNLOCK: &str = "SELECT pg_advisory_unlock(1936027745, hashtext(current_schema()))";

/// Finds the holder of the lock: its application name as set by [`name`], and its address.
const HOLDER: &str = "SELECT a.application_name, host(a.client_addr) FROM pg_locks l \
     JOIN pg_stat_activity a ON a.pid = l.pid JOIN pg_database d ON d.oid = l.database \
     WHERE l.locktype = 'advisory' AND l.granted AND d.datname = current_database() \
     AND l.classid = 1936027745::oid AND l.objid::bigint = \
     (hashtext(current_schema())::bigint & 4294967295) LIMIT 1";

/// The exclusive use of a database. While it exists, a second server is refused.
#[derive(Debug)]
pub(crate) struct Hold {
    lost: Arc<Mutex<Option<Error>>>,
    _stop: DropGuard,
}

impl Hold {
    /// Takes the lock, or returns [`Error::Locked`] with its holder. A task on `tasks` watches the
    /// connection until `shutdown`, or until the hold is dropped.
    pub(crate) async fn take(
        db: &PostgresDb,
        tasks: &TaskTracker,
        shutdown: &CancellationToken,
    ) -> Result<Self, Error> {
        let mut connection = db.connect(&name()).await?;
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while let Err(refusal) = lock(&mut connection, db).await {
            if tokio::time::Instant::now() >= deadline {
                return Err(refusal);
            }
            tokio::time::sleep(PAUSE).await;
        }
        let (lost, stop) = (Arc::default(), shutdown.child_token());
        tasks.spawn(look_after(
            connection,
            db.clone(),
            Arc::clone(&lost),
            stop.clone(),
        ));
        Ok(Self {
            lost,
            _stop: stop.drop_guard(),
        })
    }

    /// Returns an error if another server took the lock while the database server was unreachable.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match &*self.lost.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }
}

/// The application name of this server's connection.
fn name() -> String {
    format!("sepal/{}", std::process::id())
}

async fn lock(connection: &mut PgConnection, db: &PostgresDb) -> Result<(), Error> {
    let is_ours: bool = within(sqlx::query_scalar(LOCK).fetch_one(&mut *connection)).await?;
    if is_ours {
        return Ok(());
    }
    let row: Option<(String, Option<String>)> =
        within(sqlx::query_as(HOLDER).fetch_optional(connection)).await?;
    let (name, address) = row.unwrap_or_default();
    let pid = name.strip_prefix("sepal/").and_then(|pid| pid.parse().ok());
    Err(Error::Locked {
        what: "database",
        path: db.address().into(),
        holder: Holder {
            pid: pid.unwrap_or(0),
            address,
        },
    })
}

/// Watches the connection that holds the lock, and takes the lock again after the database server was away.
async fn look_after(
    connection: PgConnection,
    db: PostgresDb,
    lost: Arc<Mutex<Option<Error>>>,
    stop: CancellationToken,
) {
    let mut held = Some(connection);
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        let stands = match &mut held {
            Some(connection) => within(connection.ping()).await.is_ok(),
            None => false,
        };
        if stands {
            continue;
        }
        held = None;
        let now = match take_again(&db).await {
            Ok(connection) => {
                held = Some(connection);
                None
            }
            Err(error @ Error::Locked { .. }) => Some(error),
            // The database server is unreachable, so no other gateway has the lock either.
            Err(_) => continue,
        };
        note(&lost, now);
    }
    let Some(mut connection) = held else { return };
    // Unlocks explicitly, so that the next server need not wait until PostgreSQL notices the closed
    // connection.
    let _ = within(sqlx::query(UNLOCK).execute(&mut connection)).await;
    let _ = within(connection.close()).await;
}

async fn take_again(db: &PostgresDb) -> Result<PgConnection, Error> {
    let mut connection = db.connect(&name()).await?;
    lock(&mut connection, db).await?;
    Ok(connection)
}

fn note(lost: &Mutex<Option<Error>>, now: Option<Error>) {
    let mut lost = lost.lock().unwrap_or_else(PoisonError::into_inner);
    match (&*lost, &now) {
        (None, Some(error)) => {
            tracing::error!(fatal = true, %error, "Another server took the database: nothing is written here");
        }
        (Some(_), None) => tracing::info!("The database is this server's again"),
        (None, None) | (Some(_), Some(_)) => {}
    }
    *lost = now;
}
