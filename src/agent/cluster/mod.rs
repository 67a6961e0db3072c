//! Talks to the other gateways on the same store: tracks which of them live, sends them updates, and
//! publishes which sessions are in use here.
//!
//! Every message on the bus may be lost: the journal decides, and every reader finds out from it, or by
//! asking.

pub(super) mod broadcaster;
pub(super) mod list_broadcast;
pub(super) mod membership;
pub(super) mod message;
pub(super) mod presence;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::broadcaster::{Broadcaster, FeedBroadcaster};
use self::membership::Membership;
use self::presence::Presence;
use crate::domain::{GatewayId, SessionKey};
use crate::store::live::cluster_bus::ClusterBus;

/// This gateway's part in the cluster.
pub(super) struct Cluster {
    pub(super) gateway: GatewayId,
    /// The bus to the other gateways.
    pub(super) bus: Arc<dyn ClusterBus>,
    pub(super) membership: Arc<Membership>,
    pub(super) broadcaster: Broadcaster,
    /// Publishes which sessions are in use here.
    pub(super) presence: Arc<Presence>,
}

impl Cluster {
    /// Joins the cluster. Its tasks run on `tasks` until `stop`.
    pub(super) fn start(
        bus: Arc<dyn ClusterBus>,
        tasks: &TaskTracker,
        stop: &CancellationToken,
    ) -> Self {
        let (broadcaster, telling) = Broadcaster::start(Arc::clone(&bus), stop.clone());
        tasks.spawn(telling);
        let presence = Arc::new(Presence::new(Arc::clone(&bus)));
        if bus.is_shared() {
            tasks.spawn(Arc::clone(&presence).run(stop.clone()));
        }
        Self {
            gateway: bus.gateway().clone(),
            membership: Arc::new(Membership::new(Arc::clone(&bus))),
            bus,
            broadcaster,
            presence,
        }
    }

    /// Returns true if there may be other gateways.
    pub(super) fn is_shared(&self) -> bool {
        self.bus.is_shared()
    }

    /// The outlet that forwards a session's feed to the other gateways.
    pub(super) fn feed_of(&self, key: &SessionKey) -> FeedBroadcaster {
        FeedBroadcaster::new(
            self.broadcaster.clone(),
            Arc::clone(&self.membership),
            key.clone(),
        )
    }
}
