//! Holds the state of a session that is in memory or watched here.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::agent::cluster::Cluster;
use crate::agent::feed::Feed;
use crate::agent::mailbox::Message;
use crate::domain::{SessionKey, UserId};
use crate::session::Genesis;
use crate::store::live::cluster_bus::ClusterBus;

/// The time for which a new session waits for its first watcher or command.
const RESERVED_FOR: Duration = Duration::from_mins(1);

/// A session that is in memory or watched.
pub(in crate::agent::sessions) struct Slot {
    pub(in crate::agent::sessions) feed: Arc<Feed>,
    pub(in crate::agent::sessions) genesis: Genesis,
    /// True if its first command may create the session.
    pub(in crate::agent::sessions) is_new: bool,
    /// True if it certainly has no journal yet, so that none is looked for.
    pub(super) is_blank: bool,
    pub(in crate::agent::sessions) mailbox: Option<mpsc::Sender<Message>>,
    /// The version with which its task left memory: watchers have been shown everything up to it.
    pub(in crate::agent::sessions) rested_at: Option<u64>,
    /// Unsubscribes when the slot is dropped.
    _following: Following,
    /// The time since which it is reserved for a caller who has not joined yet.
    reserved: Instant,
    /// The user who joined: the owner, since nobody else is admitted.
    pub(super) joined: Option<UserId>,
}

/// A subscription to the session's messages, for as long as it lives.
struct Following {
    bus: Arc<dyn ClusterBus>,
    key: SessionKey,
}

impl Drop for Following {
    fn drop(&mut self) {
        self.bus.unfollow(&self.key);
    }
}

impl Slot {
    pub(super) fn new(cluster: &Cluster, key: &SessionKey, genesis: Genesis, is_new: bool) -> Self {
        Self {
            feed: Arc::new(Feed::new(cluster.feed_of(key))),
            genesis,
            is_new,
            is_blank: false,
            mailbox: None,
            rested_at: None,
            _following: Following {
                bus: Arc::clone(&cluster.bus),
                key: key.clone(),
            },
            reserved: Instant::now(),
            joined: None,
        }
    }

    /// Returns true if its task runs and takes commands.
    pub(in crate::agent::sessions) fn is_live(&self) -> bool {
        self.mailbox
            .as_ref()
            .is_some_and(|mailbox| !mailbox.is_closed())
    }

    /// Returns true if nobody needs it.
    pub(in crate::agent::sessions) fn is_forgotten(&self) -> bool {
        let is_awaited = self.is_new && self.reserved.elapsed() < RESERVED_FOR;
        !(self.is_live() || self.feed.is_watched() || is_awaited)
    }
}
