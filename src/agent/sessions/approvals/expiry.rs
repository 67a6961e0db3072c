//! Calls expire in sessions that are at rest, too: the list says which.
//!
//! A session in memory rejects what nobody decided in time by itself. This looks at the others, and only
//! opens those that no other living gateway runs: that one looks for itself. Should two open the same
//! session all the same, the journal takes one rejection.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::agent::sessions::registry::SessionRegistry;
use crate::store::Error;
use crate::store::clock::now;

/// How often is looked without a reason: a session comes to rest later than a call of it is asked for, so
/// nothing is missed in between.
const EVERY: Duration = Duration::from_secs(10);
/// Between two looks: what was woken takes a moment, and what cannot be read stays overdue.
const PAUSE: Duration = Duration::from_secs(1);

/// Begins to look.
pub(in crate::agent::sessions) fn start(registry: &Arc<SessionRegistry>) {
    let looking = expire_at_rest(Arc::downgrade(registry));
    registry.tasks.spawn(looking);
}

/// Wakes sessions in which calls expire, until the registry stops.
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

/// Wakes what is overdue; how long nothing else will be.
async fn look(registry: &Arc<SessionRegistry>) -> Result<Duration, Error> {
    let sessions = registry.factory.place.records.sessions();
    for key in sessions.overdue(now()).await? {
        registry.review_one(&key).await;
    }
    let next = sessions.next_expiry().await?;
    let left = next.map_or(EVERY, |at| Duration::from_millis(at.since_ms(now())));
    Ok(left.clamp(PAUSE, EVERY))
}
