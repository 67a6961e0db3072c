//! The fence of a call: directly before a call is sent, its gateway makes sure that it still runs the
//! session. A gateway that was cut off from the store may have been taken for dead, and what it was about to
//! begin is settled by then.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::SessionKey;
use crate::session::{Commit, CommitError};
use crate::store::{self, LiveStore};

/// How long a call waits for a store that does not answer. Nobody takes a session over later than this
/// without being heard of, and a person waits for the call.
const PATIENCE: Duration = Duration::from_secs(15);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(250);
/// Records that one read asks for.
const PAGE: usize = 500;

/// Whether this gateway still runs a session, by the journal.
pub(in crate::agent) struct Fence {
    store: Arc<dyn LiveStore>,
    key: SessionKey,
    /// Up to here the journal is known, and says that it does.
    version: u64,
}

/// Why a call must not be sent.
#[derive(Debug, thiserror::Error)]
pub(in crate::agent) enum Fenced {
    /// The call has an outcome already, or runs elsewhere.
    #[error("another gateway has gone on with the session")]
    TakenOver,
    /// Nobody knows whether that is so.
    #[error("the store does not tell whether another gateway has gone on with the session")]
    Unclear(#[source] store::Error),
    /// The journal is damaged.
    #[error("what was stored since the call was approved cannot be read")]
    Unreadable(#[from] CommitError),
}

impl Fence {
    pub(in crate::agent) fn new(
        (store, key): (Arc<dyn LiveStore>, SessionKey),
        version: u64,
    ) -> Self {
        Self {
            store,
            key,
            version,
        }
    }

    /// Whether a call may be sent now. While the store is away it waits: who cannot reach the store
    /// cannot tell the outcome either.
    pub(in crate::agent) async fn check(&self) -> Result<(), Fenced> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.look().await {
                Err(Fenced::Unclear(error)) if !error.is_damage() && Instant::now() < until => {
                    tracing::debug!(?error, "A call waits for the store");
                    tokio::time::sleep(PAUSE).await;
                }
                looked => return looked,
            }
        }
    }

    /// Whether nobody was handed the session since, and the journal still is what it was.
    async fn look(&self) -> Result<(), Fenced> {
        let head = self.store.version(&self.key).await;
        let head = head.map_err(Fenced::Unclear)?;
        if head < self.version {
            return Err(Fenced::TakenOver);
        }
        let mut read = self.version;
        while read < head {
            let records = self.store.read_after_version(&self.key, read, PAGE).await;
            let records = records.map_err(Fenced::Unclear)?;
            for record in &records {
                if Commit::from_bytes(&record.body)?.hands_over() {
                    return Err(Fenced::TakenOver);
                }
                read = record.version;
            }
            if records.is_empty() {
                return Err(Fenced::TakenOver);
            }
        }
        Ok(())
    }
}
