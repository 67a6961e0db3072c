//! The lives of gateways on one store, as owners of what an engine keeps for them.

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use tokio::time::sleep;

use crate::store::live::cluster_bus::{ClusterBus, LocalBus};

/// How long a life must have been silent. A store that was away has lost every sign of life, and
/// gateways need a moment to give new ones.
const SILENCE: Duration = Duration::from_secs(3);

/// This life, and the others on the same store.
#[derive(Clone)]
pub struct Peers(Arc<dyn ClusterBus>);

impl Peers {
    /// The gateways of that store.
    pub fn new(cluster_bus: Arc<dyn ClusterBus>) -> Self {
        Self(cluster_bus)
    }

    /// A new life without any other beside it.
    pub fn none() -> Self {
        Self(Arc::new(LocalBus::new()))
    }

    pub(super) fn own(&self) -> &str {
        self.0.life()
    }

    pub(super) fn is_shared(&self) -> bool {
        self.0.is_shared()
    }

    /// Whether that is another life that gave a sign lately. Where nobody can tell, it may be.
    pub(super) async fn others(&self) -> impl Fn(&str) -> bool + Send + use<> {
        let heard = self.0.beat().await;
        let own = self.own().to_owned();
        move |life| life != own && heard.as_ref().map_or(true, |heard| heard.contains(life))
    }

    /// Those of `lives` that are over: other ones that stay silent. Takes a moment if some are.
    pub(super) async fn over(&self, lives: BTreeSet<String>) -> BTreeSet<String> {
        let silent = self.silent(lives).await;
        if silent.is_empty() || !self.is_shared() {
            return silent;
        }
        sleep(SILENCE).await;
        self.silent(silent).await
    }

    /// Other lives that gave no sign; none of them while the store does not answer.
    async fn silent(&self, mut lives: BTreeSet<String>) -> BTreeSet<String> {
        match self.0.beat().await {
            Ok(heard) => {
                lives.retain(|life| life != self.own() && !heard.contains(life));
                lives
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
