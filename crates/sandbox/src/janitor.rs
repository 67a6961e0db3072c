//! Removes sandboxes and workspaces that belong to no session, once a minute.
//!
//! A session's row in `sandboxes` is written before its workspace is created. So a workspace without a row
//! has no session, with two exceptions: it is older than the rows (then the journal of a session without a
//! row names it, and the row is written now), or it is in use without a session, such as for the trial of a
//! server (hence the grace period). Workspaces of existing sessions are never touched, and while the store is
//! unavailable nothing is.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use tokio::{sync::Mutex, time::Instant};
use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};
use tracing::{info, warn};

use super::{Error, Runtime};
use sepal_core::domain::{SandboxId, SessionKey};
use sepal_core::session::{Commit, Event};
use sepal_store::live::cluster_bus::ClusterBus;
use sepal_store::records::SandboxRow;
use sepal_store::{self as store, LiveStore, Records};

/// The interval between rounds.
const EVERY: Duration = Duration::from_mins(1);
/// The time that a workspace must have been without a session.
const GRACE: Duration = Duration::from_mins(10);

/// Removes what belongs to no session. Stop it before the store is closed.
pub struct Janitor {
    scheduler: JobScheduler,
}

/// The reason that a round failed.
#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Sandbox(#[from] Error),
}

impl Janitor {
    /// Runs a first round at once, and then one every minute. `cluster_bus` tells whether there may be other
    /// gateways.
    pub async fn start(
        runtime: Arc<dyn Runtime>,
        records: Records,
        live: Arc<dyn LiveStore>,
        cluster_bus: Arc<dyn ClusterBus>,
    ) -> Result<Self, JobSchedulerError> {
        // Existing workspaces are of an earlier process and cannot be in use without a session. If there are
        // other gateways, one of them might use them, so they wait for the grace period too.
        let inherited = if cluster_bus.is_shared() {
            Vec::new()
        } else {
            runtime.workspaces().await.unwrap_or_default()
        };
        let round = Arc::new(Mutex::new(Round {
            runtime,
            records,
            live,
            inherited: inherited.into_iter().collect(),
            seen: BTreeMap::new(),
        }));
        let scheduler = JobScheduler::new().await?;
        let sweeping = move |_, _| {
            let round = Arc::clone(&round);
            Box::pin(async move {
                // A slow round is not overtaken by the next one.
                if let Ok(mut round) = round.try_lock() {
                    round.sweep().await;
                }
            }) as std::pin::Pin<Box<dyn Future<Output = ()> + Send>>
        };
        let first = Job::new_one_shot_async(Duration::ZERO, sweeping.clone())?;
        scheduler.add(first).await?;
        scheduler
            .add(Job::new_repeated_async(EVERY, sweeping)?)
            .await?;
        scheduler.start().await?;
        Ok(Self { scheduler })
    }

    /// Ends the rounds.
    pub async fn stop(mut self) {
        if let Err(error) = self.scheduler.shutdown().await {
            tracing::debug!(%error, "The janitor did not stop in order");
        }
    }
}

fn log(what: &str, removed: Result<usize, Problem>) {
    match removed {
        Ok(0) => {}
        Ok(removed) => info!(removed, "The janitor removed {what}"),
        Err(error) => warn!(?error, "The janitor cannot look for {what}: {error}"),
    }
}

struct Round {
    runtime: Arc<dyn Runtime>,
    records: Records,
    live: Arc<dyn LiveStore>,
    /// Workspaces of an earlier process that were not checked yet.
    inherited: BTreeSet<SandboxId>,
    /// When a workspace was first seen without a session.
    seen: BTreeMap<SandboxId, Instant>,
}

impl Round {
    async fn sweep(&mut self) {
        let ended = self.runtime.tidy().await.map_err(Problem::from);
        log("sandboxes without an owner", ended);
        let removed = self.workspaces().await;
        log("workspaces without a session", removed);
    }

    /// Removes workspaces without a session, and returns their number.
    async fn workspaces(&mut self) -> Result<usize, Problem> {
        // In this order: the row of a found workspace was written before it was created.
        let found: BTreeSet<_> = self.runtime.workspaces().await?.into_iter().collect();
        let claims = self.records.sandboxes().all().await?;
        let mut removed = 0;
        for claim in claims.iter().filter(|claim| !claim.is_listed) {
            removed += usize::from(self.remove_if_dead(&claim.row).await?);
        }
        let installed = self.records.packages().volumes().await?;
        let mut claimed: BTreeSet<_> = claims.iter().map(|claim| &claim.row.sandbox).collect();
        claimed.extend(installed.iter().map(|volume| &volume.sandbox));
        let nobodys = found.iter().filter(|sandbox| !claimed.contains(sandbox));
        let mut due = self.due(nobodys.cloned().collect());
        if !due.is_empty() {
            self.adopt(&mut due).await?;
        }
        for sandbox in due {
            // A workspace that is still in use does not stop the removal of the others.
            if let Err(error) = self.runtime.remove_workspace(&sandbox).await {
                warn!(sandbox.id = %sandbox, ?error, "The janitor leaves a workspace to its next round: {error}");
                continue;
            }
            self.inherited.remove(&sandbox);
            removed += 1;
        }
        Ok(removed)
    }

    /// Returns the workspaces that have been without a session for long enough.
    fn due(&mut self, nobodys: BTreeSet<SandboxId>) -> BTreeSet<SandboxId> {
        self.seen.retain(|sandbox, _| nobodys.contains(sandbox));
        let now = Instant::now();
        let (seen, inherited) = (&mut self.seen, &self.inherited);
        let is_due = |sandbox: &SandboxId| {
            let since = *seen.entry(sandbox.clone()).or_insert(now);
            inherited.contains(sandbox) || now.duration_since(since) >= GRACE
        };
        nobodys.into_iter().filter(is_due).collect()
    }

    /// Removes the workspace and the row of a session whose journal is gone.
    async fn remove_if_dead(&self, row: &SandboxRow) -> Result<bool, Problem> {
        if self.live.head(&row.key).await?.is_some() || row.engine != self.runtime.engine() {
            return Ok(false);
        }
        self.runtime.remove_workspace(&row.sandbox).await?;
        self.records.sandboxes().forget(&row.key).await?;
        Ok(true)
    }

    /// Removes the workspaces that a session's journal names from `due`, and writes their missing rows.
    async fn adopt(&self, due: &mut BTreeSet<SandboxId>) -> Result<(), Problem> {
        for key in self.records.sandboxes().sessions_without().await? {
            let Some(sandbox) = self.first_sandbox(&key).await? else {
                continue;
            };
            if due.remove(&sandbox) {
                let engine = self.runtime.engine();
                let row = SandboxRow {
                    key,
                    sandbox,
                    engine,
                };
                self.records.sandboxes().claim(row).await?;
            }
        }
        Ok(())
    }

    /// Returns the sandbox that the session began with.
    async fn first_sandbox(&self, key: &SessionKey) -> Result<Option<SandboxId>, Problem> {
        let records = self.live.read_after_version(key, 0, 1).await?;
        let commit = records
            .first()
            .and_then(|record| Commit::from_bytes(&record.body).ok());
        let events = commit.map(|commit| commit.events).unwrap_or_default();
        let found = events.into_iter().find_map(|event| {
            if let Event::Created { sandbox, .. } = event {
                return Some(sandbox);
            }
            None
        });
        Ok(found)
    }
}
