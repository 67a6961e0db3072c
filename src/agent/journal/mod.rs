//! A session's journal: folded, appended to, and read by range.

pub(super) mod fence;
pub(super) mod projection;

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use self::fence::Fence;
use super::feed::ShownEvent;
use super::mailbox::store_away;
use crate::domain::{Code, SessionKey};
use crate::history;
use crate::jobs::Pool;
use crate::session::{Commit, CommitError, Refusal, SessionState, Unfinished};
use crate::store::{Appended, LiveStore, NewRecord, Record, Snapshot};

/// Records that one read asks for.
const PAGE: usize = 500;

/// The most that one step writes of a new journal: it is held in memory, and keeps others waiting.
const MAX_CREATED_BYTES: usize = 256 * 1024 * 1024;

/// The form of a snapshot's body; another one is ignored, which costs time and no data.
const SNAPSHOT_SCHEMA: u32 = 3;

/// States that are serialized at the same time. Many sessions may come to rest together, and every
/// further thread would only wait for a processor, with memory of its own.
static WRITERS: LazyLock<Pool> = LazyLock::new(|| Pool::new("snapshots", 2));

/// A snapshot's body.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredSnapshot {
    /// The folded state, its entries cut to `limits`.
    pub(super) state: SessionState,
    limits: history::Limits,
}

/// A session's stored past.
#[derive(Clone)]
pub(super) struct Journal {
    store: Arc<dyn LiveStore>,
    key: SessionKey,
}

/// Events as they are stored. Reading them takes a while, which is nothing for a thread that answers others.
#[derive(Debug)]
pub(super) struct StoredEvents {
    records: Vec<Record>,
    after: u64,
}

impl StoredEvents {
    /// The shown ones, oldest first; none = there are no more.
    pub(super) fn read(self) -> Result<Vec<ShownEvent>, JournalError> {
        let mut events = shown(&self.records)?;
        events.retain(|event| event.seq > self.after);
        Ok(events)
    }
}

/// The journal cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum JournalError {
    #[error("the store does not give the journal")]
    Store(#[from] crate::store::Error),
    #[error("a commit of the journal cannot be read")]
    Commit(#[from] CommitError),
    #[error("version {expected} of the journal is missing; {found} comes next")]
    Gap { expected: u64, found: u64 },
}

impl JournalError {
    /// Whether it stays so until somebody mends what is stored.
    pub(super) fn is_damage(&self) -> bool {
        match self {
            Self::Store(error) => error.is_damage(),
            Self::Commit(_) | Self::Gap { .. } => true,
        }
    }
}

/// How an append ended, once everything that can be found out is found out.
pub(super) enum Settled {
    /// Durable, in so many bytes.
    Stored(usize),
    /// Somebody else wrote this version.
    Conflict,
    /// The store is away or damaged; the commit may or may not have arrived.
    Away(crate::store::Error),
    /// It is not one that can be stored. Nothing was appended.
    Unfit(Refusal),
}

impl Journal {
    pub(super) fn new(store: Arc<dyn LiveStore>, key: SessionKey) -> Self {
        Self { store, key }
    }

    /// The state after the newest commit: snapshot and tail. A snapshot that was cut to narrower
    /// limits than the session's is not used: the journal has what it lacks.
    pub(super) async fn fold(
        &self,
        usual: &history::ContextRules,
    ) -> Result<SessionState, JournalError> {
        let snapshot = match self.store.snapshot(&self.key).await {
            // It costs time, not data: the journal has everything.
            Err(error) if error.is_damage() => {
                tracing::warn!(session.id = %self.key.session, ?error, "A snapshot cannot be read and is folded anew");
                None
            }
            answer => answer?,
        };
        let kept = snapshot
            .filter(|snapshot| snapshot.schema == SNAPSHOT_SCHEMA)
            .and_then(|snapshot| read_kept(&snapshot));
        if let Some(StoredSnapshot {
            mut state,
            limits: cut_to,
        }) = kept.filter(|kept| usual.limits(&kept.state.control).are_within(kept.limits))
        {
            while self.catch_up(&mut state, |_| {}).await? > 0 {}
            // The tail may say that the session reads more than the snapshot holds.
            if usual.limits(&state.control).are_within(cut_to) {
                return Ok(state);
            }
        }
        let mut state = SessionState::default();
        while self.catch_up(&mut state, |_| {}).await? > 0 {}
        Ok(state)
    }

    /// The state after that version, with every entry that any limits could let through.
    pub(super) async fn whole(&self, version: u64) -> Result<SessionState, JournalError> {
        let mut state = SessionState::default();
        while state.control.version < version {
            let from = state.control.version;
            let records = self.store.read_after_version(&self.key, from, PAGE).await?;
            for record in records.iter().filter(|record| record.version <= version) {
                apply_next(&mut state, record)?;
            }
            if state.control.version == from {
                break;
            }
        }
        Ok(state)
    }

    /// Applies a page of what came after `state`; how many commits it was.
    pub(super) async fn catch_up(
        &self,
        state: &mut SessionState,
        mut on: impl FnMut(&Commit),
    ) -> Result<usize, JournalError> {
        let version = state.control.version;
        let records = self
            .store
            .read_after_version(&self.key, version, PAGE)
            .await?;
        for record in &records {
            on(&apply_next(state, record)?);
        }
        Ok(records.len())
    }

    /// The version of the newest commit; 0 = nothing is stored.
    pub(super) async fn version(&self) -> Result<u64, crate::store::Error> {
        self.store.version(&self.key).await
    }

    /// The fence of calls that begin while this gateway runs the session, as the journal says up to
    /// that version.
    pub(super) fn fence(&self, version: u64) -> Fence {
        Fence::new((Arc::clone(&self.store), self.key.clone()), version)
    }

    /// Appends, and asks the store what became of it where the answer was lost. `wake` is told to other
    /// gateways in the same step.
    pub(super) async fn append(
        &self,
        commit: &Commit,
        is_active: bool,
        wake: Option<Bytes>,
    ) -> Settled {
        let body = match commit.to_bytes() {
            Ok(body) => Bytes::from(body),
            Err(error) => {
                tracing::error!(session.id = %self.key.session, %error, "A commit does not serialize");
                return Settled::Unfit(Refusal::new(Code::Internal, "internal error"));
            }
        };
        let bytes = body.len();
        let record = NewRecord {
            commit_id: commit.commit_id.clone(),
            first_seq: commit.seq.saturating_add(1),
            last_seq: commit.last_seq(),
            is_active,
            body,
            wake,
        };
        let before = commit.version.saturating_sub(1);
        match self.store.append(&self.key, before, record).await {
            Appended::Ok => Settled::Stored(bytes),
            Appended::Unknown(error) if error.code() == Code::TooLarge => {
                Settled::Unfit(Refusal::new(Code::TooLarge, error.to_string()))
            }
            Appended::Conflict => self.settle(commit).await.unwrap_or(Settled::Conflict),
            Appended::Unknown(error) => self.settle(commit).await.unwrap_or(Settled::Away(error)),
        }
    }

    /// Writes a whole new journal in one step; `too_large` above [`MAX_CREATED_BYTES`]. Nobody else can
    /// know its key.
    pub(super) async fn create(&self, commits: &[Commit]) -> Result<(), Refusal> {
        let mut records = Vec::with_capacity(commits.len());
        let mut bytes = 0_usize;
        for (at, commit) in commits.iter().enumerate() {
            // The last one says how the session begins.
            let is_last = at + 1 == commits.len();
            let body = commit.to_bytes().map_err(|error| {
                tracing::error!(session.id = %self.key.session, %error, "A commit does not serialize");
                Refusal::new(Code::Internal, "internal error")
            })?;
            bytes = bytes.saturating_add(body.len());
            if bytes > MAX_CREATED_BYTES {
                let most = MAX_CREATED_BYTES / (1024 * 1024);
                let text = format!(
                    "what the new session would begin with is more than {most} MiB; take an earlier \
                     place, or begin a session without a past"
                );
                return Err(Refusal::new(Code::TooLarge, text));
            }
            records.push(NewRecord {
                commit_id: commit.commit_id.clone(),
                first_seq: commit.seq.saturating_add(1),
                last_seq: commit.last_seq(),
                is_active: is_last && commit.is_unfinished_after(Unfinished::default()),
                body: Bytes::from(body),
                wake: None,
            });
        }
        match self.store.create(&self.key, records).await {
            Appended::Ok => Ok(()),
            Appended::Conflict => Err(Refusal::new(Code::Internal, "internal error")),
            Appended::Unknown(error) if error.code() == Code::TooLarge => {
                Err(Refusal::new(Code::TooLarge, error.to_string()))
            }
            Appended::Unknown(error) => {
                tracing::warn!(session.id = %self.key.session, ?error, "A new journal was not written");
                Err(store_away())
            }
        }
    }

    /// Whether this very commit stands in the journal; `None` if nobody wrote its version.
    async fn settle(&self, commit: &Commit) -> Option<Settled> {
        let before = commit.version.saturating_sub(1);
        match self.store.read_after_version(&self.key, before, 1).await {
            Ok(records) => records.first().map(|record| {
                if record.commit_id == commit.commit_id {
                    Settled::Stored(record.body.len())
                } else {
                    Settled::Conflict
                }
            }),
            Err(error) => Some(Settled::Away(error)),
        }
    }

    /// Keeps the folded state, cut to `limits`, so that the next fold is short. Serializes off the
    /// caller's task.
    pub(super) async fn keep_snapshot(&self, state: SessionState, limits: history::Limits) {
        let version = state.control.version;
        let kept = StoredSnapshot { state, limits };
        let body = WRITERS.run(move || serde_json::to_vec(&kept)).await;
        let Ok(Ok(body)) = body else { return };
        let snapshot = Snapshot {
            version,
            schema: SNAPSHOT_SCHEMA,
            body: Bytes::from(body),
        };
        if let Err(error) = self.store.save_snapshot(&self.key, snapshot).await {
            tracing::debug!(session.id = %self.key.session, %error, "The snapshot was not kept");
        }
    }

    /// Whose it is.
    pub(super) fn key(&self) -> &SessionKey {
        &self.key
    }

    /// The same as [`Self::events_after`], not read yet.
    pub(super) async fn stored_after(
        &self,
        after: u64,
        limit: usize,
    ) -> Result<StoredEvents, JournalError> {
        let records = self.store.read_after_seq(&self.key, after, limit).await?;
        Ok(StoredEvents { records, after })
    }

    /// Shown events with `seq > after`, oldest first, about `limit` of them.
    pub(super) async fn events_after(
        &self,
        after: u64,
        limit: usize,
    ) -> Result<Vec<ShownEvent>, JournalError> {
        let records = self.store.read_after_seq(&self.key, after, limit).await?;
        let mut events = shown(&records)?;
        events.retain(|event| event.seq > after);
        events.truncate(limit);
        Ok(events)
    }

    /// The newest `limit` shown events with `seq < before`, oldest first.
    pub(super) async fn events_before(
        &self,
        before: u64,
        limit: usize,
    ) -> Result<Vec<ShownEvent>, JournalError> {
        let records = self.store.read_before_seq(&self.key, before, limit).await?;
        let mut events = shown(&records)?;
        events.retain(|event| event.seq < before);
        let surplus = events.len().saturating_sub(limit);
        events.drain(..surplus);
        Ok(events)
    }
}

/// Applies the commit that follows `state`, and no other.
fn apply_next(state: &mut SessionState, record: &Record) -> Result<Commit, JournalError> {
    let commit = Commit::from_bytes(&record.body)?;
    let expected = state.control.version.saturating_add(1);
    if record.version != expected || commit.version != expected {
        let found = record.version;
        return Err(JournalError::Gap { expected, found });
    }
    state.apply(&commit);
    Ok(commit)
}

fn shown(records: &[Record]) -> Result<Vec<ShownEvent>, CommitError> {
    let mut events = Vec::new();
    for record in records {
        let commit = Commit::from_bytes(&record.body)?;
        let at = commit.at;
        let shown = commit.shown().map(|(seq, event)| ShownEvent {
            seq,
            at,
            event: event.clone(),
        });
        events.extend(shown);
    }
    Ok(events)
}

/// A snapshot that cannot be read costs time, not data: the journal is folded from its start.
fn read_kept(snapshot: &Snapshot) -> Option<StoredSnapshot> {
    match serde_json::from_slice(&snapshot.body) {
        Ok(kept) => Some(kept),
        Err(error) => {
            tracing::warn!(%error, "A snapshot cannot be read and is folded anew");
            None
        }
    }
}
