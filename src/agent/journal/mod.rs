//! Folds, extends and reads the journal of a session.

pub(super) mod fence;
pub(super) mod projection;

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use self::fence::Fence;
use super::feed::ShownEvent;
use super::mailbox::store_away;
use crate::domain::{Code, Digest, SessionKey};
use crate::history;
use crate::jobs::Pool;
use crate::session::proof::{Chain, LinkedCommit, RecordForm, link_after};
use crate::session::{Commit, CommitError, Refusal, SessionState, UnfinishedWork};
use crate::store::{AppendOutcome, LiveStore, NewRecord, Record, Snapshot};

/// The most records per read.
const PAGE: usize = 500;

/// The most bytes of a new journal written in one step: they are held in memory, and other writers wait.
const MAX_CREATED_BYTES: usize = 256 * 1024 * 1024;

/// The schema version of a snapshot's body; a snapshot of another version is ignored, which costs time and no
/// data.
const SNAPSHOT_SCHEMA: u32 = 7;

/// Serializes at most two states at the same time. Many sessions may go idle together, and each further
/// thread would only wait for a processor, with memory of its own.
static WRITERS: LazyLock<Pool> = LazyLock::new(|| Pool::new("snapshots", 2));

/// A snapshot's body.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredSnapshot {
    /// The folded state, with its entries cut to `limits`.
    pub(super) state: SessionState,
    limits: history::Limits,
}

/// The stored history of a session.
#[derive(Clone)]
pub(super) struct Journal {
    store: Arc<dyn LiveStore>,
    key: SessionKey,
}

/// Stored events that are not parsed yet. Parsing takes too long for a thread that also serves others.
#[derive(Debug)]
pub(super) struct StoredEvents {
    records: Vec<Record>,
    after: u64,
}

impl StoredEvents {
    /// Returns the shown events, oldest first; empty if there are no more.
    pub(super) fn read(self) -> Result<Vec<ShownEvent>, JournalError> {
        let mut events = shown(&self.records)?;
        events.retain(|event| event.seq > self.after);
        Ok(events)
    }
}

/// The reason the journal cannot be read.
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
    /// Returns true if the error is permanent until somebody repairs the stored data.
    pub(super) fn is_damage(&self) -> bool {
        match self {
            Self::Store(error) => error.is_damage(),
            Self::Commit(_) | Self::Gap { .. } => true,
        }
    }
}

/// The definite result of an append.
pub(super) enum AppendResult {
    /// The commit is durable.
    Stored {
        /// Its size.
        bytes: usize,
        /// Its link.
        link: Digest,
        /// What was decided in it.
        records: Vec<RecordForm>,
    },
    /// Another gateway wrote this version.
    Conflict,
    /// The store is away or damaged; the commit may or may not have been stored.
    Away(crate::store::Error),
    /// The commit cannot be stored. Nothing was appended.
    Unfit(Refusal),
}

impl Journal {
    pub(super) fn new(store: Arc<dyn LiveStore>, key: SessionKey) -> Self {
        Self { store, key }
    }

    /// Folds the state after the newest commit, from the snapshot and the commits after it. A snapshot that
    /// was cut to narrower limits than the session's is ignored, because it lacks entries.
    pub(super) async fn fold(
        &self,
        usual: &history::ContextRules,
    ) -> Result<SessionState, JournalError> {
        let snapshot = match self.store.snapshot(&self.key).await {
            // A damaged snapshot costs time, not data: the journal has everything.
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
            // The later commits may widen the session's limits beyond those of the snapshot.
            if usual.limits(&state.control).are_within(cut_to) {
                return Ok(state);
            }
        }
        let mut state = SessionState::default();
        while self.catch_up(&mut state, |_| {}).await? > 0 {}
        Ok(state)
    }

    /// Folds the state after that version, with every entry that any limits could admit.
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

    /// Applies one page of the commits after `state`, and returns their number.
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

    /// Returns the version of the newest commit; 0 = nothing is stored.
    pub(super) async fn version(&self) -> Result<u64, crate::store::Error> {
        self.store.version(&self.key).await
    }

    /// Returns the fence of calls that begin while this gateway runs the session, based on the journal up to
    /// that version.
    pub(super) fn fence(&self, version: u64) -> Fence {
        Fence::new(Arc::clone(&self.store), self.key.clone(), version)
    }

    /// Appends a commit that follows the state `after`, and if the store's answer is lost, asks the store for
    /// the result. `wake` is published to other gateways in the same step.
    pub(super) async fn append(
        &self,
        after: &SessionState,
        commit: &Commit,
        wake: Option<Bytes>,
    ) -> AppendResult {
        let is_active = commit.is_unfinished_after(after.control.unfinished());
        let linked = match LinkedCommit::new(&after.control, after.link.as_ref(), commit) {
            Ok(linked) => linked,
            Err(error) => {
                tracing::error!(session.id = %self.key.session, %error, "A commit does not serialize");
                return AppendResult::Unfit(Refusal::new(Code::Internal, "internal error"));
            }
        };
        let stored = AppendResult::Stored {
            bytes: linked.body.len(),
            link: linked.link,
            records: linked.records,
        };
        let record = NewRecord {
            commit_id: commit.commit_id.clone(),
            first_seq: commit.seq.saturating_add(1),
            last_seq: commit.last_seq(),
            is_active,
            body: Bytes::from(linked.body),
            wake,
        };
        let before = commit.version.saturating_sub(1);
        match self.store.append(&self.key, before, record).await {
            AppendOutcome::Ok => stored,
            AppendOutcome::Unknown(error) if error.code() == Code::TooLarge => {
                AppendResult::Unfit(Refusal::new(Code::TooLarge, error.to_string()))
            }
            AppendOutcome::Conflict => {
                (self.settle(commit, stored).await).unwrap_or(AppendResult::Conflict)
            }
            AppendOutcome::Unknown(error) => {
                (self.settle(commit, stored).await).unwrap_or(AppendResult::Away(error))
            }
        }
    }

    /// Writes a whole new journal in one step, and returns the link of its last commit; fails with `too_large`
    /// above [`MAX_CREATED_BYTES`]. Its key is still unknown to everybody else.
    pub(super) async fn create(&self, commits: &[Commit]) -> Result<Option<Digest>, Refusal> {
        let mut records = Vec::with_capacity(commits.len());
        let mut chain = Chain::default();
        let mut bytes = 0_usize;
        for (at, commit) in commits.iter().enumerate() {
            // The last commit decides whether the new session starts active.
            let is_last = at + 1 == commits.len();
            let body = chain.append(commit).map_err(|error| {
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
                is_active: is_last && commit.is_unfinished_after(UnfinishedWork::default()),
                body: Bytes::from(body),
                wake: None,
            });
        }
        match self.store.create(&self.key, records).await {
            AppendOutcome::Ok => Ok(chain.into_link()),
            AppendOutcome::Conflict => Err(Refusal::new(Code::Internal, "internal error")),
            AppendOutcome::Unknown(error) if error.code() == Code::TooLarge => {
                Err(Refusal::new(Code::TooLarge, error.to_string()))
            }
            AppendOutcome::Unknown(error) => {
                tracing::warn!(session.id = %self.key.session, ?error, "A new journal was not written");
                Err(store_away())
            }
        }
    }

    /// Checks if the journal contains this very commit, and returns `stored` if so; `None` if its version was
    /// never written.
    async fn settle(&self, commit: &Commit, stored: AppendResult) -> Option<AppendResult> {
        let before = commit.version.saturating_sub(1);
        match self.store.read_after_version(&self.key, before, 1).await {
            Ok(records) => records.first().map(|record| {
                if record.commit_id == commit.commit_id {
                    stored
                } else {
                    AppendResult::Conflict
                }
            }),
            Err(error) => Some(AppendResult::Away(error)),
        }
    }

    /// Stores the folded state, cut to `limits`, to speed up the next fold. Serializes off the caller's task.
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

    /// Returns true if other programs may read the snapshots.
    pub(super) fn shows_snapshots(&self) -> bool {
        self.store.shows_snapshots()
    }

    /// The key of the session.
    pub(super) fn key(&self) -> &SessionKey {
        &self.key
    }

    /// Returns at most `limit` stored commits after that version.
    pub(super) async fn records_after(
        &self,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Record>, JournalError> {
        let records = self.store.read_after_version(&self.key, after, limit);
        Ok(records.await?)
    }

    /// Like [`Self::events_after`], without parsing the records; may hold more than `limit` events.
    pub(super) async fn stored_after(
        &self,
        after: u64,
        limit: usize,
    ) -> Result<StoredEvents, JournalError> {
        let records = self.store.read_after_seq(&self.key, after, limit).await?;
        Ok(StoredEvents { records, after })
    }

    /// Returns shown events with `seq > after`, oldest first, at most `limit` of them.
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

    /// Returns the newest `limit` shown events with `seq < before`, oldest first.
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

/// Applies a record if it holds the commit that follows `state`; fails for any other.
fn apply_next(state: &mut SessionState, record: &Record) -> Result<Commit, JournalError> {
    let commit = Commit::from_bytes(&record.body)?;
    let expected = state.control.version.saturating_add(1);
    if record.version != expected || commit.version != expected {
        let found = record.version;
        return Err(JournalError::Gap { expected, found });
    }
    let link = link_after(&record.body, state.link.as_ref())?;
    state.apply_linked(&commit, link);
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

/// Parses a snapshot. One that cannot be parsed costs time, not data: the journal is folded from its start.
fn read_kept(snapshot: &Snapshot) -> Option<StoredSnapshot> {
    match serde_json::from_slice(&snapshot.body) {
        Ok(kept) => Some(kept),
        Err(error) => {
            tracing::warn!(%error, "A snapshot cannot be read and is folded anew");
            None
        }
    }
}
