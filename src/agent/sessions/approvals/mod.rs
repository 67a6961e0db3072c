//! Lists the calls that wait for a person's decision, over all sessions.

pub(super) mod expiry;

use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc, oneshot};

use super::refusal::unreadable;
use super::{Sessions, may_decide};
use crate::agent::feed::{OthersSession, QueueState, QueueView};
use crate::agent::journal::Journal;
use crate::agent::mailbox::Message;
use crate::agent::row_error::RowError;
use crate::domain::{Caller, Code, SessionId, SessionKey, Timestamp};
use crate::session::Refusal;
use crate::store;
use crate::store::records::{DecidableSessions, SessionRow, WaitingCursor, WaitingTotals};

/// The most sessions outside of memory that are read at the same time, by all callers: each is folded from
/// its snapshot, which may be large.
static READERS: Semaphore = Semaphore::const_new(2);

/// A session with calls that wait for the caller.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitingSession {
    /// Its row on the session list.
    pub row: SessionRow,
    /// All current calls of the batch, including decided ones; in another's session only those that wait for
    /// the caller.
    pub queue: QueueState,
    /// Set if the session is another's.
    pub others: Option<OthersSession>,
    /// The time since which the oldest call waits.
    pub since: Timestamp,
}

/// A page of waiting sessions, the one that has waited longest first.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitingPage {
    /// Fewer than `limit` if one was decided meanwhile, or cannot be read.
    pub sessions: Vec<WaitingSession>,
    /// The start of the next page, if there is more.
    pub next: Option<WaitingCursor>,
}

/// Returns the sessions in which the caller may decide calls; `None` = none. Everything that is shown over
/// all sessions uses this check. A decision itself is checked by its session.
fn decidable(caller: &Caller) -> Option<DecidableSessions> {
    may_decide(caller).is_ok().then(|| DecidableSessions {
        tenant: caller.tenant.id.clone(),
        person: caller.user.id.clone(),
        role: caller.user.role,
        within: caller.confined_sessions().cloned(),
    })
}

/// Lists the calls that wait for people.
pub struct Approvals<'s>(pub(super) &'s Sessions);

impl Approvals<'_> {
    /// Lists the sessions that wait for the caller, oldest first, including everything acknowledged so far.
    /// With `session` only that one, if it waits; the result reveals nothing about other sessions.
    pub async fn waiting(
        &self,
        caller: &Caller,
        session: Option<&SessionId>,
        after: Option<&WaitingCursor>,
        limit: usize,
    ) -> Result<WaitingPage, RowError> {
        let Some(of) = decidable(caller) else {
            let (sessions, next) = (Vec::new(), None);
            return Ok(WaitingPage { sessions, next });
        };
        self.0.listed().await;
        let rows = self.0.0.records().sessions();
        let page = rows.waiting(&of, session, after, limit).await?;
        let mut sessions = Vec::with_capacity(page.rows.len());
        for row in page.rows {
            if self.0.0.lists.is_hidden(&row.key) {
                continue;
            }
            let QueueView { queue, others } = match self.queue(&row, caller).await {
                Ok(view) => view,
                // The refusal is shown when that session is opened; the other sessions are listed all the
                // same.
                Err(refusal) if is_of_one(&refusal) => continue,
                Err(refusal) => return Err(refusal.into()),
            };
            if let Some(since) = queue.waiting_since() {
                sessions.push(WaitingSession {
                    row,
                    queue,
                    others,
                    since,
                });
            }
        }
        let next = page.next;
        Ok(WaitingPage { sessions, next })
    }

    /// Counts what waits for the caller, including everything acknowledged so far.
    pub async fn totals(&self, caller: &Caller) -> Result<WaitingTotals, store::Error> {
        let Some(of) = decidable(caller) else {
            return Ok(WaitingTotals::default());
        };
        self.0.listed().await;
        self.0.0.records().sessions().waiting_totals(&of).await
    }

    /// Returns the mailbox of a session's task, if it is in memory.
    fn live_mailbox(&self, key: &SessionKey) -> Option<mpsc::Sender<Message>> {
        let slots = self.0.0.slots();
        let slot = slots.get(key).filter(|slot| slot.is_live());
        slot.and_then(|slot| slot.mailbox.clone())
    }

    /// Reads the calls of a session: from its task if it is in memory here, otherwise from its journal, which
    /// neither loads the session nor disturbs other gateways.
    async fn queue(&self, row: &SessionRow, caller: &Caller) -> Result<QueueView, Refusal> {
        let (reply, answer) = oneshot::channel();
        let message = Message::Queue {
            version: row.version,
            by: caller.user.id.clone(),
            role: caller.user.role,
            reply,
        };
        if let Some(mailbox) = self.live_mailbox(&row.key)
            && mailbox.send(message).await.is_ok()
        {
            // Holding the mailbox would keep the session in memory.
            drop(mailbox);
            if let Ok(told) = answer.await {
                return told;
            }
        }
        // The semaphore is never closed.
        let _place = READERS.acquire().await;
        let journal = Journal::new(Arc::clone(&self.0.0.store), row.key.clone());
        let rules = self.0.0.factory.context_rules(&row.key.tenant);
        let folded = journal.fold(&rules).await;
        let state = folded.map_err(|error| unreadable(&row.key, &error))?;
        let who = (&caller.user.id, caller.user.role);
        Ok(QueueView::of(&state, who))
    }
}

/// Returns true if the refusal concerns only this session, so that the others can still be shown.
fn is_of_one(refusal: &Refusal) -> bool {
    matches!(
        refusal.code,
        Code::SessionNotFound | Code::SessionUnreadable
    )
}
