//! Tells whoever shows a list of sessions what changed on it: here, and by the other gateways on the same
//! records.

use std::sync::Arc;

use tokio::sync::broadcast;

use super::membership::Lives;
use super::broadcaster::{Letter, Relay};
use crate::agent::feed::list_update::RowNews;

/// News that a listener may be behind; whoever misses some reads the list again.
const RING: usize = 1_024;

/// Tells of rows. Cheap to clone.
#[derive(Clone)]
pub(in crate::agent) struct Lists {
    listeners: broadcast::Sender<RowNews>,
    relay: Relay,
    lives: Arc<Lives>,
}

impl Lists {
    pub(in crate::agent) fn new(relay: Relay, lives: Arc<Lives>) -> Self {
        let listeners = broadcast::channel(RING).0;
        Self {
            listeners,
            relay,
            lives,
        }
    }

    /// Tells of rows that were written here. A gateway that begins meanwhile reads them.
    pub(in crate::agent) fn tell(&self, rows: Vec<RowNews>) {
        if !rows.is_empty() && self.relay.is_shared() && !self.lives.is_alone() {
            let (from, rows) = (self.relay.life(), rows.clone());
            self.relay.tell_everybody(Letter::Rows { from, rows });
        }
        self.hear(rows);
    }

    /// Tells of rows wherever they were written.
    pub(in crate::agent) fn hear(&self, rows: Vec<RowNews>) {
        for news in rows {
            // Nobody listens: no list is shown.
            let _ = self.listeners.send(news);
        }
    }

    pub(in crate::agent) fn listen(&self) -> broadcast::Receiver<RowNews> {
        self.listeners.subscribe()
    }
}
