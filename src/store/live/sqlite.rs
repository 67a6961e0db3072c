//! Journals in SQLite: one writer groups the appends of all sessions, readers have their own pool.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::sqlite::SqlitePool;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::packing::{self, Packed};
use super::writer::{Job, Work, Writer, Written, int};
use super::{
    Appended, Head, LiveStore, MAX_BODY_BYTES, MAX_RECORDS_PER_READ, NewRecord, Record, Snapshot,
};
use crate::domain::{CommitId, SessionId, SessionKey, TenantId};
use crate::store::Error;
use crate::store::db::SqliteDb;

/// After this an append counts as `Unknown`.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Jobs that wait for the writer before callers wait for a place.
const QUEUE: usize = 1_024;

/// The live store of one SQLite file.
pub(crate) struct SqliteLive {
    read: SqlitePool,
    jobs: mpsc::Sender<Job>,
    compression: bool,
}

impl SqliteLive {
    /// Starts the writer; it ends when the store is dropped, or after what is queued when
    /// `shutdown` is called.
    pub(crate) fn start(
        db: SqliteDb,
        compression: bool,
        tasks: &TaskTracker,
        shutdown: CancellationToken,
    ) -> Self {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let read = db.read.clone();
        tasks.spawn(Writer::new(db, queue, shutdown).run());
        Self {
            read,
            jobs,
            compression,
        }
    }

    /// Hands work to the writer and waits until it is durable.
    async fn write(&self, key: &SessionKey, work: Work) -> Result<Written, Error> {
        let (answer, answered) = oneshot::channel();
        let job = Job {
            key: key.clone(),
            work,
            answer,
        };
        let exchange = async {
            self.jobs.send(job).await.ok()?;
            answered.await.ok()
        };
        match tokio::time::timeout(ANSWER_TIMEOUT, exchange).await {
            Ok(Some(result)) => result,
            Ok(None) | Err(_) => Err(Error::NoAnswer),
        }
    }

    /// Reads records by a statement with the placeholders tenant, session, position and limit.
    async fn read(&self, sql: &'static str, range: Range<'_>) -> Result<Vec<Record>, Error> {
        let limit = range.limit.min(MAX_RECORDS_PER_READ);
        let rows: Vec<RecordRow> = sqlx::query_as(sql)
            .bind(range.key.tenant.as_str())
            .bind(range.key.session.as_str())
            .bind(int(range.position))
            .bind(i64::try_from(limit).unwrap_or(i64::MAX))
            .fetch_all(&self.read)
            .await?;
        rows.into_iter().map(RecordRow::into_record).collect()
    }
}

#[async_trait]
impl LiveStore for SqliteLive {
    async fn append(&self, key: &SessionKey, expected_version: u64, record: NewRecord) -> Appended {
        let work = Work::Append {
            expected_version,
            record,
        };
        if let Err(error) = check_size(&work) {
            return Appended::Unknown(error);
        }
        match self.write(key, work).await {
            Ok(Written::Done) => Appended::Ok,
            Ok(Written::Conflict) => Appended::Conflict,
            Err(error) => Appended::Unknown(error),
        }
    }

    async fn head(&self, key: &SessionKey) -> Result<Option<Head>, Error> {
        let row: Option<(i64, i64, String)> = sqlx::query_as(
            "SELECT version, last_seq, commit_id FROM journal \
             WHERE tenant = $1 AND session = $2 ORDER BY version DESC LIMIT 1",
        )
        .bind(key.tenant.as_str())
        .bind(key.session.as_str())
        .fetch_optional(&self.read)
        .await?;
        row.map(|(version, last_seq, commit_id)| {
            Ok(Head {
                version: count(version),
                last_seq: count(last_seq),
                commit_id: commit(commit_id)?,
            })
        })
        .transpose()
    }

    async fn read_after_version(
        &self,
        key: &SessionKey,
        version: u64,
        limit: usize,
    ) -> Result<Vec<Record>, Error> {
        let sql = "SELECT version, commit_id, first_seq, last_seq, body FROM journal \
                   WHERE tenant = $1 AND session = $2 AND version > $3 \
                   ORDER BY version LIMIT $4";
        self.read(sql, Range::new(key, version, limit)).await
    }

    async fn read_after_seq(
        &self,
        key: &SessionKey,
        seq: u64,
        limit: usize,
    ) -> Result<Vec<Record>, Error> {
        // `last_seq` never falls, so everything after the first match matches: one index look-up,
        // then the records in the order of their key.
        let sql = "SELECT version, commit_id, first_seq, last_seq, body FROM journal \
                   WHERE tenant = $1 AND session = $2 AND version >= \
                   (SELECT version FROM journal WHERE tenant = $1 AND session = $2 \
                    AND last_seq > $3 ORDER BY last_seq, version LIMIT 1) \
                   ORDER BY version LIMIT $4";
        self.read(sql, Range::new(key, seq, limit)).await
    }

    async fn read_before_seq(
        &self,
        key: &SessionKey,
        seq: u64,
        limit: usize,
    ) -> Result<Vec<Record>, Error> {
        // A record with `first_seq < seq` follows only records with `last_seq < seq`.
        let sql = "SELECT version, commit_id, first_seq, last_seq, body FROM journal \
                   WHERE tenant = $1 AND session = $2 AND version <= coalesce(\
                   (SELECT version FROM journal WHERE tenant = $1 AND session = $2 \
                    AND last_seq >= $3 ORDER BY last_seq, version LIMIT 1), \
                   9223372036854775807) AND first_seq < $3 \
                   ORDER BY version DESC LIMIT $4";
        let mut records = self.read(sql, Range::new(key, seq, limit)).await?;
        records.reverse();
        Ok(records)
    }

    async fn snapshot(&self, key: &SessionKey) -> Result<Option<Snapshot>, Error> {
        let row: Option<SnapshotRow> = sqlx::query_as(
            "SELECT version, schema, is_compressed, body FROM snapshots \
             WHERE tenant = $1 AND session = $2",
        )
        .bind(key.tenant.as_str())
        .bind(key.session.as_str())
        .fetch_optional(&self.read)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let packed = Packed {
            is_compressed: row.is_compressed,
            body: row.body.into(),
        };
        Ok(Some(Snapshot {
            version: count(row.version),
            schema: u32::try_from(row.schema)
                .map_err(|_| Error::corrupt("snapshot schema", row.schema.to_string()))?,
            body: packing::unpack(packed).await?,
        }))
    }

    async fn save_snapshot(&self, key: &SessionKey, snapshot: Snapshot) -> Result<(), Error> {
        let packed = packing::pack(snapshot.body, self.compression).await;
        let work = Work::Snapshot {
            version: snapshot.version,
            schema: snapshot.schema,
            packed,
        };
        check_size(&work)?;
        self.write(key, work).await.map(|_| ())
    }

    async fn active(&self) -> Result<Vec<SessionKey>, Error> {
        let rows: Vec<(String, String)> =
            sqlx::query_as("SELECT tenant, session FROM active ORDER BY tenant, session")
                .fetch_all(&self.read)
                .await?;
        rows.into_iter()
            .map(|(tenant, session)| {
                Ok(SessionKey {
                    tenant: TenantId::parse(&tenant)
                        .ok_or_else(|| Error::corrupt("tenant id", tenant))?,
                    session: SessionId::parse(&session)
                        .ok_or_else(|| Error::corrupt("session id", session))?,
                })
            })
            .collect()
    }

    async fn remove(&self, key: &SessionKey) -> Result<(), Error> {
        self.write(key, Work::Remove).await.map(|_| ())
    }

    async fn ping(&self) -> Result<(), Error> {
        sqlx::query("SELECT 1").execute(&self.read).await?;
        Ok(())
    }
}

/// What a range read asks for.
struct Range<'k> {
    key: &'k SessionKey,
    position: u64,
    limit: usize,
}

impl<'k> Range<'k> {
    fn new(key: &'k SessionKey, position: u64, limit: usize) -> Self {
        Self {
            key,
            position,
            limit,
        }
    }
}

#[derive(sqlx::FromRow)]
struct RecordRow {
    version: i64,
    commit_id: String,
    first_seq: i64,
    last_seq: i64,
    body: Vec<u8>,
}

impl RecordRow {
    fn into_record(self) -> Result<Record, Error> {
        Ok(Record {
            version: count(self.version),
            commit_id: commit(self.commit_id)?,
            first_seq: count(self.first_seq),
            last_seq: count(self.last_seq),
            body: self.body.into(),
        })
    }
}

#[derive(sqlx::FromRow)]
struct SnapshotRow {
    version: i64,
    schema: i64,
    is_compressed: bool,
    body: Vec<u8>,
}

fn check_size(work: &Work) -> Result<(), Error> {
    let bytes = match work {
        Work::Append { record, .. } => record.body.len(),
        Work::Snapshot { packed, .. } => packed.body.len(),
        Work::Remove => 0,
    };
    if bytes > MAX_BODY_BYTES {
        return Err(Error::TooLarge {
            bytes,
            limit: MAX_BODY_BYTES,
        });
    }
    Ok(())
}

fn count(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

fn commit(text: String) -> Result<CommitId, Error> {
    CommitId::parse(&text).ok_or_else(|| Error::corrupt("commit id", text))
}
