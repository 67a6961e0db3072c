//! Broadcasts changes of session lists to local listeners and to the other gateways on the same records.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast;

use super::Cluster;
use super::message::ClusterMessage;
use crate::agent::feed::list_update::ListUpdate;
use crate::domain::{SessionKey, Timestamp};
use crate::store::clock::now;

/// The most updates that a listener may lag behind; one that misses some reads the list again.
const RING: usize = 1_024;
/// The time for which a given-up session stays hidden after its time if nobody reports what became of it.
const LINGER_MS: i64 = 60_000;

/// Broadcasts changes of list rows. Cheap to clone.
#[derive(Clone)]
pub(in crate::agent) struct ListBroadcast {
    listeners: broadcast::Sender<ListUpdate>,
    cluster: Arc<Cluster>,
    /// Given-up sessions with the time of their deletion: to everybody they do not exist.
    hidden: Arc<Mutex<HashMap<SessionKey, Timestamp>>>,
    /// The number of those who watch a list here.
    watchers: Arc<AtomicUsize>,
}

/// Says that somebody watches a list, as long as it lives.
pub struct ListWatch(Arc<AtomicUsize>);

impl Drop for ListWatch {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ListBroadcast {
    pub(in crate::agent) fn new(cluster: Arc<Cluster>) -> Self {
        let listeners = broadcast::channel(RING).0;
        Self {
            listeners,
            cluster,
            hidden: Arc::default(),
            watchers: Arc::default(),
        }
    }

    /// Says that somebody watches a list from now on: take it before the list is read.
    pub(in crate::agent) fn watch(&self) -> ListWatch {
        self.watchers.fetch_add(1, Ordering::Relaxed);
        ListWatch(Arc::clone(&self.watchers))
    }

    /// Returns true if somebody may watch a list, here or at another gateway.
    pub(in crate::agent) fn are_watched(&self) -> bool {
        let is_here = self.watchers.load(Ordering::Relaxed) > 0;
        is_here || (self.cluster.is_shared() && !self.cluster.membership.is_alone())
    }

    /// Broadcasts rows written by this gateway. A gateway that starts meanwhile reads them from the records.
    pub(in crate::agent) fn tell(&self, rows: Vec<ListUpdate>) {
        let cluster = &self.cluster;
        if !rows.is_empty() && cluster.is_shared() && !cluster.membership.is_alone() {
            let (from, rows) = (cluster.gateway.clone(), rows.clone());
            cluster
                .broadcaster
                .tell_everybody(ClusterMessage::Rows { from, rows });
        }
        self.hear(rows);
    }

    /// Passes on rows, whichever gateway wrote them.
    pub(in crate::agent) fn hear(&self, rows: Vec<ListUpdate>) {
        for news in rows {
            match &news {
                ListUpdate::GivenUp { key, delete_at, .. } => self.hide(key, *delete_at),
                ListUpdate::Changed(_) | ListUpdate::Removed { .. } => {
                    self.hidden().remove(news.key());
                }
                ListUpdate::Unlisted(_) => {}
            }
            // An error means that no list is shown.
            let _ = self.listeners.send(news);
        }
    }

    /// Hides a session that was given up. A later message reports that it was deleted or restored; if the
    /// message is lost, the entry expires after a while.
    pub(in crate::agent) fn hide(&self, key: &SessionKey, delete_at: Timestamp) {
        let mut hidden = self.hidden();
        let over = Timestamp(now().0.saturating_sub(LINGER_MS));
        hidden.retain(|_, until| *until > over);
        hidden.insert(key.clone(), delete_at);
    }

    pub(in crate::agent) fn is_hidden(&self, key: &SessionKey) -> bool {
        self.hidden().contains_key(key)
    }

    fn hidden(&self) -> MutexGuard<'_, HashMap<SessionKey, Timestamp>> {
        self.hidden.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::agent) fn listen(&self) -> broadcast::Receiver<ListUpdate> {
        self.listeners.subscribe()
    }
}
