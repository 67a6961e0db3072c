//! Stores journals in PostgreSQL. An append is one statement, and the server lets commits of many
//! connections share one sync to disk.

use async_trait::async_trait;
use sqlx::{Connection as _, PgConnection};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::packing;
use super::reading::{Reading, int};
use super::{AppendOutcome, Head, LiveStore, NewRecord, Record, Snapshot, check_size, check_sizes};
use crate::db::{Db, Hold, PostgresDb, within};
use crate::{Access, Error};
use sepal_core::domain::SessionKey;
use sepal_telemetry::instruments;

/// Appends version `$3 + 1` if `$3` is the head, and updates the index of unfinished sessions. The statement
/// locks the first record, so that a removal and an append run one after the other. If two writers append
/// the same version, the primary key refuses one.
const APPEND: &str = "\
    WITH root AS MATERIALIZED (\
        SELECT 1 FROM journal WHERE tenant = $1 AND session = $2 AND version = 1 FOR KEY SHARE), \
    added AS (\
        INSERT INTO journal \
        (tenant, session, version, commit_id, first_seq, last_seq, body, is_active) \
        SELECT $1, $2, $3 + 1, $4, $5, $6, $7, $8 WHERE $3 = 0 OR (EXISTS (SELECT 1 FROM root) \
        AND EXISTS (SELECT 1 FROM journal WHERE tenant = $1 AND session = $2 AND version = $3)) \
        ON CONFLICT DO NOTHING RETURNING 1), \
    marked AS (\
        INSERT INTO active (tenant, session) \
        SELECT $1, $2 WHERE $8 AND EXISTS (SELECT 1 FROM added) ON CONFLICT DO NOTHING), \
    unmarked AS (\
        DELETE FROM active WHERE tenant = $1 AND session = $2 \
        AND NOT $8 AND EXISTS (SELECT 1 FROM added)) \
    SELECT count(*) FROM added";

/// Inserts a whole journal if none exists. If two writers create the same journal, the primary key refuses
/// one of the statements as a whole.
const CREATE: &str = "\
    INSERT INTO journal (tenant, session, version, commit_id, first_seq, last_seq, body, is_active) \
    SELECT $1, $2, given.version, given.commit_id, given.first_seq, given.last_seq, given.body, FALSE \
    FROM UNNEST($3::bigint[], $4::text[], $5::bigint[], $6::bigint[], $7::bytea[]) \
    AS given (version, commit_id, first_seq, last_seq, body) \
    WHERE NOT EXISTS (SELECT 1 FROM journal WHERE tenant = $1 AND session = $2)";

/// Saves a snapshot if the journal exists and reaches its version, and no newer snapshot exists.
const SAVE: &str = "\
    WITH root AS MATERIALIZED (\
        SELECT 1 FROM journal WHERE tenant = $1 AND session = $2 AND version = 1 FOR KEY SHARE) \
    INSERT INTO snapshots (tenant, session, version, schema, is_compressed, body) \
    SELECT $1, $2, $3, $4, $5, $6 WHERE EXISTS (SELECT 1 FROM root) AND $3 <= \
    (SELECT max(version) FROM journal WHERE tenant = $1 AND session = $2) \
    ON CONFLICT (tenant, session) DO UPDATE SET version = excluded.version, \
    schema = excluded.schema, is_compressed = excluded.is_compressed, body = excluded.body \
    WHERE excluded.version >= snapshots.version";

/// The first statement waits for running appends; the following ones see the records that those added.
const REMOVE: [&str; 4] = [
    "SELECT 1 FROM journal WHERE tenant = $1 AND session = $2 AND version = 1 FOR UPDATE",
    "DELETE FROM journal WHERE tenant = $1 AND session = $2",
    "DELETE FROM snapshots WHERE tenant = $1 AND session = $2",
    "DELETE FROM active WHERE tenant = $1 AND session = $2",
];

/// The live store of a PostgreSQL database.
pub(super) struct PostgresLive {
    db: PostgresDb,
    reading: Reading,
    compression: bool,
    /// The lock on the database; `None` for a command that runs beside the server.
    hold: Option<Hold>,
}

impl PostgresLive {
    /// Opens the live store. For the server, also takes the lock on the database.
    pub(super) async fn open(
        db: PostgresDb,
        access: Access,
        compression: bool,
        tasks: &TaskTracker,
        shutdown: &CancellationToken,
    ) -> Result<Self, Error> {
        let hold = match access {
            Access::Serve => Some(Hold::take(&db, tasks, shutdown).await?),
            Access::Beside => None,
        };
        Ok(Self {
            reading: Reading::new(Db::Postgres(db.clone())),
            db,
            compression,
            hold,
        })
    }

    /// Returns an error if another server has taken the lock, so that this process must not write.
    fn check(&self) -> Result<(), Error> {
        self.hold.as_ref().map_or(Ok(()), Hold::check)
    }

    async fn try_append(
        &self,
        key: &SessionKey,
        expected_version: u64,
        record: &NewRecord,
    ) -> Result<bool, Error> {
        let query = sqlx::query_scalar::<_, i64>(APPEND)
            .bind(key.tenant.as_str())
            .bind(key.session.as_str())
            .bind(int(expected_version))
            .bind(record.commit_id.as_str())
            .bind(int(record.first_seq))
            .bind(int(record.last_seq))
            .bind(&record.body[..])
            .bind(record.is_active);
        let mut lease = self.db.lease().await?;
        let answer = within(query.fetch_one(&mut *lease)).await;
        Ok(lease.settle(answer)? == 1)
    }

    /// Returns true if all records were inserted, false if the journal exists.
    async fn try_create(&self, key: &SessionKey, records: &[NewRecord]) -> Result<bool, Error> {
        let column = |of: fn(&NewRecord) -> i64| records.iter().map(of).collect::<Vec<i64>>();
        let versions: Vec<i64> = (1..).take(records.len()).collect();
        let commits: Vec<&str> = records.iter().map(|it| it.commit_id.as_str()).collect();
        let bodies: Vec<&[u8]> = records.iter().map(|record| &record.body[..]).collect();
        let query = sqlx::query(CREATE)
            .bind(key.tenant.as_str())
            .bind(key.session.as_str())
            .bind(versions)
            .bind(commits)
            .bind(column(|record| int(record.first_seq)))
            .bind(column(|record| int(record.last_seq)))
            .bind(bodies);
        let mut lease = self.db.lease().await?;
        let answer = within(query.execute(&mut *lease)).await;
        match lease.settle(answer) {
            Ok(done) => Ok(done.rows_affected() == records.len() as u64),
            Err(Error::Database(error)) if is_taken(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[async_trait]
impl LiveStore for PostgresLive {
    async fn append(
        &self,
        key: &SessionKey,
        expected_version: u64,
        record: NewRecord,
    ) -> AppendOutcome {
        if let Err(error) = self.check().and_then(|()| check_size(record.body.len())) {
            return AppendOutcome::Unknown(error);
        }
        // BIGINT cannot hold the next version, so no journal has this head.
        if i64::try_from(expected_version).map_or(true, |version| version == i64::MAX) {
            return AppendOutcome::Conflict;
        }
        let _timing = instruments().append("postgres");
        match self.try_append(key, expected_version, &record).await {
            Ok(true) => AppendOutcome::Ok,
            Ok(false) => AppendOutcome::Conflict,
            Err(error) => AppendOutcome::Unknown(error),
        }
    }

    async fn create(&self, key: &SessionKey, records: Vec<NewRecord>) -> AppendOutcome {
        if let Err(error) = self.check().and_then(|()| check_sizes(&records)) {
            return AppendOutcome::Unknown(error);
        }
        match self.try_create(key, &records).await {
            Ok(true) => AppendOutcome::Ok,
            Ok(false) => AppendOutcome::Conflict,
            Err(error) => AppendOutcome::Unknown(error),
        }
    }

    async fn head(&self, key: &SessionKey) -> Result<Option<Head>, Error> {
        self.reading.head(key).await
    }

    async fn read_after_version(
        &self,
        key: &SessionKey,
        version: u64,
        limit: usize,
    ) -> Result<Vec<Record>, Error> {
        self.reading.after_version(key, version, limit).await
    }

    async fn read_after_seq(
        &self,
        key: &SessionKey,
        seq: u64,
        limit: usize,
    ) -> Result<Vec<Record>, Error> {
        self.reading.after_seq(key, seq, limit).await
    }

    async fn read_before_seq(
        &self,
        key: &SessionKey,
        seq: u64,
        limit: usize,
    ) -> Result<Vec<Record>, Error> {
        self.reading.before_seq(key, seq, limit).await
    }

    async fn snapshot(&self, key: &SessionKey) -> Result<Option<Snapshot>, Error> {
        self.reading.snapshot(key).await
    }

    async fn save_snapshot(&self, key: &SessionKey, snapshot: Snapshot) -> Result<(), Error> {
        self.check()?;
        let packed = packing::pack(snapshot.body, self.compression).await;
        check_size(packed.body.len())?;
        let query = sqlx::query(SAVE)
            .bind(key.tenant.as_str())
            .bind(key.session.as_str())
            .bind(int(snapshot.version))
            .bind(i64::from(snapshot.schema))
            .bind(packed.is_compressed)
            .bind(&packed.body[..]);
        let mut lease = self.db.lease().await?;
        let answer = within(query.execute(&mut *lease)).await;
        lease.settle(answer).map(|_| ())
    }

    async fn active(&self) -> Result<Vec<SessionKey>, Error> {
        self.reading.active().await
    }

    async fn remove(&self, key: &SessionKey) -> Result<(), Error> {
        self.check()?;
        let mut lease = self.db.lease().await?;
        let answer = within(remove(&mut lease, key)).await;
        lease.settle(answer)
    }

    async fn ping(&self) -> Result<(), Error> {
        self.check()?;
        self.reading.ping().await
    }
}

/// Returns true if a unique constraint refused the statement, which then inserted nothing.
fn is_taken(error: &sqlx::Error) -> bool {
    let error = error.as_database_error();
    error.is_some_and(sqlx::error::DatabaseError::is_unique_violation)
}

async fn remove(connection: &mut PgConnection, key: &SessionKey) -> Result<(), sqlx::Error> {
    let mut tx = connection.begin().await?;
    for sql in REMOVE {
        sqlx::query(sql)
            .bind(key.tenant.as_str())
            .bind(key.session.as_str())
            .execute(&mut *tx)
            .await?;
    }
    tx.commit().await
}
