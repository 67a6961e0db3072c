//! The journal of every session, its snapshot and the index of unfinished sessions: what outlives
//! the process, behind one trait. The append is the fence: whoever appends a version owns it.

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
use crate::domain::{CommitId, SessionKey};
use postgres::PostgresLive;
use sqlite::SqliteLive;

/// The largest body of a record or snapshot.
pub const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// The most records that one read returns, whatever was asked.
pub const MAX_RECORDS_PER_READ: usize = 1_000;

/// What one decision appends. The store does not look into the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRecord {
    /// Tells after a time-out whether this very record arrived.
    pub commit_id: CommitId,
    /// `seq` of the first shown event; `last_seq + 1` if none is shown.
    pub first_seq: u64,
    /// `seq` of the session after this record; never below the one before.
    pub last_seq: u64,
    /// Whether the session is unfinished after this record.
    pub is_active: bool,
    pub body: Bytes,
    /// What other gateways that follow the session are told in the same step, if anything.
    /// Stores of one gateway have nobody to tell.
    pub wake: Option<Bytes>,
}

/// A record as it stands in the journal.
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
    /// Who wrote the newest record.
    pub commit_id: CommitId,
}

/// A folded state, so that opening a session costs snapshot + tail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The journal version that it holds.
    pub version: u64,
    /// The form of `body`; a snapshot of another schema is ignored by its reader.
    pub schema: u32,
    /// The state, serialized (compression is the store's own matter).
    pub body: Bytes,
}

/// How an append ended.
#[derive(Debug)]
#[must_use]
pub enum Appended {
    /// Durable.
    Ok,
    /// Somebody else wrote: read, and decide again. Nothing was appended.
    Conflict,
    /// Nobody knows: read [`LiveStore::head`]; the same `commit_id` there means Ok, and while the
    /// head still is the expected version the same record may be appended again (if the first one
    /// lands after all, that is a `Conflict` and the head tells). An error whose `fault()` is
    /// `Validation` was never tried.
    Unknown(Error),
}

/// The seam to SQL or Redis. Reads see every append that was answered with [`Appended::Ok`].
///
/// Ranges hold at most [`MAX_RECORDS_PER_READ`] records: read on until the answer is empty.
#[async_trait]
pub trait LiveStore: Send + Sync {
    /// Appends version `expected_version + 1`, if `expected_version` is the head's (0 = no journal).
    async fn append(&self, key: &SessionKey, expected_version: u64, record: NewRecord) -> Appended;

    /// Writes the first records of a journal in one step, if there is none: versions from 1 on, all or
    /// nothing. None of them is active. Nobody is woken: nobody can know the session.
    async fn create(&self, key: &SessionKey, records: Vec<NewRecord>) -> Appended;

    /// The end of the journal; `None` if the session has none.
    async fn head(&self, key: &SessionKey) -> Result<Option<Head>, Error>;

    /// The version of the newest record; 0 = no journal. Comes behind every append that was sent
    /// before.
    async fn version(&self, key: &SessionKey) -> Result<u64, Error> {
        let head = self.head(key).await?;
        Ok(head.map_or(0, |head| head.version))
    }

    /// The oldest `limit` records with a larger version, ascending.
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

    /// The newest snapshot.
    async fn snapshot(&self, key: &SessionKey) -> Result<Option<Snapshot>, Error>;

    /// Keeps a snapshot, unless a newer one is there or the journal does not reach its version
    /// (the session was removed).
    async fn save_snapshot(&self, key: &SessionKey, snapshot: Snapshot) -> Result<(), Error>;

    /// Every unfinished session.
    async fn active(&self) -> Result<Vec<SessionKey>, Error>;

    /// Forgets journal, snapshot and index entry.
    async fn remove(&self, key: &SessionKey) -> Result<(), Error>;

    /// Asks for a sign of life.
    async fn ping(&self) -> Result<(), Error>;
}

/// The journals in the database itself, for the one server that uses it.
pub(super) async fn in_database(
    db: &Db,
    (access, compression): (Access, bool),
    tasks: &TaskTracker,
    shutdown: CancellationToken,
) -> Result<Arc<dyn LiveStore>, Error> {
    Ok(match db {
        Db::Sqlite(db) => Arc::new(SqliteLive::start(db.clone(), compression, tasks, shutdown)),
        Db::Postgres(db) => {
            let how = (access, compression);
            Arc::new(PostgresLive::open(db.clone(), how, tasks, &shutdown).await?)
        }
    })
}

/// Whether every record of a new journal may be stored.
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
