//! Wake-ups between gateways on one store: who lives, and what just happened in a session.
//!
//! Nothing here is kept and everything may be lost: the journal decides. A gateway that missed a
//! message finds a gap in versions and reads it, or is told [`News::Reconnected`] and looks.

use std::collections::BTreeSet;

use async_trait::async_trait;
use bytes::Bytes;

use crate::domain::{EngineId, GatewayId, SandboxId, SessionKey};
use crate::store::Error;

/// Where a message goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Every gateway that follows the session.
    Session(SessionKey),
    /// One gateway.
    Gateway(GatewayId),
    /// All gateways.
    Everybody,
}

/// What comes in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// A message of any gateway, this one included.
    Message {
        /// Where it was sent.
        to: Address,
        payload: Bytes,
    },
    /// Messages may have been lost until now.
    Reconnected,
}

/// How a session is in use at a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionUse {
    /// This gateway runs what has to run.
    Owner(Site),
    /// Somebody watches it here.
    Guest,
    /// It was in use here until now.
    Left,
}

/// Where a session's tools run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Site {
    /// What keeps the workspace, and which it is, once it is settled.
    pub files: Option<(EngineId, SandboxId)>,
    /// The container that runs now, on engines that have names for them.
    pub container: Option<String>,
}

/// What is told of a session for people and other tools to read (S2.7). A hint and never the
/// truth: records and journal are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresenceSign {
    pub key: SessionKey,
    /// How it is in use.
    pub is_in: SessionUse,
}

/// One gateway's line to the others. The gateway lives from [`ClusterBus::join`] to [`ClusterBus::leave`],
/// or until some seconds after its last [`ClusterBus::beat`].
#[async_trait]
pub trait ClusterBus: Send + Sync {
    /// This gateway's own name; no other one has it.
    fn gateway(&self) -> &GatewayId;

    /// Whether there may be other gateways at all.
    fn is_shared(&self) -> bool;

    /// Joins the other gateways before the first heartbeat. Refused while others live that have
    /// other records or another secret key, each told by a name.
    async fn join(&self, records: &str, secret_key: &str) -> Result<(), Error>;

    /// Sends all, in order. What cannot be sent is lost; the others are told [`News::Reconnected`].
    async fn publish(&self, messages: Vec<(Address, Bytes)>);

    /// Whether others live. While they do not, nobody sends to sessions, and following one costs
    /// nothing. Once they do, messages to everything that is followed come in from some moment on,
    /// which [`News::Reconnected`] tells. To be said now and then.
    fn has_company(&self, has: bool);

    /// From the answer on, messages to the session come in, unless nobody else lives. Following twice
    /// is following once.
    async fn follow(&self, key: &SessionKey) -> Result<(), Error>;

    /// Messages to the session no longer come in, some time from now.
    fn unfollow(&self, key: &SessionKey);

    /// The next message; one task asks.
    async fn next(&self) -> News;

    /// A heartbeat. Every gateway that gave one lately, this one included.
    async fn beat(&self) -> Result<BTreeSet<GatewayId>, Error>;

    /// Shows to whoever looks which sessions are in use here, all in one trip; a session without a
    /// journal is passed over. Does nothing where this gateway is alone: nobody else may open its
    /// data folder, and there the table `sandboxes` says the same.
    async fn show(&self, signs: &[PresenceSign]) -> Result<(), Error>;

    /// The orderly end: the others know at once.
    async fn leave(&self);
}

/// The bus of the only gateway of its store: nobody listens, and every other gateway is over.
pub struct LocalBus {
    gateway: GatewayId,
}

impl LocalBus {
    /// A new gateway.
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

    async fn join(&self, _: &str, _: &str) -> Result<(), Error> {
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

/// The name of a gateway that begins.
pub fn new_gateway() -> GatewayId {
    format!("{:032x}", rand::random::<u128>()).into()
}
