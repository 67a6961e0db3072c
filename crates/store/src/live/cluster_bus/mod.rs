//! Passes messages between gateways that share one store: heartbeats, and what just happened in a session.
//!
//! The bus stores nothing and may lose any message; the journal is authoritative. A gateway that missed a
//! message finds a gap in the versions and reads the journal, or receives [`News::Reconnected`] and checks
//! the journal.

use std::collections::BTreeSet;

use async_trait::async_trait;
use bytes::Bytes;

use crate::Error;
use sepal_core::domain::{EngineId, GatewayId, SandboxId, SessionKey};

/// The recipient of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Every gateway that follows the session.
    Session(SessionKey),
    /// One gateway.
    Gateway(GatewayId),
    /// All gateways.
    Everybody,
}

/// An item that the bus delivers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// A message from any gateway, including this one.
    Message {
        /// The recipient that the sender named.
        to: Address,
        payload: Bytes,
    },
    /// Messages may have been lost before this point.
    Reconnected,
}

/// The role that a gateway has for a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionUse {
    /// The gateway runs the session's effects.
    Owner(Site),
    /// Someone watches the session on this gateway.
    Guest,
    /// The session is no longer in use on this gateway.
    Left,
}

/// The place where a session's tools run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Site {
    /// The engine that keeps the workspace, and the sandbox, once both are determined.
    pub files: Option<(EngineId, SandboxId)>,
    /// The running container, on engines that name containers.
    pub container: Option<String>,
}

/// The use of one session, published for people and other tools to read (S2.7). It is only a hint: records
/// and journal are authoritative.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresenceSign {
    pub key: SessionKey,
    /// The role of this gateway for the session.
    pub is_in: SessionUse,
}

/// The connection of one gateway to the others. The gateway counts as alive from [`ClusterBus::join`] to
/// [`ClusterBus::leave`], or until some seconds after its last [`ClusterBus::beat`].
#[async_trait]
pub trait ClusterBus: Send + Sync {
    /// The unique id of this gateway.
    fn gateway(&self) -> &GatewayId;

    /// Returns true if other gateways can exist.
    fn is_shared(&self) -> bool;

    /// Joins the other gateways before the first heartbeat. `records` identifies the records. Returns an error
    /// while other gateways are alive that have different ones.
    async fn join(&self, records: &str) -> Result<(), Error>;

    /// Sends all messages in order. A message that cannot be sent is lost; its recipients get
    /// [`News::Reconnected`].
    async fn publish(&self, messages: Vec<(Address, Bytes)>);

    /// Reports whether other gateways are alive; call it regularly. While none is, no gateway sends messages
    /// to sessions, and following one subscribes to nothing. When one appears, the bus subscribes to every
    /// followed session and then delivers [`News::Reconnected`].
    fn has_company(&self, has: bool);

    /// Follows a session: after this returns, its messages are delivered, unless no other gateway is alive.
    /// Following a session twice is the same as following it once.
    async fn follow(&self, key: &SessionKey) -> Result<(), Error>;

    /// Stops following a session. Messages may still be delivered for some time.
    fn unfollow(&self, key: &SessionKey);

    /// Waits for the next message. Only one task may call this.
    async fn next(&self) -> News;

    /// Sends a heartbeat and returns every gateway with a recent heartbeat, including this one.
    async fn beat(&self) -> Result<BTreeSet<GatewayId>, Error>;

    /// Publishes which sessions are in use on this gateway. Skips sessions without a journal. Does nothing
    /// on a [`LocalBus`]: there, no other gateway can open the data folder, and the table `sandboxes` holds
    /// the same facts.
    async fn show(&self, signs: &[PresenceSign]) -> Result<(), Error>;

    /// Leaves in an orderly way, so that the others know at once.
    async fn leave(&self);
}

/// The bus of the only gateway of a store. It sends nothing and regards every other gateway as gone.
pub struct LocalBus {
    gateway: GatewayId,
}

impl LocalBus {
    /// Creates the bus of a new gateway.
    pub fn new() -> Self {
        Self {
            gateway: new_gateway(),
        }
    }
}

impl Default for LocalBus {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl ClusterBus for LocalBus {
    fn gateway(&self) -> &GatewayId {
        &self.gateway
    }

    fn is_shared(&self) -> bool {
        false
    }

    async fn join(&self, _: &str) -> Result<(), Error> {
        Ok(())
    }

    async fn publish(&self, _: Vec<(Address, Bytes)>) {}

    fn has_company(&self, _: bool) {}

    async fn follow(&self, _: &SessionKey) -> Result<(), Error> {
        Ok(())
    }

    fn unfollow(&self, _: &SessionKey) {}

    async fn next(&self) -> News {
        std::future::pending().await
    }

    async fn beat(&self) -> Result<BTreeSet<GatewayId>, Error> {
        Ok(BTreeSet::from([self.gateway.clone()]))
    }

    async fn show(&self, _: &[PresenceSign]) -> Result<(), Error> {
        Ok(())
    }

    async fn leave(&self) {}
}

/// Generates the random id of a new gateway.
pub fn new_gateway() -> GatewayId {
    format!("{:032x}", rand::random::<u128>()).into()
}
