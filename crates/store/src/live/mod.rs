//! Stores each session's journal and snapshot, and the index of unfinished sessions, behind one trait.
//!
//! The append is the fence: of several gateways, only one can append a given version.

mod appending;
pub mod cluster_bus;
mod job;
mod packing;
mod postgres;
mod reading;
mod redis;
mod sqlite;
mod writer;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(super) use self::redis::{RedisBus, RedisLive, RedisSettings};
use super::db::Db;
use super::{Access, Error};
use postgres::PostgresLive;
use sepal_core::domain::{CommitId, SessionKey};
use sqlite::SqliteLive;

/// The largest body of a record, or of a snapshot after compression, in bytes.
pub const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// The most records that one read returns, even if the caller's limit is higher.
pub const MAX_RECORDS_PER_READ: usize = 1_000;

/// A record to append, which holds the events of one decision. The store does not interpret the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRecord {
    /// Identifies the record, so that a writer can tell after a time-out whether it was appended.
    pub commit_id: CommitId,
    /// `seq` of the first shown event; `last_seq + 1` if none is shown.
    pub first_seq: u64,
    /// `seq` of the session after this record; never below the one before.
    pub last_seq: u64,
    /// True if the session is unfinished after this record.
    pub is_active: bool,
    pub body: Bytes,
    /// The message published in the same step to other gateways that follow the session, if any. Stores that
    /// serve one gateway ignore it.
    pub wake: Option<Bytes>,
}

/// A record read from a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Dense per session, from 1.
    pub version: u64,
    pub commit_id: CommitId,
    /// `seq` of the first shown event; `last_seq + 1` if none is shown.
    pub first_seq: u64,
    /// `seq` of the session after this record.
    pub last_seq: u64,
    pub body: Bytes,
}

/// The end of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Version of the newest record.
    pub version: u64,
    /// `seq` of the session.
    pub last_seq: u64,
    /// The commit id of the newest record.
    pub commit_id: CommitId,
}

/// A folded state. With it, opening a session reads only the snapshot and the records after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The journal version of the state.
    pub version: u64,
    /// The format of `body`. Readers ignore a snapshot with a different schema.
    pub schema: u32,
    /// The serialized state; the store compresses it if configured.
    pub body: Bytes,
}

/// The outcome of an append.
#[derive(Debug)]
#[must_use]
pub enum AppendOutcome {
    /// The record is durable.
    Ok,
    /// Another writer appended first, so nothing was appended. Read the new records and decide again.
    Conflict,
    /// It is not known whether the record was appended. Read [`LiveStore::head`]: the same `commit_id` there
    /// means Ok. While the head is still the expected version, the same record may be appended again; if the
    /// first attempt takes effect after all, the second returns `Conflict` and the head shows the record. If
    /// the error's `fault()` is `Validation`, the append was not attempted.
    Unknown(Error),
}

/// Stores journals in SQL or Redis. Reads see every append that returned [`AppendOutcome::Ok`].
///
/// A read of a range returns at most [`MAX_RECORDS_PER_READ`] records: read on until the answer is empty.
#[async_trait]
pub trait LiveStore: Send + Sync {
    /// Appends version `expected_version + 1` if the head's version is `expected_version` (0 = no journal).
    async fn append(
        &self,
        key: &SessionKey,
        expected_version: u64,
        record: NewRecord,
    ) -> AppendOutcome;

    /// Writes the first records of a journal in one step, with versions from 1 on, if no journal exists: all
    /// of them or none. None of them may be active. No gateway is notified, because none can know the
    /// session yet.
    async fn create(&self, key: &SessionKey, records: Vec<NewRecord>) -> AppendOutcome;

    /// The head of the journal; `None` if the session has no journal.
    async fn head(&self, key: &SessionKey) -> Result<Option<Head>, Error>;

    /// The version of the newest record; 0 = no journal. The result includes every append that was sent
    /// before.
    async fn version(&self, key: &SessionKey) -> Result<u64, Error> {
        let head = self.head(key).await?;
        Ok(head.map_or(0, |head| head.version))
    }

    /// The oldest `limit` records whose version is greater than `version`, ascending.
    async fn read_after_version(
        &self,
        key: &SessionKey,
        version: u64,
        limit: usize,
    ) -> Result<Vec<Record>, Error>;

    /// The oldest `limit` records with `last_seq > seq`, ascending.
    async fn read_after_seq(
        &self,
        key: &SessionKey,
        seq: u64,
        limit: usize,
    ) -> Result<Vec<Record>, Error>;

    /// The newest `limit` records with `first_seq < seq`, ascending.
    async fn read_before_seq(
        &self,
        key: &SessionKey,
        seq: u64,
        limit: usize,
    ) -> Result<Vec<Record>, Error>;

    /// Returns true if other programs may read the snapshots, so that a living session keeps its own up to
    /// date.
    fn shows_snapshots(&self) -> bool {
        false
    }

    /// The newest snapshot, if there is one.
    async fn snapshot(&self, key: &SessionKey) -> Result<Option<Snapshot>, Error>;

    /// Saves a snapshot, unless a newer one exists or the journal does not reach its version (the session
    /// was removed).
    async fn save_snapshot(&self, key: &SessionKey, snapshot: Snapshot) -> Result<(), Error>;

    /// The keys of all unfinished sessions.
    async fn active(&self) -> Result<Vec<SessionKey>, Error>;

    /// Deletes the session's journal, snapshot and index entry.
    async fn remove(&self, key: &SessionKey) -> Result<(), Error>;

    /// Checks that the store answers.
    async fn ping(&self) -> Result<(), Error>;
}

/// Opens the live store that keeps the journals in the records' database, for the one server that uses it.
pub(super) async fn in_database(
    db: &Db,
    access: Access,
    compression: bool,
    tasks: &TaskTracker,
    shutdown: CancellationToken,
) -> Result<Arc<dyn LiveStore>, Error> {
    Ok(match db {
        Db::Sqlite(db) => Arc::new(SqliteLive::start(db.clone(), compression, tasks, shutdown)),
        Db::Postgres(db) => {
            Arc::new(PostgresLive::open(db.clone(), access, compression, tasks, &shutdown).await?)
        }
    })
}

/// Checks the size of every record of a new journal.
fn check_sizes(records: &[NewRecord]) -> Result<(), Error> {
    records
        .iter()
        .try_for_each(|record| check_size(record.body.len()))
}

fn check_size(bytes: usize) -> Result<(), Error> {
    if bytes > MAX_BODY_BYTES {
        return Err(Error::TooLarge {
            bytes,
            limit: MAX_BODY_BYTES,
        });
    }
    Ok(())
}
