//! Stores journals in SQLite: one writer groups the appends of all sessions, and readers have their own
//! pool.

use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::job::{Job, JobOutcome, Work};
use super::packing;
use super::reading::Reading;
use super::writer::Writer;
use super::{AppendOutcome, Head, LiveStore, NewRecord, Record, Snapshot, check_size, check_sizes};
use crate::Error;
use crate::db::{Db, SqliteDb};
use sepal_core::domain::SessionKey;
use sepal_telemetry::instruments;

/// The limit for an answer. An append that exceeds it is `Unknown`. It is longer than the time that the file may
/// be busy: a database that is only slow must not be told as one that is away.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(40);

/// The capacity of the writer's queue. When it is full, callers wait.
const QUEUE: usize = 1_024;

/// The live store of one SQLite file.
pub(super) struct SqliteLive {
    reading: Reading,
    jobs: mpsc::Sender<Job>,
    compression: bool,
}

impl SqliteLive {
    /// Starts the writer task. It ends when the store is dropped; after `shutdown`, it first writes what is
    /// queued.
    pub(super) fn start(
        db: SqliteDb,
        compression: bool,
        tasks: &TaskTracker,
        shutdown: CancellationToken,
    ) -> Self {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let reading = Reading::new(Db::Sqlite(db.clone()));
        tasks.spawn(Writer::new(db, queue, shutdown).run());
        Self {
            reading,
            jobs,
            compression,
        }
    }

    /// Sends work to the writer and waits until it is durable.
    async fn write(&self, key: &SessionKey, work: Work) -> Result<JobOutcome, Error> {
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
}

#[async_trait]
impl LiveStore for SqliteLive {
    async fn append(
        &self,
        key: &SessionKey,
        expected_version: u64,
        record: NewRecord,
    ) -> AppendOutcome {
        if let Err(error) = check_size(record.body.len()) {
            return AppendOutcome::Unknown(error);
        }
        let work = Work::Append {
            expected_version,
            record,
        };
        let _timing = instruments().append("sqlite");
        match self.write(key, work).await {
            Ok(JobOutcome::Done) => AppendOutcome::Ok,
            Ok(JobOutcome::Conflict) => AppendOutcome::Conflict,
            Err(error) => AppendOutcome::Unknown(error),
        }
    }

    async fn create(&self, key: &SessionKey, records: Vec<NewRecord>) -> AppendOutcome {
        if let Err(error) = check_sizes(&records) {
            return AppendOutcome::Unknown(error);
        }
        match self.write(key, Work::Create { records }).await {
            Ok(JobOutcome::Done) => AppendOutcome::Ok,
            Ok(JobOutcome::Conflict) => AppendOutcome::Conflict,
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
        let packed = packing::pack(snapshot.body, self.compression).await;
        check_size(packed.body.len())?;
        let work = Work::Snapshot {
            version: snapshot.version,
            schema: snapshot.schema,
            packed,
        };
        self.write(key, work).await.map(|_| ())
    }

    async fn active(&self) -> Result<Vec<SessionKey>, Error> {
        self.reading.active().await
    }

    async fn remove(&self, key: &SessionKey) -> Result<(), Error> {
        self.write(key, Work::Remove).await.map(|_| ())
    }

    async fn ping(&self) -> Result<(), Error> {
        self.reading.ping().await
    }
}
