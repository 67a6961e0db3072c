//! Writes the journals in SQLite, with one transaction for all queued jobs, so that many sessions share one
//! sync to disk and a lone append does not wait for others.

use sqlx::{Connection as _, SqliteConnection};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::appending::{append, create, in_front};
use super::job::{Job, JobOutcome, Work};
use super::packing::PackedSnapshot;
use super::reading::int;
use crate::Error;
use crate::db::SqliteDb;
use sepal_core::domain::SessionKey;

/// The most jobs in one transaction.
const BATCH: usize = 256;

/// The task that writes queued jobs.
pub(super) struct Writer {
    db: SqliteDb,
    queue: mpsc::Receiver<Job>,
    shutdown: CancellationToken,
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
        }
    }

    /// Writes until the store is dropped. After a shutdown, writes what is still queued and ends.
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
    }

    /// Writes all jobs in one transaction. If it fails, each caller gets the error and does not know the
    /// outcome.
    async fn write(&self, jobs: &mut Vec<Job>) {
        // A caller that stopped waiting decides again from the head, so a late write would only cause a
        // conflict.
        jobs.retain(|job| !job.answer.is_closed());
        match self.commit(jobs).await {
            Ok(outcomes) => {
                for (job, outcome) in jobs.drain(..).zip(outcomes) {
                    let _ = job.answer.send(Ok(outcome));
                }
            }
            Err(error) => {
                for job in jobs.drain(..) {
                    let _ = job.answer.send(Err(error.clone()));
                }
            }
        }
    }

    /// Commits the jobs. After an error the connection is in an unknown state, so the next batch opens a new
    /// one.
    async fn commit(&self, jobs: &[Job]) -> Result<Vec<JobOutcome>, Error> {
        let mut writing = self.db.writing().await?;
        let outcomes = write_all(&mut writing.connection, jobs).await?;
        writing.keep();
        Ok(outcomes)
    }
}

async fn write_all(
    connection: &mut SqliteConnection,
    jobs: &[Job],
) -> Result<Vec<JobOutcome>, Error> {
    let first = in_front(jobs);
    if first.len() == jobs.len() {
        // A single statement is its own transaction and costs one round trip to the SQLite thread.
        return append(connection, &first).await;
    }
    let mut tx = connection.begin_with("BEGIN IMMEDIATE").await?;
    let mut outcomes = Vec::with_capacity(jobs.len());
    while let Some([job, ..]) = jobs.get(outcomes.len()..) {
        let appends = in_front(jobs.get(outcomes.len()..).unwrap_or_default());
        match &job.work {
            Work::Append { .. } => outcomes.extend(append(&mut tx, &appends).await?),
            Work::Create { records } => {
                outcomes.push(create(&mut tx, &job.key, records).await?);
            }
            Work::Snapshot {
                version,
                schema,
                packed,
            } => {
                let saved = save_snapshot(&mut tx, &job.key, *version, *schema, packed);
                outcomes.push(saved.await?);
            }
            Work::Remove => outcomes.push(remove(&mut tx, &job.key).await?),
        }
    }
    tx.commit().await?;
    Ok(outcomes)
}

async fn remove(connection: &mut SqliteConnection, key: &SessionKey) -> Result<JobOutcome, Error> {
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
    Ok(JobOutcome::Done)
}

async fn save_snapshot(
    connection: &mut SqliteConnection,
    key: &SessionKey,
    version: u64,
    schema: u32,
    packed: &PackedSnapshot,
) -> Result<JobOutcome, Error> {
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
    Ok(JobOutcome::Done)
}
