//! News about servers for the sockets of a tenant, and updates for the other gateways about changes that were
//! made here.

use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

use super::health::Status;
use sepal_core::domain::{InstallState, TenantId, UserId};

/// The capacity of each channel: a receiver that falls further behind loses news, and can read the list
/// again.
const RING: usize = 256;

/// An event of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// The tenant whose sockets are notified; `None` for all tenants.
    pub tenant: Option<TenantId>,
    /// The owner of a personal server; nobody else is notified.
    pub owner: Option<UserId>,
    pub server: String,
    pub kind: NewsKind,
}

/// The kind of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewsKind {
    /// The server was added.
    Added,
    /// The server was removed.
    Removed,
    /// The server's status or its error has changed.
    Health(Status, Option<String>),
    /// The installation of the server's package has reached another state.
    Installation(InstallState),
    /// The state of this user's connection to the server has changed: connected, needed or ended.
    Connection(UserId),
}

impl News {
    /// Returns true if the sockets of that user are notified.
    pub fn concerns(&self, tenant: &TenantId, user: &UserId) -> bool {
        let is_theirs = match &self.kind {
            NewsKind::Connection(whose) => whose == user,
            NewsKind::Added
            | NewsKind::Removed
            | NewsKind::Health(..)
            | NewsKind::Installation(_) => true,
        };
        let is_theirs = is_theirs && self.owner.as_ref().is_none_or(|owner| owner == user);
        is_theirs && self.tenant.as_ref().is_none_or(|whose| whose == tenant)
    }
}

/// A change that happened at this gateway and affects every gateway on the same records. Losing one has no
/// lasting effect: offerings are read from the records again within seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerUpdate {
    /// The tenant that owns the server or that observed the change; `None` for a server of the installation.
    pub tenant: Option<TenantId>,
    /// The owner of a personal server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<UserId>,
    pub server: String,
    pub change: Change,
}

/// The kind of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// The server was added.
    Added,
    /// The server was removed.
    Removed,
    /// The server's entry, settings or tools have changed.
    Edited,
    /// The rules of the tenant have changed, or its groups.
    Rules,
    /// The server's secrets have changed.
    Secrets,
    /// The tenant's connections to the server have to end, so that the next call starts the server again.
    Restarted,
    /// The server's status or its error has changed.
    Health(Status, Option<String>),
    /// The installation of the server's package has reached another state.
    Installation(InstallState),
    /// The state of this user's connection to the server has changed: connected, needed or ended.
    Connection(UserId),
}

impl Change {
    /// Returns the change that the other gateways are sent for the news of this gateway's sockets.
    pub fn of(news: Option<&NewsKind>) -> Self {
        match news {
            Some(NewsKind::Added) => Self::Added,
            Some(NewsKind::Removed) => Self::Removed,
            Some(NewsKind::Health(status, error)) => Self::Health(*status, error.clone()),
            Some(NewsKind::Installation(state)) => Self::Installation(*state),
            Some(NewsKind::Connection(user)) => Self::Connection(user.clone()),
            None => Self::Edited,
        }
    }
}

/// Sends news to the sockets of this gateway, and updates to the other gateways.
pub(crate) struct NewsSender {
    sockets: broadcast::Sender<News>,
    gateways: broadcast::Sender<ServerUpdate>,
}

impl Default for NewsSender {
    fn default() -> Self {
        Self {
            sockets: broadcast::channel(RING).0,
            gateways: broadcast::channel(RING).0,
        }
    }
}

impl NewsSender {
    /// Sends news to the sockets of this gateway.
    pub(crate) fn publish(&self, news: News) {
        // An error means that no socket is connected.
        let _ = self.sockets.send(news);
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<News> {
        self.sockets.subscribe()
    }

    /// Sends an update to the other gateways.
    pub(crate) fn publish_to_gateways(&self, told: ServerUpdate) {
        // An error means that nothing forwards updates to other gateways.
        let _ = self.gateways.send(told);
    }

    pub(crate) fn listen_for_gateways(&self) -> broadcast::Receiver<ServerUpdate> {
        self.gateways.subscribe()
    }
}
