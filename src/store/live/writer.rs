//! The one writer of the journals: one transaction for everything that waits, so that many
//! sessions share one sync to disk and a lone append does not wait for company.

use sqlx::{Connection as _, SqliteConnection};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::NewRecord;
use super::packing::Packed;
use super::reading::int;
use crate::domain::SessionKey;
use crate::store::Error;
use crate::store::db::SqliteDb;

/// The most jobs of one transaction.
const BATCH: usize = 256;

/// One thing to write, and who waits for it.
pub(super) struct Job {
    pub(super) key: SessionKey,
    pub(super) work: Work,
    pub(super) answer: oneshot::Sender<Result<Written, Error>>,
}

/// What to write.
pub(super) enum Work {
    Append {
        expected_version: u64,
        record: NewRecord,
    },
    Snapshot {
        version: u64,
        schema: u32,
        packed: Packed,
    },
    Remove,
}

/// What became of a job whose transaction was committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    Done,
    Conflict,
}

/// Owns the writing connection.
pub(super) struct Writer {
    db: SqliteDb,
    queue: mpsc::Receiver<Job>,
    shutdown: CancellationToken,
    open: Option<SqliteConnection>,
}

impl Writer {
    pub(super) fn new(
        db: SqliteDb,
        queue: mpsc::Receiver<Job>,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            db,
            queue,
            shutdown,
            open: None,
        }
    }

    /// Writes until the store is dropped; after a shutdown, what is still queued.
    pub(super) async fn run(mut self) {
        let mut jobs = Vec::with_capacity(BATCH);
        loop {
            tokio::select! {
                biased;
                () = self.shutdown.cancelled(), if !self.queue.is_closed() => self.queue.close(),
                taken = self.queue.recv_many(&mut jobs, BATCH) => {
                    if taken == 0 {
                        break;
                    }
                    self.write(&mut jobs).await;
                }
            }
        }
        if let Some(connection) = self.open {
            let _ = connection.close().await;
        }
    }

    /// One transaction for all jobs; if it fails, every one of them is unknown to its caller.
    async fn write(&mut self, jobs: &mut Vec<Job>) {
        // Who stopped waiting decides again from the head; a late write would only get in the way.
        jobs.retain(|job| !job.answer.is_closed());
        let turn = self.db.turn();
        let _turn = turn.lock().await;
        match self.commit(jobs).await {
            Ok(outcomes) => {
                for (job, outcome) in jobs.drain(..).zip(outcomes) {
                    let _ = job.answer.send(Ok(outcome));
                }
            }
            Err(error) => {
                // The connection may be in the middle of anything: the next batch takes a new one.
                self.open = None;
                for job in jobs.drain(..) {
                    let _ = job.answer.send(Err(error.clone()));
                }
            }
        }
    }

    async fn commit(&mut self, jobs: &[Job]) -> Result<Vec<Written>, Error> {
        if self.open.is_none() {
            self.open = Some(self.db.connect().await?);
        }
        let Some(connection) = self.open.as_mut() else {
            return Err(Error::NoAnswer);
        };
        if let [job] = jobs
            && let Work::Append {
                expected_version,
                record,
            } = &job.work
        {
            // One statement is a transaction by itself: one trip to the thread of SQLite, not three.
            return Ok(vec![
                append(connection, &job.key, *expected_version, record).await?,
            ]);
        }
        let mut tx = connection.begin_with("BEGIN IMMEDIATE").await?;
        let mut outcomes = Vec::with_capacity(jobs.len());
        for job in jobs {
            outcomes.push(perform(&mut tx, job).await?);
        }
        tx.commit().await?;
        Ok(outcomes)
    }
}

async fn perform(connection: &mut SqliteConnection, job: &Job) -> Result<Written, Error> {
    let key = &job.key;
    match &job.work {
        Work::Append {
            expected_version,
            record,
        } => return append(connection, key, *expected_version, record).await,
        Work::Snapshot {
            version,
            schema,
            packed,
        } => save_snapshot(connection, key, (*version, *schema), packed).await?,
        Work::Remove => {
            for sql in [
                "DELETE FROM journal WHERE tenant = $1 AND session = $2",
                "DELETE FROM snapshots WHERE tenant = $1 AND session = $2",
                "DELETE FROM active WHERE tenant = $1 AND session = $2",
            ] {
                sqlx::query(sql)
                    .bind(key.tenant.as_str())
                    .bind(key.session.as_str())
                    .execute(&mut *connection)
                    .await?;
            }
        }
    }
    Ok(Written::Done)
}

/// Inserts the record if the head is what its writer saw. A trigger keeps the index of unfinished
/// sessions.
async fn append(
    connection: &mut SqliteConnection,
    key: &SessionKey,
    expected_version: u64,
    record: &NewRecord,
) -> Result<Written, Error> {
    let inserted = sqlx::query(
        "INSERT INTO journal \
         (tenant, session, version, commit_id, first_seq, last_seq, body, is_active) \
         SELECT $1, $2, $3 + 1, $4, $5, $6, $7, $8 WHERE $3 = coalesce(\
         (SELECT max(version) FROM journal WHERE tenant = $1 AND session = $2), 0)",
    )
    .bind(key.tenant.as_str())
    .bind(key.session.as_str())
    .bind(int(expected_version))
    .bind(record.commit_id.as_str())
    .bind(int(record.first_seq))
    .bind(int(record.last_seq))
    .bind(&record.body[..])
    .bind(record.is_active)
    .execute(connection)
    .await?;
    Ok(if inserted.rows_affected() == 1 {
        Written::Done
    } else {
        Written::Conflict
    })
}

async fn save_snapshot(
    connection: &mut SqliteConnection,
    key: &SessionKey,
    (version, schema): (u64, u32),
    packed: &Packed,
) -> Result<(), Error> {
    sqlx::query(
        "INSERT INTO snapshots (tenant, session, version, schema, is_compressed, body) \
         SELECT $1, $2, $3, $4, $5, $6 WHERE $3 <= \
         (SELECT max(version) FROM journal WHERE tenant = $1 AND session = $2) \
         ON CONFLICT (tenant, session) DO UPDATE SET version = excluded.version, \
         schema = excluded.schema, is_compressed = excluded.is_compressed, body = excluded.body \
         WHERE excluded.version >= snapshots.version",
    )
    .bind(key.tenant.as_str())
    .bind(key.session.as_str())
    .bind(int(version))
    .bind(i64::from(schema))
    .bind(packed.is_compressed)
    .bind(&packed.body[..])
    .execute(connection)
    .await?;
    Ok(())
}
