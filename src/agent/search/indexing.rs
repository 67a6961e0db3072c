//! Brings the index of texts up to date with the journals: indexes the sessions whose rows in the session
//! list are ahead of the index, because of a recent commit or an old installation. Quiet sessions are indexed
//! in the background; those of a person who searches, before the search.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::commit_texts::changes;
use crate::domain::{SessionKey, TenantId, Timestamp, UserId};
use crate::session::Commit;
use crate::store::clock::now;
use crate::store::records::{Behind, Records, TakenUp, TextChange};
use crate::store::{Error, LiveStore, Record};

/// The time for which a session has to be quiet before it is indexed in the background: a busy one would be
/// indexed after each of its commits.
const QUIET: Duration = Duration::from_secs(10);
/// The interval between looks for sessions without a signal, because another gateway may have left some.
const EVERY: Duration = Duration::from_mins(1);
/// The interval at which progress is logged if there is much to do.
const TELL_EVERY: Duration = Duration::from_secs(30);
/// The number of sessions from which progress is logged.
const MANY: u64 = 100;
/// The most sessions in one round and in one transaction.
const SESSIONS: usize = 32;
/// The most commits of one session in one transaction: other writers wait meanwhile.
const COMMITS: usize = 50;
/// Characters of text after which a transaction takes no further session.
const CHARS: usize = 512 * 1024;
/// The rest after each transaction, as a multiple of its duration: it uses at most a twentieth of one
/// processor.
const REST: u32 = 19;
/// The longest time for which a search waits for indexing.
const SEARCH_WAIT: Duration = Duration::from_millis(150);

/// Indexes sessions.
#[derive(Clone)]
pub(in crate::agent) struct Indexing {
    store: Arc<dyn LiveStore>,
    records: Records,
    /// Notified when a row of the session list was written.
    bell: Arc<Notify>,
}

impl Indexing {
    pub(in crate::agent) fn new(store: Arc<dyn LiveStore>, records: Records) -> Self {
        Self {
            store,
            records,
            bell: Arc::default(),
        }
    }

    /// The bell to notify when there may be something to index.
    pub(in crate::agent) fn bell(&self) -> Arc<Notify> {
        Arc::clone(&self.bell)
    }

    /// Indexes until `stop`.
    pub(in crate::agent) async fn run(self, stop: CancellationToken) {
        let working = async {
            let mut ticks = tokio::time::interval(EVERY);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    () = self.bell.notified() => tokio::time::sleep(QUIET).await,
                    _ = ticks.tick() => {}
                }
                if let Err(error) = self.catch_up().await {
                    tracing::warn!(%error, "The search is not brought up to date");
                }
            }
        };
        // `None` = stopped.
        let _: Option<()> = stop.run_until_cancelled(working).await;
    }

    /// Indexes all quiet sessions that are behind, in rounds.
    async fn catch_up(&self) -> Result<(), Error> {
        let texts = self.records.texts();
        let mut told: Option<Instant> = None;
        loop {
            let quiet = i64::try_from(QUIET.as_millis()).unwrap_or(i64::MAX);
            let before = Timestamp(now().0.saturating_sub(quiet));
            let behind = texts.behind(before, SESSIONS).await?;
            let is_last = behind.len() < SESSIONS;
            if !is_last && told.is_none_or(|told| told.elapsed() > TELL_EVERY) {
                let left = texts.count_behind(None).await?;
                if told.is_some() || left > MANY {
                    tracing::info!(sessions = left, "Index sessions for the search");
                }
                told = Some(Instant::now());
            }
            self.bring_up(behind, REST).await?;
            if is_last {
                if told.is_some() {
                    tracing::info!("The search has every session");
                }
                return Ok(());
            }
        }
    }

    /// Indexes one session now.
    pub(in crate::agent) async fn index(&self, key: &SessionKey) -> Result<(), Error> {
        let behind = self.records.texts().behind_of(key).await?;
        self.bring_up(Vec::from_iter(behind), 0).await
    }

    /// Indexes the last changes of a person now, as far as that is quick.
    pub(in crate::agent) async fn index_of(
        &self,
        whose: (&TenantId, &UserId),
    ) -> Result<(), Error> {
        let taking_up = async {
            let texts = self.records.texts();
            let behind = texts.behind_of_person(whose, SESSIONS).await?;
            self.bring_up(behind, 0).await
        };
        // The rest is indexed in the background; the answer says that there is more.
        tokio::time::timeout(SEARCH_WAIT, taking_up)
            .await
            .unwrap_or(Ok(()))
    }

    /// Indexes all of these, and after each transaction rests `rest` times as long as it took.
    async fn bring_up(&self, mut left: Vec<Behind>, rest: u32) -> Result<(), Error> {
        while !left.is_empty() {
            let began = Instant::now();
            let mut taken = Vec::new();
            let mut chars = 0;
            for session in &left {
                if chars > CHARS {
                    break;
                }
                let (key, from) = (&session.key, session.indexed);
                let records = self.store.read_after_version(key, from, COMMITS).await?;
                let (more, next) = take_up(session, &records);
                chars += more;
                taken.push(next);
            }
            let later = left.split_off(taken.len());
            left = later;
            for taken in self.keep(taken).await? {
                let session = Behind {
                    indexed: taken.to,
                    ..taken.session
                };
                if session.indexed < session.version {
                    left.push(session);
                }
            }
            tokio::time::sleep(began.elapsed() * rest).await;
        }
        Ok(())
    }

    /// Stores index changes. Returns those that were stored: all of them, or each that no other gateway
    /// stored first.
    async fn keep(&self, taken: Vec<TakenUp>) -> Result<Vec<TakenUp>, Error> {
        let texts = self.records.texts();
        if texts.keep(&taken).await? {
            return Ok(taken);
        }
        let mut kept = Vec::new();
        for taken in taken {
            if texts.keep(std::slice::from_ref(&taken)).await? {
                kept.push(taken);
            }
        }
        Ok(kept)
    }
}

/// Collects the text changes of these records, and their number of characters. A session whose journal is
/// gone or cannot be read counts as indexed, so that it is not tried for ever.
fn take_up(session: &Behind, records: &[Record]) -> (usize, TakenUp) {
    let mut taken = TakenUp {
        session: session.clone(),
        to: session.version,
        changes: Vec::new(),
    };
    let mut chars = 0;
    for record in records {
        let commit = match Commit::from_bytes(&record.body) {
            Ok(commit) => commit,
            Err(error) => {
                tracing::warn!(session.id = %session.key.session, %error, "A session is found only up to a commit that cannot be read");
                taken.to = session.version.max(record.version);
                break;
            }
        };
        taken.to = record.version;
        let new = changes(&commit);
        chars += new.iter().map(length).sum::<usize>();
        taken.changes.extend(new);
        if chars > CHARS {
            break;
        }
    }
    (chars, taken)
}

fn length(change: &TextChange) -> usize {
    match change {
        TextChange::Put(text) => text.text.len(),
        TextChange::Remove { .. } => 0,
    }
}
