//! Fences calls: directly before a call is sent, its gateway makes sure that it still runs the session. A
//! gateway that was cut off from the store may have been declared dead, and another one has then settled its
//! calls.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::SessionKey;
use crate::session::{Commit, CommitError};
use crate::store::{self, LiveStore};

/// The time for which a call waits for a store that does not answer. A takeover becomes known within this
/// time, and a person waits for the call.
const PATIENCE: Duration = Duration::from_secs(15);
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(250);
/// The most records per read.
const PAGE: usize = 500;

/// Checks against the journal that this gateway still runs a session.
pub(in crate::agent) struct Fence {
    store: Arc<dyn LiveStore>,
    key: SessionKey,
    /// The version up to which the journal is known to say so.
    version: u64,
}

/// The reason a call must not be sent.
#[derive(Debug, thiserror::Error)]
pub(in crate::agent) enum FenceError {
    /// The call already has an outcome, or runs elsewhere.
    #[error("another gateway has gone on with the session")]
    TakenOver,
    /// The store does not say whether another gateway took over.
    #[error("the store does not tell whether another gateway has gone on with the session")]
    Unclear(#[source] store::Error),
    /// The journal is damaged.
    #[error("what was stored since the call was approved cannot be read")]
    Unreadable(#[from] CommitError),
}

impl Fence {
    pub(in crate::agent) fn new(store: Arc<dyn LiveStore>, key: SessionKey, version: u64) -> Self {
        Self {
            store,
            key,
            version,
        }
    }

    /// Succeeds if a call may be sent now. Waits while the store is away: without it the outcome could not be
    /// stored either.
    pub(in crate::agent) async fn check(&self) -> Result<(), FenceError> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.check_once().await {
                Err(FenceError::Unclear(error)) if !error.is_damage() && Instant::now() < until => {
                    tracing::debug!(?error, "A call waits for the store");
                    tokio::time::sleep(PAUSE).await;
                }
                checked => return checked,
            }
        }
    }

    /// Succeeds if no commit since then hands the session over, and the journal has not shrunk.
    async fn check_once(&self) -> Result<(), FenceError> {
        let head = self.store.version(&self.key).await;
        let head = head.map_err(FenceError::Unclear)?;
        if head < self.version {
            return Err(FenceError::TakenOver);
        }
        let mut read = self.version;
        while read < head {
            let records = self.store.read_after_version(&self.key, read, PAGE).await;
            let records = records.map_err(FenceError::Unclear)?;
            for record in &records {
                if Commit::from_bytes(&record.body)?.hands_over() {
                    return Err(FenceError::TakenOver);
                }
                read = record.version;
            }
            if records.is_empty() {
                return Err(FenceError::TakenOver);
            }
        }
        Ok(())
    }
}
