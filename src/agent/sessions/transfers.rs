//! Copies the sessions of a person whose access has ended for somebody who goes on with their work. The originals
//! stay until the person is deleted.

use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, timeout_at};

use super::Sessions;
use super::fork::store_fork;
use super::refusal::unreadable;
use crate::agent::mailbox::store_away;
use crate::agent::row_error::RowError;
use crate::domain::{Caller, Code, SessionId, SessionKey, UserId};
use crate::session::{Command, Refusal, SessionState};
use crate::store::clock::now;

/// The most sessions of one part.
const PART: usize = 50;

/// The time after which a part ends with the session that it copies.
const PART_TIME: Duration = Duration::from_secs(10);

/// The most time for the files of one session; the next attempt goes on waiting.
const FILES_TIME: Duration = Duration::from_secs(30);

/// The result of copying a part of a person's sessions.
#[derive(Debug, Default)]
pub struct TransferPart {
    /// The number of sessions that were copied.
    pub copied: usize,
    /// Those that were not, and why.
    pub failed: Vec<(SessionId, Refusal)>,
    /// The last session of this part, after which the next part begins; `None` = there are no more.
    pub next: Option<SessionId>,
}

/// Copies sessions of people whose access has ended.
pub struct Transfers<'s>(pub(super) &'s Sessions);

impl Transfers<'_> {
    /// Copies sessions of `owner` for `recipient`, in the order of their ids, from the one after `after` on. What was
    /// copied before is not copied again. The caller has checked that both people are of one tenant, and that this
    /// is allowed.
    pub async fn copy_part(
        &self,
        owner: &UserId,
        recipient: &Caller,
        after: Option<&SessionId>,
    ) -> Result<TransferPart, RowError> {
        self.0.listed().await;
        let ends_at = Instant::now() + PART_TIME;
        let (tenant, whom) = (&recipient.tenant.id, [owner, &recipient.user.id]);
        let transfers = self.0.records().session_transfers();
        let pending = transfers.pending(tenant, whom, after, PART).await?;
        let mut part = TransferPart::default();
        let is_whole = pending.len() < PART;
        let mut left = pending.into_iter();
        for session in left.by_ref() {
            let key = SessionKey {
                tenant: tenant.clone(),
                session: session.clone(),
            };
            match self.copy(&key, recipient).await {
                Ok(copy) => {
                    let finished = transfers.finish(&key, whom, &copy, now()).await?;
                    part.copied += usize::from(finished);
                }
                Err(RowError::Refused(refusal)) => part.failed.push((session.clone(), refusal)),
                Err(error) => return Err(error),
            }
            part.next = Some(session);
            if Instant::now() >= ends_at {
                break;
            }
        }
        if is_whole && left.len() == 0 {
            part.next = None;
        }
        Ok(part)
    }

    /// Copies a session with its files, or finishes the copy of an earlier attempt. Returns the id of the copy.
    async fn copy(&self, key: &SessionKey, recipient: &Caller) -> Result<SessionId, RowError> {
        let records = self.0.records();
        let fresh = SessionId::from_bits(rand::random());
        let transfers = records.session_transfers();
        let copy = transfers.begin(key, &recipient.user.id, &fresh).await?;
        let new = SessionKey {
            tenant: key.tenant.clone(),
            session: copy.clone(),
        };
        let journal = self.0.journal(&new);
        if journal.version().await? == 0 {
            let stored = store_fork(self.0, key, &new, recipient, None).await;
            // Another gateway may have stored the same copy at the same time.
            if let Err(refusal) = stored
                && journal.version().await? == 0
            {
                return Err(refusal.into());
            }
        }
        self.await_files(&new, recipient).await?;
        Ok(copy)
    }

    /// Has the files of a copy copied, and waits for them.
    async fn await_files(&self, new: &SessionKey, recipient: &Caller) -> Result<(), Refusal> {
        let mut signals = self.0.join(new, recipient).await?.signals;
        let mut state = SessionState::default();
        if !self.awaits_workspace(new, &mut state).await? {
            return Ok(());
        }
        let begin = Command::TakeOver { from: None };
        self.0.submit(new, recipient, begin.into()).await?;
        let ends_at = Instant::now() + FILES_TIME;
        while self.awaits_workspace(new, &mut state).await? {
            // Signals that were missed do not matter, because the journal is read on.
            if let Err(_) | Ok(Err(RecvError::Closed)) = timeout_at(ends_at, signals.recv()).await {
                let text =
                    "its files are still being copied; hand the sessions over again to go on";
                return Err(Refusal::new(Code::RequestTimeout, text));
            }
        }
        Ok(())
    }

    /// Folds what was stored since `state`. Returns true while the session waits for its files.
    async fn awaits_workspace(
        &self,
        key: &SessionKey,
        state: &mut SessionState,
    ) -> Result<bool, Refusal> {
        let journal = self.0.journal(key);
        while journal
            .catch_up(state, |_| ())
            .await
            .map_err(|error| unreadable(key, &error))?
            > 0
        {}
        if state.control.journal.is_none() {
            return Err(store_away());
        }
        Ok(state.control.awaits_workspace)
    }
}
