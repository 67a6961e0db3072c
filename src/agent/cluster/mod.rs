//! The other gateways on the same store: who lives, what is told to them, and what is in use here.
//!
//! Everything that goes over the bus may be lost: the journal decides, and every reader finds out from
//! it, or by asking.

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

/// One gateway's part in the cluster.
pub(super) struct Cluster {
    pub(super) gateway: GatewayId,
    /// The line to the others.
    pub(super) bus: Arc<dyn ClusterBus>,
    pub(super) membership: Arc<Membership>,
    pub(super) broadcaster: Broadcaster,
    /// Tells people and other tools what is in use here.
    pub(super) presence: Arc<Presence>,
}

impl Cluster {
    /// Joins in: what is told goes out on `tasks` until `stop`.
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

    /// Whether there may be other gateways at all.
    pub(super) fn is_shared(&self) -> bool {
        self.bus.is_shared()
    }

    /// What the feed of a session tells the others.
    pub(super) fn feed_of(&self, key: &SessionKey) -> FeedBroadcaster {
        FeedBroadcaster::new(
            self.broadcaster.clone(),
            Arc::clone(&self.membership),
            key.clone(),
        )
    }
}
