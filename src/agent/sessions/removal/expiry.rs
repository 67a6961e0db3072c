//! Takes sessions off the list whose journals are over by the operator's setting.
//!
//! Redis forgets a journal by itself; nobody is told. What else such a session had, its workspace,
//! goes with the row: the sandbox's janitor removes what no listed session has.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::domain::Timestamp;
use crate::store::clock;
use crate::store::{Error, LiveStore, Records};

/// How often it looks.
const EVERY: Duration = Duration::from_mins(10);

/// Looks at once, and again every ten minutes, until `stop`: at what has rested for longer than
/// `after`. A store that is away is asked again the next time.
pub async fn remove_expired_rows(
    (live, records): (Arc<dyn LiveStore>, Records),
    after: Duration,
    stop: CancellationToken,
) {
    let looking = async {
        let mut ticks = tokio::time::interval(EVERY);
        loop {
            ticks.tick().await;
            match look(&*live, &records, after).await {
                Ok(0) => {}
                Ok(removed) => {
                    tracing::info!(removed, "Sessions were forgotten by HISTORY_TTL_SECONDS");
                }
                Err(error) => tracing::warn!(%error, "Forgotten sessions stay on the list"),
            }
        }
    };
    // `None` is the stop.
    let _: Option<()> = stop.run_until_cancelled(looking).await;
}

/// How many were taken off.
async fn look(live: &dyn LiveStore, records: &Records, after: Duration) -> Result<usize, Error> {
    let after = i64::try_from(after.as_millis()).unwrap_or(i64::MAX);
    let before = Timestamp(clock::now().0.saturating_sub(after));
    let mut removed = 0;
    let mut last = None;
    loop {
        let page = records.sessions().at_rest(before, last.as_ref()).await?;
        let Some(end) = page.last().cloned() else {
            return Ok(removed);
        };
        for key in page {
            if live.head(&key).await?.is_none() {
                removed += usize::from(records.sessions().delete(&key).await?);
            }
        }
        last = Some(end);
    }
}
