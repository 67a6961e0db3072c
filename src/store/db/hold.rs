//! One server per database that no Redis coordinates: PostgreSQL's advisory lock, held by a
//! connection that lives as long as the store.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::{Connection as _, PgConnection};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::super::{Error, Holder};
use super::postgres::{PostgresDb, within};

/// How often the holder looks whether its connection still stands.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// How long a start waits: a server that was killed a moment ago may still seem to hold it.
const PATIENCE: Duration = Duration::from_secs(3);

const PAUSE: Duration = Duration::from_millis(100);

/// `sepa` and the tables' schema: installations in two schemas do not meet.
const LOCK: &str = "SELECT pg_try_advisory_lock(1936027745, hashtext(current_schema()))";
const UNLOCK: &str = "SELECT pg_advisory_unlock(1936027745, hashtext(current_schema()))";

/// Who holds it: the name that [`name`] gave, and from where.
const HOLDER: &str = "SELECT a.application_name, host(a.client_addr) FROM pg_locks l \
     JOIN pg_stat_activity a ON a.pid = l.pid JOIN pg_database d ON d.oid = l.database \
     WHERE l.locktype = 'advisory' AND l.granted AND d.datname = current_database() \
     AND l.classid = 1936027745::oid AND l.objid::bigint = \
     (hashtext(current_schema())::bigint & 4294967295) LIMIT 1";

/// A database that is this server's alone. While it lives, a second server is refused.
#[derive(Debug)]
pub(in crate::store) struct Hold {
    lost: Arc<Mutex<Option<Error>>>,
    _stop: DropGuard,
}

impl Hold {
    /// Takes the database, or tells who has it. The connection is looked after on `tasks` until
    /// `shutdown`, or until the hold is dropped.
    pub(in crate::store) async fn take(
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

    /// Whether the database is still ours. It is not when the server was away for a while and
    /// another one came first.
    pub(in crate::store) fn check(&self) -> Result<(), Error> {
        match &*self.lost.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }
}

/// This server's name in the list of connections.
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

/// Keeps the lock, and takes it again after the server was away.
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
            // The server is away: nobody else has it either.
            Err(_) => continue,
        };
        note(&lost, now);
    }
    let Some(mut connection) = held else { return };
    // Said outright, so that the next server need not wait until the connection is seen to end.
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
