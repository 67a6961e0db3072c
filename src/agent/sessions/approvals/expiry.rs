//! Expires calls in sessions that are not in memory, which the session list names.
//!
//! A session in memory expires its own calls. This task opens the others, except those that another living
//! gateway runs, which does the same. If two gateways open a session all the same, the journal accepts only
//! one rejection.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::agent::sessions::registry::SessionRegistry;
use crate::store::Error;
use crate::store::clock::now;

/// The interval between looks without a reason: a session leaves memory after its calls were asked about, so
/// nothing is missed in between.
const EVERY: Duration = Duration::from_secs(10);
/// The pause between two looks: a woken session takes a moment, and one that cannot be read stays overdue.
const PAUSE: Duration = Duration::from_secs(1);

/// Starts the task.
pub(in crate::agent::sessions) fn start(registry: &Arc<SessionRegistry>) {
    let looking = expire_at_rest(Arc::downgrade(registry));
    registry.tasks.spawn(looking);
}

/// Wakes sessions whose calls expire, until the registry stops.
async fn expire_at_rest(registry: Weak<SessionRegistry>) {
    let mut wait = Duration::ZERO;
    while let Some(inner) = registry.upgrade() {
        let stop = inner.stop.clone();
        drop(inner);
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
        }
        let Some(inner) = registry.upgrade() else {
            return;
        };
        wait = look(&inner).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "Calls of sessions at rest expire later");
            EVERY
        });
    }
}

/// Wakes overdue sessions, and returns the time until the next one is due.
async fn look(registry: &Arc<SessionRegistry>) -> Result<Duration, Error> {
    let sessions = registry.factory.parts.place.records.sessions();
    for key in sessions.overdue(now()).await? {
        registry.review_one(&key).await;
    }
    let next = sessions.next_expiry().await?;
    let left = next.map_or(EVERY, |at| Duration::from_millis(at.since_ms(now())));
    Ok(left.clamp(PAUSE, EVERY))
}
