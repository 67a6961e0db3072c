//! What the sockets of a tenant hear of its servers.

use tokio::sync::broadcast;

use super::health::Status;
use crate::domain::TenantId;

/// News that a slow socket may be behind; more are dropped, as the list can be read again.
const RING: usize = 256;

/// Something happened to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// Whom it concerns; everybody if it is none.
    pub tenant: Option<TenantId>,
    /// The server.
    pub server: String,
    /// What.
    pub kind: NewsKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewsKind {
    /// It was added.
    Added,
    /// It was removed.
    Removed,
    /// Its health is another.
    Health(Status, Option<String>),
}

impl News {
    /// Whether the sockets of that tenant are told.
    pub fn concerns(&self, tenant: &TenantId) -> bool {
        self.tenant.as_ref().is_none_or(|whose| whose == tenant)
    }
}

/// Tells all sockets.
pub(super) struct Teller(broadcast::Sender<News>);

impl Default for Teller {
    fn default() -> Self {
        Self(broadcast::channel(RING).0)
    }
}

impl Teller {
    pub(super) fn tell(&self, news: News) {
        // Nobody listens: nobody is connected.
        let _ = self.0.send(news);
    }

    pub(super) fn listen(&self) -> broadcast::Receiver<News> {
        self.0.subscribe()
    }
}
