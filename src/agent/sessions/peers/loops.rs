//! Runs the loops that exchange messages with the other gateways, until the registry stops.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;

use crate::agent::cluster::message::ClusterMessage;
use crate::agent::sessions::registry::SessionRegistry;
use crate::store::live::cluster_bus::News;

/// The pause between two heartbeats.
const BEAT_EVERY: Duration = Duration::from_millis(750);
/// The pause between two scans of all unfinished sessions; up to half of it is added, so that gateways do not
/// scan at the same time.
const SCAN_EVERY: Duration = Duration::from_secs(10);

/// Handles messages of the other gateways, until the registry stops.
pub(in crate::agent::sessions) async fn listen(inner: Weak<SessionRegistry>) {
    let Some(own) = inner
        .upgrade()
        .map(|inner| ClusterMessage::prefix_of(&inner.cluster.gateway))
    else {
        return;
    };
    while let Some(inner) = inner.upgrade() {
        let bus = Arc::clone(&inner.cluster.bus);
        let stop = inner.stop.clone();
        let news = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            news = bus.next() => news,
        };
        match news {
            News::Message { payload, .. } if payload.starts_with(&own) => {}
            News::Message { to, payload } => match serde_json::from_slice(&payload) {
                Ok(message) => inner.read(&to, message).await,
                Err(error) => {
                    // A newer release may send messages that this one does not know.
                    tracing::debug!(%error, "A message of another gateway cannot be read");
                }
            },
            News::Reconnected => {
                inner.factory.parts.servers.look_again();
                inner.look_at_all();
                inner.tell_answers();
            }
        }
    }
}

/// Tells the other gateways about changes of MCP servers and model providers here, until the registry stops.
pub(in crate::agent::sessions) async fn pass_news(inner: Weak<SessionRegistry>) {
    let Some(registry) = inner.upgrade() else {
        return;
    };
    let (mut news, stop) = (
        registry.factory.parts.servers.updates(),
        registry.stop.clone(),
    );
    let mut changes = registry.factory.parts.providers.changes();
    let cluster = Arc::clone(&registry.cluster);
    drop(registry);
    loop {
        let update = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            Ok(()) = changes.changed() => {
                let from = cluster.gateway.clone();
                cluster.broadcaster.tell_everybody(ClusterMessage::Providers { from });
                continue;
            }
            update = news.recv() => update,
        };
        match update {
            Ok(update) => {
                let from = cluster.gateway.clone();
                let message = ClusterMessage::Server { from, update };
                cluster.broadcaster.tell_everybody(message);
            }
            // The other gateways read the records again within seconds.
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}

/// Sends heartbeats and takes over the sessions of dead gateways, until the registry stops.
pub(in crate::agent::sessions) async fn beat(inner: Weak<SessionRegistry>) {
    let jitter = rand::random::<f64>();
    let scan_every = SCAN_EVERY.mul_f64(1.0 + jitter / 2.0);
    let mut ticks = tokio::time::interval(BEAT_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut scanned = tokio::time::Instant::now();
    while let Some(inner) = inner.upgrade() {
        tokio::select! {
            biased;
            () = inner.stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        match inner.hear_heartbeats().await {
            Ok(is_somebody_gone) => {
                if is_somebody_gone || scanned.elapsed() > scan_every {
                    scanned = tokio::time::Instant::now();
                    inner.go_on(is_somebody_gone).await;
                }
            }
            Err(error) => tracing::debug!(?error, "No heartbeat could be given"),
        }
    }
}
