//! Brings the index of texts up to the journals, in the background: what the rows of the session list
//! say is further than the index, whatever the reason, a commit of now or an old installation.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::commit_texts::changes;
use crate::domain::SessionKey;
use crate::session::Commit;
use crate::store::records::{Behind, Records, TextChange};
use crate::store::{Error, LiveStore, Record};

/// From a row that was written to the look at its journal: commits of a turn follow each other.
const PAUSE: Duration = Duration::from_secs(1);
/// How often it looks without being told, for what another gateway left.
const EVERY: Duration = Duration::from_mins(1);
/// How often it says how far it is, where there is much to do.
const TELL_EVERY: Duration = Duration::from_secs(30);
/// Sessions that are worth saying so.
const MANY: u64 = 100;
/// Sessions of one round.
const SESSIONS: usize = 32;
/// Commits of one transaction: others wait for the turn to write meanwhile.
const COMMITS: usize = 50;
/// Texts after which a transaction ends, whatever comes.
const CHARS: usize = 512 * 1024;
/// How many times as long as it worked it rests: a fifth of one processor at most.
const REST: u32 = 4;

/// Brings sessions up to date.
#[derive(Clone)]
pub(in crate::agent) struct Indexing {
    store: Arc<dyn LiveStore>,
    records: Records,
    /// Rung when a row of the list was written.
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

    /// Says that there may be something to do.
    pub(in crate::agent) fn bell(&self) -> Arc<Notify> {
        Arc::clone(&self.bell)
    }

    /// Works until `stop`.
    pub(in crate::agent) async fn run(self, stop: CancellationToken) {
        let working = async {
            let mut ticks = tokio::time::interval(EVERY);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    () = self.bell.notified() => tokio::time::sleep(PAUSE).await,
                    _ = ticks.tick() => {}
                }
                if let Err(error) = self.catch_up().await {
                    tracing::warn!(%error, "The search is not brought up to date");
                }
            }
        };
        // `None` is the stop.
        let _: Option<()> = stop.run_until_cancelled(working).await;
    }

    /// Everything that is behind, in rounds.
    async fn catch_up(&self) -> Result<(), Error> {
        let texts = self.records.texts();
        let mut told: Option<Instant> = None;
        loop {
            let behind = texts.behind(SESSIONS).await?;
            let is_last = behind.len() < SESSIONS;
            if !is_last && told.is_none_or(|told| told.elapsed() > TELL_EVERY) {
                let left = texts.count_behind(None).await?;
                if told.is_some() || left > MANY {
                    tracing::info!(sessions = left, "Index sessions for the search");
                }
                told = Some(Instant::now());
            }
            for session in behind {
                self.bring_up(session, REST).await?;
            }
            if is_last {
                if told.is_some() {
                    tracing::info!("The search has every session");
                }
                return Ok(());
            }
        }
    }

    /// One session, now.
    pub(in crate::agent) async fn index(&self, key: &SessionKey) -> Result<(), Error> {
        match self.records.texts().behind_of(key).await? {
            Some(session) => self.bring_up(session, 0).await,
            None => Ok(()),
        }
    }

    async fn bring_up(&self, mut session: Behind, rest: u32) -> Result<(), Error> {
        while session.indexed < session.version {
            let began = Instant::now();
            let (key, from) = (&session.key, session.indexed);
            let records = self.store.read_after_version(key, from, COMMITS).await?;
            let (to, changes) = Self::changes_of(&session, &records);
            let whose = (key, &session.owner);
            if !self
                .records
                .texts()
                .keep(whose, (from, to), &changes)
                .await?
            {
                // Another gateway is at it, or the session is gone.
                return Ok(());
            }
            session.indexed = to;
            tokio::time::sleep(began.elapsed() * rest).await;
        }
        Ok(())
    }

    /// What these records change, and up to which version. A journal that is gone, or that cannot be
    /// read, is not tried for ever.
    fn changes_of(session: &Behind, records: &[Record]) -> (u64, Vec<TextChange>) {
        let (mut to, mut chars) = (session.version, 0);
        let mut found = Vec::new();
        for record in records {
            let commit = match Commit::from_bytes(&record.body) {
                Ok(commit) => commit,
                Err(error) => {
                    tracing::warn!(session.id = %session.key.session, %error, "A session is found only up to a commit that cannot be read");
                    return (session.version.max(record.version), found);
                }
            };
            to = record.version;
            let new = changes(&commit);
            chars += new.iter().map(length).sum::<usize>();
            found.extend(new);
            if chars > CHARS {
                break;
            }
        }
        (to, found)
    }
}

fn length(change: &TextChange) -> usize {
    match change {
        TextChange::Put(text) => text.text.len(),
        TextChange::Remove { .. } => 0,
    }
}
