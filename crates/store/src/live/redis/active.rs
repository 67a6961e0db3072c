//! Maintains the index of unfinished sessions.
//!
//! The index is in another hash slot than the journals, so no atomic step can change both. It may therefore
//! name sessions that have ended, but never misses an unfinished one.
//!
//! Each member's score is the version of an append that left the session unfinished, and it is written
//! *before* that append. A member is removed only after an append that ended the session, and only if its
//! score is not above that append's version: a gateway that made the session unfinished again has written a
//! larger score first. So whatever the order of steps of several gateways, and wherever one crashes, at
//! worst the index holds a member too many. Readers check the newest entry of the journal, which is
//! authoritative, and remove the members of ended sessions.
//!
//! A member without a journal may belong to a session that is about to begin: a gateway has written the
//! member, but not yet the first entry. So the first reader that finds no journal only marks the member: it
//! replaces the score by the negated time of Redis. A later reader removes the member if the mark is a day
//! old and there is still no journal. A gateway that begins the session after the mark replaces the mark by a
//! version, which is larger, so the member stays. A gateway that wrote the member before the mark has had a
//! day for its append.
//!
//! Most appends write no score: if this gateway's previous append of the session left it unfinished and is
//! the version directly before, the member is still there, because no append can have ended the session in
//! between.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redis::RedisResult;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::entry::{Entry, RawEntry};
use super::link::{Link, translate};
use super::{keys, script};
use crate::Error;
use sepal_core::domain::SessionKey;

/// The most ended sessions that wait for removal from the index. A session that finds the queue full stays
/// in the index until it ends again or a server starts; readers skip it.
const QUEUE: usize = 4_096;
/// The most sessions removed in one step.
const BATCH: usize = 256;
/// The number of journals whose newest entry is read in one round trip.
const PAGE: usize = 200;
/// The time after which a member without a journal is removed, in milliseconds: a day. An append follows its
/// announcement within seconds, unless its gateway was stopped in between.
const ABSENT_FOR_MS: &[u8] = b"86400000";

/// A session and a version at which it had ended.
type EndedSession = (SessionKey, u64);

pub(super) struct ActiveIndex {
    link: Link,
    /// The version of this gateway's last append for each session that the append left unfinished, until
    /// [`Self::read`] finds that another gateway ended the session. Never locked across an await.
    known: Mutex<HashMap<SessionKey, u64>>,
    ended: mpsc::Sender<EndedSession>,
}

impl ActiveIndex {
    /// Starts the task that removes ended sessions. The task ends when the store is dropped; after
    /// `shutdown`, it first processes the queue.
    pub(super) fn start(link: Link, tasks: &TaskTracker, shutdown: CancellationToken) -> Self {
        let (ended, queue) = mpsc::channel(QUEUE);
        tasks.spawn(dismiss_all(link.clone(), queue, shutdown));
        Self {
            link,
            known: Mutex::default(),
            ended,
        }
    }

    /// Makes sure that the index names a session, before the append of `version` leaves it unfinished.
    pub(super) async fn announce(&self, key: &SessionKey, version: u64) -> Result<(), Error> {
        if self
            .known()
            .get(key)
            .is_some_and(|last| last + 1 == version)
        {
            return Ok(());
        }
        let mut add = redis::cmd("ZADD");
        add.arg(keys::ACTIVE)
            .arg("GT")
            .arg(version)
            .arg(key.to_string());
        self.link.query(&add).await
    }

    /// Records a successful append of this gateway.
    pub(super) fn appended(&self, key: &SessionKey, version: u64, is_active: bool) {
        if is_active {
            self.known().insert(key.clone(), version);
            return;
        }
        self.known().remove(key);
        self.dismiss(key.clone(), version);
    }

    /// Forgets the last append of a session, because an append failed or conflicted.
    pub(super) fn forget(&self, key: &SessionKey) {
        self.known().remove(key);
    }

    /// Removes a session from the index unconditionally.
    pub(super) async fn remove(&self, key: &SessionKey) -> Result<(), Error> {
        self.forget(key);
        let mut remove = redis::cmd("ZREM");
        remove.arg(keys::ACTIVE).arg(key.to_string());
        self.link.query(&remove).await
    }

    /// Returns every unfinished session, sorted by key. Forgets this gateway's last appends to all other
    /// sessions. At worst, one of them began meanwhile and is announced once more.
    pub(super) async fn read(&self) -> Result<Vec<SessionKey>, Error> {
        let mut range = redis::cmd("ZRANGE");
        range.arg(keys::ACTIVE).arg(0).arg(-1).arg("WITHSCORES");
        let members: Vec<(String, f64)> = self.link.query(&range).await?;
        let mut named = Vec::with_capacity(members.len());
        for (member, since) in members {
            let key = keys::parse_member(&member)
                .ok_or_else(|| Error::corrupt("unfinished session in Redis", member))?;
            named.push((key, since));
        }
        let mut unfinished = Vec::with_capacity(named.len());
        let mut absent = Vec::new();
        for page in named.chunks(PAGE) {
            let mut heads = redis::pipe();
            heads.ignore_errors();
            for (key, _) in page {
                let journal = keys::journal(key);
                heads.cmd("XREVRANGE").arg(journal).arg("+").arg("-");
                heads.arg("COUNT").arg(1);
            }
            let heads: Vec<RedisResult<Vec<RawEntry>>> = self.link.query_all(&heads).await?;
            for ((key, since), head) in page.iter().zip(heads) {
                let head = head.map_err(translate);
                let head =
                    head.and_then(|head| head.into_iter().next().map(Entry::read).transpose());
                match head {
                    Ok(None) => absent.push((key, *since)),
                    Ok(Some(head)) if head.is_active => unfinished.push(key.clone()),
                    Ok(Some(head)) => self.dismiss(key.clone(), head.record.version),
                    // The error shows when someone opens the session; it must not keep the others from
                    // starting.
                    Err(error) if error.is_damage() => unfinished.push(key.clone()),
                    Err(error) => return Err(error),
                }
            }
        }
        unfinished.sort();
        self.known()
            .retain(|key, _| unfinished.binary_search(key).is_ok());
        for absent in absent.chunks(BATCH) {
            if let Err(error) = self.age(absent).await {
                tracing::debug!(
                    ?error,
                    "Sessions without a journal could not be removed from the index; the next read tries again"
                );
            }
        }
        Ok(unfinished)
    }

    /// Marks or removes members without a journal, each unless its score has changed since it was read.
    async fn age(&self, absent: &[(&SessionKey, f64)]) -> Result<(), Error> {
        let texts: Vec<String> = absent
            .iter()
            .flat_map(|(key, since)| [key.to_string(), since.to_string()])
            .collect();
        let mut args = vec![ABSENT_FOR_MS];
        args.extend(texts.iter().map(String::as_bytes));
        self.link.run(&script::AGE, &[keys::ACTIVE], &args).await
    }

    fn dismiss(&self, key: SessionKey, version: u64) {
        // If the queue is full, the member stays, which costs the next start one read of its journal.
        let _ = self.ended.try_send((key, version));
    }

    fn known(&self) -> MutexGuard<'_, HashMap<SessionKey, u64>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn dismiss_all(
    link: Link,
    mut queue: mpsc::Receiver<EndedSession>,
    shutdown: CancellationToken,
) {
    let mut ended = Vec::with_capacity(BATCH);
    loop {
        tokio::select! {
            biased;
            () = shutdown.cancelled(), if !queue.is_closed() => queue.close(),
            taken = queue.recv_many(&mut ended, BATCH) => {
                if taken == 0 {
                    return;
                }
                if let Err(error) = dismiss(&link, &ended).await {
                    tracing::debug!(?error, "Ended sessions stay in the index for now");
                }
                ended.clear();
            }
        }
    }
}

async fn dismiss(link: &Link, ended: &[EndedSession]) -> Result<(), Error> {
    let texts: Vec<String> = ended
        .iter()
        .flat_map(|(key, version)| [key.to_string(), version.to_string()])
        .collect();
    let args: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
    link.run(&script::DISMISS, &[keys::ACTIVE], &args).await
}
