//! Tells whoever shows a list of sessions what changed on it: here, and by the other gateways on the same
//! records.

use std::sync::Arc;

use tokio::sync::broadcast;

use super::broadcaster::{Broadcaster, ClusterMessage};
use super::membership::Membership;
use crate::agent::feed::list_update::ListUpdate;

/// News that a listener may be behind; whoever misses some reads the list again.
const RING: usize = 1_024;

/// Tells of rows. Cheap to clone.
#[derive(Clone)]
pub(in crate::agent) struct ListBroadcast {
    listeners: broadcast::Sender<ListUpdate>,
    broadcaster: Broadcaster,
    membership: Arc<Membership>,
}

impl ListBroadcast {
    pub(in crate::agent) fn new(broadcaster: Broadcaster, membership: Arc<Membership>) -> Self {
        let listeners = broadcast::channel(RING).0;
        Self {
            listeners,
            broadcaster,
            membership,
        }
    }

    /// Tells of rows that were written here. A gateway that begins meanwhile reads them.
    pub(in crate::agent) fn tell(&self, rows: Vec<ListUpdate>) {
        if !rows.is_empty() && self.broadcaster.is_shared() && !self.membership.is_alone() {
            let (from, rows) = (self.broadcaster.life(), rows.clone());
            self.broadcaster
                .tell_everybody(ClusterMessage::Rows { from, rows });
        }
        self.hear(rows);
    }

    /// Tells of rows wherever they were written.
    pub(in crate::agent) fn hear(&self, rows: Vec<ListUpdate>) {
        for news in rows {
            // Nobody listens: no list is shown.
            let _ = self.listeners.send(news);
        }
    }

    pub(in crate::agent) fn listen(&self) -> broadcast::Receiver<ListUpdate> {
        self.listeners.subscribe()
    }
}
