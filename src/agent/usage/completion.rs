//! Completes the usage rows of journals: of installations that had none, and of gateways that ended between a
//! commit and its rows.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::fold::UsageFold;
use crate::agent::audit::decisions::decision_rows;
use crate::agent::journal::JournalError;
use crate::agent::mailbox::store_away;
use crate::domain::SessionKey;
use crate::session::proof::{forms, records as records_of};
use crate::session::{Commit, Control, Refusal};
use crate::store::records::{UsageProgress, UsageRows};
use crate::store::{Error, LiveStore, Records};

/// Commits per read.
const PAGE: usize = 500;
/// The interval at which the list is searched for rows that are behind.
const EVERY: Duration = Duration::from_mins(10);
/// The interval at which every journal is compared, because a gateway may have ended before it updated the
/// list.
const COMPARE_EVERY: Duration = Duration::from_hours(6);

/// The stores that rows are read from and written to.
pub(in crate::agent) type Stores = (Arc<dyn LiveStore>, Records);

/// The reason the rows of a session stay incomplete.
#[derive(Debug, thiserror::Error)]
pub(in crate::agent) enum CompletionError {
    #[error(transparent)]
    Store(#[from] Error),
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl CompletionError {
    /// Returns true if the error is permanent until somebody repairs the stored data.
    pub(in crate::agent) fn is_damage(&self) -> bool {
        match self {
            Self::Store(error) => error.is_damage(),
            Self::Journal(error) => error.is_damage(),
        }
    }
}

/// Compares every journal at once and every six hours, and completes the rows that the list shows as behind
/// every ten minutes and at each notification, until `stop`.
pub(in crate::agent) async fn keep_complete(
    stores: Stores,
    bell: Arc<Notify>,
    stop: CancellationToken,
) {
    let keeping = async {
        let mut compared: Option<Instant> = None;
        // Sessions whose journals cannot be read: logged once, and not read again.
        let mut damaged = HashSet::new();
        loop {
            let is_due = compared.is_none_or(|at| at.elapsed() >= COMPARE_EVERY);
            match advance(&stores, is_due, &mut damaged).await {
                Ok(completed) => {
                    if completed > 0 {
                        tracing::info!(
                            sessions = completed,
                            "What sessions used was read from their journals"
                        );
                    }
                    if is_due {
                        compared = Some(Instant::now());
                    }
                }
                Err(error) => tracing::warn!(%error, "What sessions used stays incomplete for now"),
            }
            tokio::select! {
                () = bell.notified() => {}
                () = tokio::time::sleep(EVERY) => {}
            }
        }
    };
    // `None` = stopped.
    let _: Option<()> = stop.run_until_cancelled(keeping).await;
}

/// Completes the sessions that are behind, and returns their number. Pauses for half of the time, because
/// people's requests use the same store.
async fn advance(
    (live, records): &Stores,
    is_of_all: bool,
    damaged: &mut HashSet<SessionKey>,
) -> Result<usize, Error> {
    let mut completed = 0;
    let mut last = None;
    loop {
        let began = Instant::now();
        let page = if is_of_all {
            records.usage().all_progress(last.as_ref()).await?
        } else {
            records.usage().behind(last.as_ref()).await?
        };
        let Some(end) = page.last().map(|progress| progress.key.clone()) else {
            return Ok(completed);
        };
        for progress in page {
            if damaged.contains(&progress.key) {
                continue;
            }
            match complete_if_behind(live, records, &progress, true).await {
                Ok(was_behind) => completed += usize::from(was_behind),
                Err(CompletionError::Store(error)) if !error.is_damage() => return Err(error),
                Err(error) => {
                    tracing::warn!(session.id = %progress.key.session, %error, "What a damaged session used stays unknown");
                    damaged.insert(progress.key);
                }
            }
        }
        last = Some(end);
        tokio::time::sleep(began.elapsed()).await;
    }
}

/// Completes the rows of a session whose journal is about to be deleted, because its usage was paid for. A
/// damaged journal is skipped.
pub(in crate::agent) async fn complete_before_removal(
    live: &Arc<dyn LiveStore>,
    records: &Records,
    key: &SessionKey,
) -> Result<(), Refusal> {
    let completing = async {
        if let Some(progress) = records.usage().progress(key).await? {
            complete_if_behind(live, records, &progress, false).await?;
        }
        Ok::<(), CompletionError>(())
    };
    let Err(error) = completing.await else {
        return Ok(());
    };
    tracing::warn!(session.id = %key.session, %error, "What a session used cannot be completed");
    if error.is_damage() {
        return Ok(());
    }
    Err(store_away())
}

/// Returns true if there was something to complete.
async fn complete_if_behind(
    live: &Arc<dyn LiveStore>,
    records: &Records,
    progress: &UsageProgress,
    is_in_background: bool,
) -> Result<bool, CompletionError> {
    let is_behind = live.version(&progress.key).await? > progress.version;
    if is_behind {
        complete(live, records, progress, is_in_background).await?;
    }
    Ok(is_behind)
}

/// Reads the journal from its beginning, because rows depend on earlier commits. Existing rows stay.
async fn complete(
    live: &Arc<dyn LiveStore>,
    records: &Records,
    progress: &UsageProgress,
    is_in_background: bool,
) -> Result<(), CompletionError> {
    let key = &progress.key;
    let mut fold = UsageFold::default();
    let mut control = Control::default();
    let mut version = 0;
    loop {
        let began = Instant::now();
        let page = live.read_after_version(key, version, PAGE).await?;
        let Some(end) = page.last().map(|record| record.version) else {
            return Ok(());
        };
        let mut rows = UsageRows::default();
        for record in &page {
            let commit = Commit::from_bytes(&record.body).map_err(JournalError::from)?;
            let used = fold.apply(&commit);
            if commit.version > progress.version {
                rows.append(used);
                let decided = forms(&records_of(&control, &commit));
                rows.decisions
                    .extend(decision_rows(&control, &commit, decided));
            }
            control.apply(&commit);
        }
        version = end;
        records.usage().add(key, &rows, version).await?;
        if is_in_background {
            tokio::time::sleep(began.elapsed()).await;
        }
    }
}
