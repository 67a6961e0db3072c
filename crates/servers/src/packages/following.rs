//! Keeps the record of a running installation: its phases, its last log lines and its end. Pages are notified
//! of each phase.

use std::time::Duration;

use tokio::time::Instant;

use crate::connections::opening::Failure;
use crate::news::{Change, NewsKind};
use crate::registry::Servers;
use sepal_core::domain::{
    InstallPhase, InstallProblem, InstallState, Installation, InstalledPackage,
};
use sepal_store as store;
use sepal_store::clock::now;
use sepal_store::records::InstallationRow;

/// The number of log lines that are kept.
const MAX_LINES: usize = 50;
/// The most characters of a line.
const MAX_LINE: usize = 500;
/// The least time between two writes of log lines.
const PACE: Duration = Duration::from_secs(1);

/// The reason why an installation stops.
#[derive(Debug, thiserror::Error)]
pub(super) enum Halt {
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Somebody stopped it, asked for another package, or took its lease.
    #[error("it is not wanted any more")]
    Overtaken,
}

/// The record of an installation, which this gateway owns while it holds the lease.
pub(super) struct Record {
    servers: Servers,
    row: InstallationRow,
    began: Instant,
    written: Instant,
    /// True if there are lines that were not stored yet.
    is_behind: bool,
}

impl Record {
    pub(super) fn new(servers: Servers, row: InstallationRow) -> Self {
        Self {
            servers,
            row,
            began: Instant::now(),
            written: Instant::now(),
            is_behind: false,
        }
    }

    /// The current state.
    pub(super) fn installation(&self) -> &Installation {
        &self.row.installation
    }

    /// Resets phases, log, problem and candidate for a new run.
    pub(super) fn clear(&mut self) {
        let installation = &mut self.row.installation;
        installation.phases.clear();
        installation.log.clear();
        installation.problem = None;
        installation.candidate = None;
    }

    /// Begins a phase and stores it.
    pub(super) async fn phase(&mut self, state: InstallState) -> Result<(), Halt> {
        let last = self.row.installation.phases.last();
        if last.is_some_and(|phase| phase.name == state && phase.ms.is_none()) {
            // The gateway has begun this phase, and the installer continues it.
            return Ok(());
        }
        self.end_phase(None);
        self.row.installation.state = state;
        self.row.installation.phases.push(InstallPhase {
            name: state,
            began_at: now(),
            ms: None,
            error: None,
        });
        self.save().await
    }

    /// Adds a line of the installer's output.
    pub(super) async fn line(&mut self, line: &str) -> Result<(), Halt> {
        push(&mut self.row.installation.log, line);
        if self.written.elapsed() >= PACE {
            return self.save().await;
        }
        self.is_behind = true;
        Ok(())
    }

    /// Records a failure. Sessions go on using the version that was installed before.
    pub(super) async fn fail(&mut self, problem: InstallProblem, text: String) -> Result<(), Halt> {
        self.end_phase(Some(text));
        let installation = &mut self.row.installation;
        installation.problem = Some(problem);
        installation.state = match installation.installed {
            Some(_) => InstallState::Ready,
            None => InstallState::Failed,
        };
        installation.is_update = false;
        self.save().await
    }

    /// Records a finished installation: sessions may use it, or an admin may review it if it is an update.
    pub(super) async fn installed(
        &mut self,
        package: InstalledPackage,
        pins: &str,
    ) -> Result<(), Halt> {
        self.end_phase(None);
        let (scope, server) = (&self.row.scope, &self.row.server);
        let records = self.servers.0.records.packages();
        let (before, _) = records.pins(scope, server).await?;
        let installation = &mut self.row.installation;
        let (pins, next) = if installation.is_update {
            installation.candidate = Some(package);
            (before, Some(pins))
        } else {
            installation.installed = Some(package);
            (Some(pins.to_owned()), None)
        };
        let saved = records.save_pins(&self.row, pins.as_deref(), next).await?;
        self.take(saved).await
    }

    /// Records that there is no newer version than the one in use.
    pub(super) async fn is_newest(&mut self) -> Result<(), Halt> {
        self.row.installation.candidate = None;
        self.ready(None).await
    }

    /// Ends the installation; `listing` is the failure if its tools could not be listed.
    pub(super) async fn ready(&mut self, listing: Option<Failure>) -> Result<(), Halt> {
        let installation = &mut self.row.installation;
        if let Some(failure) = &listing {
            let tried = installation.candidate.as_ref();
            let tried = tried.or(installation.installed.as_ref());
            let lacks_scripts = tried.is_some_and(|package| !package.skipped_scripts.is_empty());
            installation.problem = Some(if lacks_scripts {
                InstallProblem::NeedsScript
            } else {
                InstallProblem::DoesNotStart
            });
            for line in &failure.stderr {
                push(&mut installation.log, line);
            }
        }
        self.end_phase(listing.map(|failure| failure.text));
        self.row.installation.state = InstallState::Ready;
        self.row.installation.is_update = false;
        self.save().await
    }

    fn end_phase(&mut self, error: Option<String>) {
        let ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.began = Instant::now();
        let last = self.row.installation.phases.last_mut();
        if let Some(phase) = last.filter(|phase| phase.ms.is_none()) {
            phase.ms = Some(ms);
            phase.error = error;
        }
    }

    /// Stores the log lines that are not stored yet.
    pub(super) async fn flush(&mut self) -> Result<(), Halt> {
        if self.is_behind {
            return self.save().await;
        }
        Ok(())
    }

    async fn save(&mut self) -> Result<(), Halt> {
        let saved = self.servers.0.records.packages().save(&self.row).await?;
        self.take(saved).await
    }

    async fn take(&mut self, saved: Option<InstallationRow>) -> Result<(), Halt> {
        let before = self
            .servers
            .0
            .installations
            .of(&self.row.scope, &self.row.server);
        self.row = saved.ok_or(Halt::Overtaken)?;
        self.written = Instant::now();
        self.is_behind = false;
        self.servers.0.installations.refresh().await?;
        let state = self.row.installation.state;
        if before.is_none_or(|before| before.installation.state != state) {
            announce(&self.servers, &self.row);
        }
        Ok(())
    }
}

/// Appends a line, and drops the oldest at the limit.
fn push(log: &mut Vec<String>, line: &str) {
    if log.len() >= MAX_LINES {
        log.remove(0);
    }
    log.push(line.chars().take(MAX_LINE).collect());
}

/// Notifies pages and other gateways of the installation's state.
pub(super) fn announce(servers: &Servers, row: &InstallationRow) {
    let tenant = match &row.scope {
        sepal_core::domain::Scope::Installation => None,
        sepal_core::domain::Scope::Tenant(tenant) => Some(tenant),
    };
    let state = row.installation.state;
    servers.publish(tenant, &row.server, NewsKind::Installation(state));
    servers.pass_on(tenant, &row.server, Change::Installation(state));
}
