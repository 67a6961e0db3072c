//! Tells which gateways on the same store live, as owners of their objects in an engine.

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use tokio::time::sleep;

use sepal_core::domain::GatewayId;
use sepal_store::live::cluster_bus::{ClusterBus, LocalBus};

/// The time that a gateway must have been silent. A store that was unavailable has lost every heartbeat, and
/// gateways need a moment to send new ones.
const SILENCE: Duration = Duration::from_secs(3);

/// This gateway, and the others on the same store.
#[derive(Clone)]
pub struct Peers(Arc<dyn ClusterBus>);

impl Peers {
    /// Creates the peers on this bus.
    pub fn new(cluster_bus: Arc<dyn ClusterBus>) -> Self {
        Self(cluster_bus)
    }

    /// Creates a gateway without peers.
    pub fn none() -> Self {
        Self(Arc::new(LocalBus::new()))
    }

    pub(super) fn own(&self) -> &GatewayId {
        self.0.gateway()
    }

    pub(super) fn is_shared(&self) -> bool {
        self.0.is_shared()
    }

    /// Returns a function that is true for other gateways with a recent heartbeat, and for all others if the
    /// heartbeats cannot be read.
    pub(super) async fn others(&self) -> impl Fn(&GatewayId) -> bool + Send + use<> {
        let heard = self.0.beat().await;
        let own = self.own().clone();
        move |gateway| {
            *gateway != own && heard.as_ref().map_or(true, |heard| heard.contains(gateway))
        }
    }

    /// Returns those of `gateways` that are dead: other gateways that stay silent. Takes [`SILENCE`] if some
    /// are silent.
    pub(super) async fn over(&self, gateways: BTreeSet<GatewayId>) -> BTreeSet<GatewayId> {
        let silent = self.silent(gateways).await;
        if silent.is_empty() || !self.is_shared() {
            return silent;
        }
        sleep(SILENCE).await;
        self.silent(silent).await
    }

    /// Returns the other gateways without a heartbeat; none of them while the store does not answer.
    async fn silent(&self, mut gateways: BTreeSet<GatewayId>) -> BTreeSet<GatewayId> {
        match self.0.beat().await {
            Ok(heard) => {
                gateways.retain(|gateway| gateway != self.own() && !heard.contains(gateway));
                gateways
            }
            Err(error) => {
                tracing::debug!(?error, "It is not known which gateways live");
                BTreeSet::new()
            }
        }
    }
}

impl fmt::Debug for Peers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Peers").field(&self.own()).finish()
    }
}
