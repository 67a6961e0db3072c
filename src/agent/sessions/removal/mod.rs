//! Removes sessions: at once, or, if they were given up, after the time to undo, by whichever gateway lives
//! then. Until then they are on no list.

pub(in crate::agent) mod expiry;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::error::SendError;
use tokio::sync::oneshot;

use super::refusal::{not_found, unreadable};
use super::registry::SessionRegistry;
use crate::agent::cluster::message::{ClusterMessage, SessionUpdate};
use crate::agent::feed::FeedItem;
use crate::agent::feed::list_update::ListUpdate;
use crate::agent::journal::JournalError;
use crate::agent::mailbox::{Message, stopping, store_away};
use crate::agent::usage::completion::complete_before_removal;
use crate::domain::{Caller, Code, SandboxId, SessionKey, Timestamp, UserId};
use crate::session::Refusal;
use crate::store::Error;
use crate::store::clock::now;
use crate::store::records::SessionRow;

/// The time for which giving up can be undone.
const UNDO: Duration = Duration::from_secs(10);
/// The interval between looks for sessions that other gateways gave up, in case one of them is gone.
const EVERY: Duration = Duration::from_mins(1);

/// Deletes given-up sessions: checks at once, whenever a session is given up, and when the next one is due.
pub(super) async fn delete_given_up(registry: Arc<SessionRegistry>) {
    let stop = registry.stop.clone();
    let deleting = async {
        loop {
            let wait = match advance(&registry).await {
                Ok(next) => next.map_or(EVERY, |at| until(at).min(EVERY)),
                Err(error) => {
                    tracing::warn!(%error, "Sessions that were given up cannot be read");
                    EVERY
                }
            };
            tokio::select! {
                () = registry.given_up.notified() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    };
    // `None` = stopped.
    let _: Option<()> = stop.run_until_cancelled(deleting).await;
}

/// Erases the remains of deleted sessions from the search index: at the start those that an earlier process
/// left, and soon after each deletion. Erasing rewrites the whole index, so it pauses afterwards: frequent
/// deletions must not keep the disk busy for everybody.
pub(super) async fn erase_deleted(registry: Arc<SessionRegistry>) {
    let stop = registry.stop.clone();
    let erasing = async {
        loop {
            match registry.records().texts().erase_deleted().await {
                Ok(false) => registry.deleted.notified().await,
                Ok(true) => tokio::time::sleep(EVERY).await,
                Err(error) => {
                    tracing::warn!(%error, "Words of deleted sessions are not yet erased");
                    tokio::time::sleep(EVERY).await;
                }
            }
        }
    };
    // `None` = stopped.
    let _: Option<()> = stop.run_until_cancelled(erasing).await;
}

/// Deletes sessions that are due, and hides the others. Returns the time at which the next one is due.
async fn advance(registry: &Arc<SessionRegistry>) -> Result<Option<Timestamp>, Error> {
    let mut next = None;
    for row in registry.records().sessions().given_up().await? {
        let Some(at) = row.marks.delete_at else {
            continue;
        };
        if at > now() {
            registry.lists.hide(&row.key, at);
            next = next.or(Some(at));
            continue;
        }
        let SessionRow { key, owner, .. } = row;
        remove_for_good(registry, &key, &owner).await;
    }
    Ok(next)
}

/// Removes a session that can no longer be restored. Returns false if it still exists.
pub(super) async fn remove_for_good(
    registry: &Arc<SessionRegistry>,
    key: &SessionKey,
    owner: &UserId,
) -> bool {
    let left = leave(registry, key, owner).await;
    match remove(registry, key, owner, left).await {
        // Another gateway was faster.
        Err(refusal) if refusal.code == Code::SessionNotFound => {}
        Err(refusal) => {
            tracing::warn!(session.id = %key.session, %refusal, "A session that was given up is still there");
            return false;
        }
        Ok(()) => {
            tracing::debug!(session.id = %key.session, "Deleted a session that was given up");
        }
    }
    true
}

/// Returns the time until `at`, plus 5 ms, so that it has certainly passed.
fn until(at: Timestamp) -> Duration {
    let ms = at.0.saturating_sub(now().0).max(0);
    Duration::from_millis(u64::try_from(ms).unwrap_or(0) + 5)
}

/// Gives up the caller's session, and returns the time of its deletion. `None` if they have no such session.
pub(super) async fn give_up(
    registry: &SessionRegistry,
    key: &SessionKey,
    caller: &Caller,
) -> Result<Option<Timestamp>, Error> {
    let undo = i64::try_from(UNDO.as_millis()).unwrap_or(i64::MAX);
    let delete_at = Timestamp(now().0.saturating_add(undo));
    let owner = &caller.user.id;
    let rows = registry.records().sessions();
    if !rows.give_up(key, owner, delete_at).await? {
        return Ok(None);
    }
    registry.given_up.notify_one();
    registry.lists.publish(vec![ListUpdate::GivenUp {
        key: key.clone(),
        owner: owner.clone(),
        delete_at,
    }]);
    Ok(Some(delete_at))
}

/// Restores the caller's given-up session. Returns true if it was given up.
pub(super) async fn take_back(
    registry: &SessionRegistry,
    key: &SessionKey,
    caller: &Caller,
) -> Result<bool, Error> {
    let rows = registry.records().sessions();
    if !rows.take_back(key, &caller.user.id, now()).await? {
        return Ok(false);
    }
    if let Some(row) = rows.find(key).await? {
        registry.lists.publish(vec![ListUpdate::Changed(row)]);
    }
    Ok(true)
}

/// Removes a session whose task has left memory, or could not be reached.
pub(super) async fn remove(
    registry: &Arc<SessionRegistry>,
    key: &SessionKey,
    by: &UserId,
    left: Result<Option<SandboxId>, Refusal>,
) -> Result<(), Refusal> {
    let left = match left {
        // The owner may delete a damaged session; the janitor finds its workspace.
        Err(refusal) if refusal.code == Code::SessionUnreadable => None,
        Err(refusal) if refusal.code == Code::SessionNotFound => {
            unless_cut_off(registry, key, by, refusal).await?;
            None
        }
        left => left?,
    };
    registry.projection.written().await;

    complete_before_removal(&registry.store, registry.records(), key).await?;
    let noted = registry.records().texts().erase_later().await;
    noted.map_err(|error| unreadable(key, &JournalError::Store(error)))?;
    let removed = registry.store.remove(key).await;
    removed.map_err(|error| unreadable(key, &JournalError::Store(error)))?;
    registry.projection.forget(key, by);
    registry.projection.written().await;
    if let Some(feed) = registry.forget(key) {
        feed.show(FeedItem::Deleted);
    }
    registry
        .cluster
        .broadcaster
        .publish(key, || SessionUpdate::Deleted);
    if let Some(sandbox) = left {
        registry.factory.parts.place.remove(key, &sandbox).await;
        let key = key.clone();
        registry
            .cluster
            .broadcaster
            .publish_to_all(ClusterMessage::Removed { key, sandbox });
    }
    registry.deleted.notify_one();
    Ok(())
}

/// Succeeds if a deletion was interrupted: the journal is gone, and the list still has the session as this
/// person's. Otherwise fails with `refusal`.
async fn unless_cut_off(
    registry: &SessionRegistry,
    key: &SessionKey,
    by: &UserId,
    refusal: Refusal,
) -> Result<(), Refusal> {
    match registry
        .factory
        .parts
        .place
        .records
        .sessions()
        .find(key)
        .await
    {
        Ok(Some(row)) if row.owner == *by => {}
        Ok(Some(_) | None) => return Err(refusal),
        Err(error) => {
            tracing::warn!(session.id = %key.session, ?error, "The list of sessions cannot be read");
            return Err(store_away());
        }
    }
    // The list may be behind: if there is a journal, it decides who owns the session.
    match registry.store.head(key).await {
        Ok(None) => Ok(()),
        Ok(Some(_)) => Err(refusal),
        Err(error) => Err(unreadable(key, &JournalError::Store(error))),
    }
}

/// Ends the task of a session that is about to be removed, whoever opened it.
async fn leave(
    registry: &Arc<SessionRegistry>,
    key: &SessionKey,
    by: &UserId,
) -> Result<Option<SandboxId>, Refusal> {
    let head = registry.store.head(key).await;
    let head = head.map_err(|error| unreadable(key, &JournalError::Store(error)))?;
    if head.is_none() {
        return Err(not_found());
    }
    let (reply, answer) = oneshot::channel();
    let by = by.clone();
    let mut leaving = Message::Delete { by, reply };
    loop {
        if registry.stop.is_cancelled() {
            return Err(stopping());
        }
        let mailbox = registry.spawn(key, None, registry.live.count(None, 1));
        match mailbox.send(leaving).await {
            Ok(()) => break,
            // The task was leaving memory: open the session again.
            Err(SendError(back)) => leaving = back,
        }
    }
    answer.await.unwrap_or_else(|_| Err(stopping()))
}
