//! The index of unfinished sessions. It lies in another slot than the journals, so no atomic step
//! can hold both: instead it may name too many sessions, but never too few.
//!
//! Each member's score is the version of an append that made or kept the session unfinished, and
//! it is written *before* that append. A member goes only after an append that ended the session,
//! and only if its score is not above the version of that append: whoever made the session
//! unfinished again wrote a larger score first. So every order of steps of several gateways, and
//! every crash between them, leaves at worst a member too much. Readers look at the journal's
//! newest entry, which is the truth, and take out what they find ended.
//!
//! Most appends write no score: one that follows an own append of the same session, which left it
//! unfinished, finds its member there, because nobody can have ended it in between.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redis::RedisResult;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::entry::{Entry, RawEntry};
use super::link::{Link, translate};
use super::{keys, script};
use crate::domain::SessionKey;
use crate::store::Error;

/// Ended sessions that may wait to be taken out. One that finds no place stays in the index until
/// it ends again or a server starts; readers pass over it.
const QUEUE: usize = 4_096;
/// The most of them in one step.
const BATCH: usize = 256;
/// Journals whose end is read in one trip.
const PAGE: usize = 200;

/// A session and the version up to which it has ended.
type Ended = (SessionKey, u64);

pub(super) struct ActiveIndex {
    link: Link,
    /// The version of our last append per session that we left unfinished.
    /// Never held across an await.
    known: Mutex<HashMap<SessionKey, u64>>,
    ended: mpsc::Sender<Ended>,
}

impl ActiveIndex {
    /// Starts the task that takes ended sessions out; it ends with the store, or after what is
    /// queued when `shutdown` is called.
    pub(super) fn start(link: Link, tasks: &TaskTracker, shutdown: CancellationToken) -> Self {
        let (ended, queue) = mpsc::channel(QUEUE);
        tasks.spawn(dismiss_all(link.clone(), queue, shutdown));
        Self {
            link,
            known: Mutex::default(),
            ended,
        }
    }

    /// Sees that the index names a session before version `version` leaves it unfinished.
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

    /// Notes an append of ours that was answered.
    pub(super) fn appended(&self, key: &SessionKey, version: u64, is_active: bool) {
        if is_active {
            self.known().insert(key.clone(), version);
            return;
        }
        self.known().remove(key);
        self.dismiss(key.clone(), version);
    }

    /// Forgets what was known of a session: an append did not end well.
    pub(super) fn forget(&self, key: &SessionKey) {
        self.known().remove(key);
    }

    /// Takes a session out whatever its journal says.
    pub(super) async fn remove(&self, key: &SessionKey) -> Result<(), Error> {
        self.forget(key);
        let mut remove = redis::cmd("ZREM");
        remove.arg(keys::ACTIVE).arg(key.to_string());
        self.link.query(&remove).await
    }

    /// Every unfinished session, in the order of their keys.
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
        for page in named.chunks(PAGE) {
            let mut heads = redis::pipe();
            heads.ignore_errors();
            for (key, _) in page {
                let journal = keys::journal(key);
                heads.cmd("XREVRANGE").arg(journal).arg("+").arg("-");
                heads.arg("COUNT").arg(1);
            }
            let heads: Vec<RedisResult<Vec<RawEntry>>> = self.link.query_all(&heads).await?;
            for ((key, _), head) in page.iter().zip(heads) {
                let head = head.map_err(translate);
                let head =
                    head.and_then(|head| head.into_iter().next().map(Entry::read).transpose());
                match head {
                    Ok(None) => {}
                    Ok(Some(head)) if head.is_active => unfinished.push(key.clone()),
                    Ok(Some(head)) => self.dismiss(key.clone(), head.record.version),
                    // Whoever opens it finds the damage; the others are not held up by it.
                    Err(error) if error.is_damage() => unfinished.push(key.clone()),
                    Err(error) => return Err(error),
                }
            }
        }
        unfinished.sort();
        Ok(unfinished)
    }

    fn dismiss(&self, key: SessionKey, version: u64) {
        // Without a place it stays named, which costs the next start one look at its journal.
        let _ = self.ended.try_send((key, version));
    }

    fn known(&self) -> MutexGuard<'_, HashMap<SessionKey, u64>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn dismiss_all(link: Link, mut queue: mpsc::Receiver<Ended>, shutdown: CancellationToken) {
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

async fn dismiss(link: &Link, ended: &[Ended]) -> Result<(), Error> {
    let texts: Vec<String> = ended
        .iter()
        .flat_map(|(key, version)| [key.to_string(), version.to_string()])
        .collect();
    let args: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
    link.run(&script::DISMISS, &[keys::ACTIVE], &args).await
}
