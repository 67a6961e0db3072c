//! What the sockets of a tenant hear of its servers, and what the other gateways are told of a
//! change that was made here.

use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

use super::health::Status;
use crate::domain::{InstallState, TenantId, UserId};

/// News that a slow socket may be behind; more are dropped, as the list can be read again.
const RING: usize = 256;

/// Something happened to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// Whom it concerns; everybody if it is none.
    pub tenant: Option<TenantId>,
    /// The person whose server it is alone; nobody else is told.
    pub owner: Option<UserId>,
    pub server: String,
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
    /// The installation of its package is somewhere else.
    Installation(InstallState),
    /// A person connected to it, has to, or does so no more.
    Connection(UserId),
}

impl News {
    /// Whether the sockets of that person are told.
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

/// What happened here and is true at every gateway on the same records. A lost one costs nothing
/// that lasts: what is offered is read from the records again within seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerUpdate {
    /// Whose server it is, or who saw it.
    pub(crate) tenant: Option<TenantId>,
    /// The person whose server it is alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<UserId>,
    pub(crate) server: String,
    pub(crate) change: Change,
}

/// What happened to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Change {
    /// It was added.
    Added,
    /// It was removed.
    Removed,
    /// What is offered of it is another.
    Edited,
    /// What is decided about its tools is another.
    Rules,
    /// Its secrets are others.
    Secrets,
    /// What runs of it for the tenant is to end, so that the next call starts it afresh.
    Restarted,
    /// Its health is another.
    Health(Status, Option<String>),
    /// The installation of its package is somewhere else.
    Installation(InstallState),
    /// A person of the tenant connected to it, has to, or does so no more.
    Connection(UserId),
}

impl Change {
    /// What the sockets are told, as gateways tell it each other.
    pub(crate) fn of(news: Option<&NewsKind>) -> Self {
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

/// Tells all sockets and the other gateways.
pub(crate) struct Teller {
    sockets: broadcast::Sender<News>,
    gateways: broadcast::Sender<ServerUpdate>,
}

impl Default for Teller {
    fn default() -> Self {
        Self {
            sockets: broadcast::channel(RING).0,
            gateways: broadcast::channel(RING).0,
        }
    }
}

impl Teller {
    /// Tells the sockets of this gateway.
    pub(crate) fn tell(&self, news: News) {
        // Nobody listens: nobody is connected.
        let _ = self.sockets.send(news);
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<News> {
        self.sockets.subscribe()
    }

    /// Tells the other gateways.
    pub(crate) fn tell_gateways(&self, told: ServerUpdate) {
        // Nobody listens: there is no other one.
        let _ = self.gateways.send(told);
    }

    pub(crate) fn listen_for_gateways(&self) -> broadcast::Receiver<ServerUpdate> {
        self.gateways.subscribe()
    }
}
