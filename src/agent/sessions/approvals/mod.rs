//! What waits for somebody's decision, over all sessions.

pub(super) mod expiry;

use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc, oneshot};

use super::refusal::unreadable;
use super::{Sessions, may_act};
use crate::agent::feed::{OthersSession, QueueState, QueueView};
use crate::agent::journal::Journal;
use crate::agent::mailbox::Message;
use crate::agent::sessions::list::RowError;
use crate::domain::{Caller, Code, SessionId, SessionKey, Timestamp};
use crate::session::Refusal;
use crate::store;
use crate::store::records::{DecidableSessions, SessionRow, WaitingCursor, WaitingTotals};

/// Sessions outside of memory that are read at the same time, by whomever: each of them is folded from
/// its snapshot, which may be large.
static READERS: Semaphore = Semaphore::const_new(2);

/// A session in which calls wait for the caller.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitingSession {
    /// Its row on the list of sessions.
    pub row: SessionRow,
    /// All calls of the batch, decided ones too, as they are now; of another's session only those that
    /// wait for the caller.
    pub queue: QueueState,
    /// Where the session is another's.
    pub others: Option<OthersSession>,
    /// When the oldest of those that wait was asked for.
    pub since: Timestamp,
}

/// A page of sessions that wait, the one that has waited longest first.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitingPage {
    /// Fewer than were asked for where one was decided meanwhile, or cannot be read.
    pub sessions: Vec<WaitingSession>,
    /// Where the next page begins, if there is more.
    pub next: Option<WaitingCursor>,
}

/// In which sessions the caller may decide calls; `None` = in none. The one place that says so for
/// everything that is shown over all sessions. A decision itself is admitted by its session.
fn decidable(caller: &Caller) -> Option<DecidableSessions> {
    may_act(caller).is_ok().then(|| DecidableSessions {
        tenant: caller.tenant.id.clone(),
        person: caller.user.id.clone(),
        role: caller.user.role,
    })
}

/// What waits for people's decisions.
pub struct Approvals<'s>(pub(super) &'s Sessions);

impl Approvals<'_> {
    /// What waits for the caller, oldest first: what was acknowledged is in it. With `session` that one
    /// alone, if it waits; nothing tells whether there is another.
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
                // They are told where the session is opened; others are shown all the same.
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

    /// How much waits for the caller: what was acknowledged is in it.
    pub async fn totals(&self, caller: &Caller) -> Result<WaitingTotals, store::Error> {
        let Some(of) = decidable(caller) else {
            return Ok(WaitingTotals::default());
        };
        self.0.listed().await;
        self.0.0.records().sessions().waiting_totals(&of).await
    }

    /// The mailbox of a session's task, if it is in memory.
    fn live_mailbox(&self, key: &SessionKey) -> Option<mpsc::Sender<Message>> {
        let slots = self.0.0.slots();
        let slot = slots.get(key).filter(|slot| slot.is_live());
        slot.and_then(|slot| slot.mailbox.clone())
    }

    /// The calls of a session: from its task where it is in memory here, else from its journal, which
    /// leaves it where it is, and other gateways at rest.
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
            // Whoever holds it keeps the session in memory.
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

/// Whether it concerns one session, so that what is known of the others is told all the same.
fn is_of_one(refusal: &Refusal) -> bool {
    matches!(
        refusal.code,
        Code::SessionNotFound | Code::SessionUnreadable
    )
}
