//! Removes sessions from the list whose journals expired by the operator's setting.
//!
//! Redis expires a journal without telling anybody. The rest of such a session, its workspace, goes with the
//! row: the sandbox's janitor removes workspaces without a listed session.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::domain::Timestamp;
use crate::store::clock;
use crate::store::{Error, LiveStore, Records};

/// The interval of checks.
const EVERY: Duration = Duration::from_mins(10);

/// Removes rows of sessions that have been at rest for longer than `after` and have no journal: at once, and
/// again every ten minutes, until `stop`. If the store is away, the next check tries again.
pub async fn remove_expired_rows(
    live: Arc<dyn LiveStore>,
    records: Records,
    after: Duration,
    stop: CancellationToken,
) {
    let advancing = async {
        let mut ticks = tokio::time::interval(EVERY);
        loop {
            ticks.tick().await;
            match advance(&*live, &records, after).await {
                Ok(0) => {}
                Ok(removed) => {
                    tracing::info!(removed, "Sessions were forgotten by HISTORY_TTL_SECONDS");
                }
                Err(error) => tracing::warn!(%error, "Forgotten sessions stay on the list"),
            }
        }
    };
    // `None` = stopped.
    let _: Option<()> = stop.run_until_cancelled(advancing).await;
}

/// Removes rows without a journal, and returns their number.
async fn advance(live: &dyn LiveStore, records: &Records, after: Duration) -> Result<usize, Error> {
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
