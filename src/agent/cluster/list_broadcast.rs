//! Tells whoever shows a list of sessions what changed on it: here, and by the other gateways on the same
//! records.

use std::sync::Arc;

use tokio::sync::broadcast;

use super::Cluster;
use super::message::ClusterMessage;
use crate::agent::feed::list_update::ListUpdate;

/// News that a listener may be behind; whoever misses some reads the list again.
const RING: usize = 1_024;

/// Tells of rows. Cheap to clone.
#[derive(Clone)]
pub(in crate::agent) struct ListBroadcast {
    listeners: broadcast::Sender<ListUpdate>,
    cluster: Arc<Cluster>,
}

impl ListBroadcast {
    pub(in crate::agent) fn new(cluster: Arc<Cluster>) -> Self {
        let listeners = broadcast::channel(RING).0;
        Self { listeners, cluster }
    }

    /// Tells of rows that were written here. A gateway that begins meanwhile reads them.
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
