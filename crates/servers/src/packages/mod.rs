//! Installs the packages of MCP servers: once, in a sandbox of their own with access to the registry alone;
//! servers then start without that access.
//!
//! The records hold what has to be installed and its state, so that all gateways know; a lease decides which
//! gateway installs. An installed package is the workspace of a sandbox: its row is created before the
//! workspace, and it is used once the row has the hash of the content.

pub(super) mod administration;
mod following;
mod installing;
mod job;
mod order;
mod progress;
mod reason;
mod resolving;
mod tidying;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::job::{Job, Kind};
use self::resolving::Resolved;
use super::bundles;
use super::catalogue::entry::ServerEntry;
use super::catalogue::installations::{ServerKey, Unavailable};
use super::health::probe_limits::ProbeLimits;
use super::registry::Servers;
use sepal_core::domain::{Installation, PackageSpec};
use sepal_mcp::config::package_of;
use sepal_store as store;
use sepal_store::clock::now;

/// The interval at which unfinished installations are checked, which another gateway may have left.
const BUSY_PAUSE: Duration = Duration::from_secs(5);
/// The interval at which packages are checked while no installation is unfinished.
const CALM_PAUSE: Duration = Duration::from_mins(1);
/// The pause between the end of an attempt to copy a package and the next attempt.
const RETRY: Duration = Duration::from_mins(5);

/// The installations that this gateway runs now, and when it last copied packages.
#[derive(Default)]
struct Running(Mutex<Jobs>);

#[derive(Default)]
struct Jobs {
    running: HashSet<ServerKey>,
    /// When the last attempt to copy another gateway's package ended here.
    copied: HashMap<ServerKey, Instant>,
}

impl Running {
    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins an installation; returns false if one already runs for that server, or if the last attempt to
    /// copy its package ended a short while ago.
    fn begin(&self, key: &ServerKey, kind: Kind) -> bool {
        let mut jobs = self.jobs();
        let copied = jobs.copied.get(key).filter(|_| kind == Kind::Copy);
        if copied.is_some_and(|ended| ended.elapsed() < RETRY) {
            return false;
        }
        jobs.running.insert(key.clone())
    }

    fn end(&self, key: &ServerKey, kind: Kind) {
        let mut jobs = self.jobs();
        jobs.running.remove(key);
        if kind == Kind::Copy {
            jobs.copied.insert(key.clone(), Instant::now());
        }
    }

    /// Forgets the attempts to copy a package that is there now, so that a lost one is copied again at once.
    fn forget_copy(&self, key: &ServerKey) {
        self.jobs().copied.remove(key);
    }

    fn has(&self, key: &ServerKey) -> bool {
        self.jobs().running.contains(key)
    }
}

/// Runs installations and removes unused ones, until `stop`.
pub(super) async fn run(servers: Servers, tasks: TaskTracker, stop: CancellationToken) {
    let round = Round {
        servers,
        tasks,
        stop: stop.clone(),
        running: Arc::default(),
        // A random id, so that leases belong to this process alone.
        gateway: format!("{:016x}", rand::random::<u64>()),
        turns: Arc::default(),
    };
    loop {
        let pause = match round.advance().await {
            Ok(true) => BUSY_PAUSE,
            Ok(false) => CALM_PAUSE,
            Err(error) => {
                tracing::warn!(?error, "The packages of MCP servers cannot be looked at");
                BUSY_PAUSE
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = round.servers.0.installations.bell.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Waits until the packages of the installation's own servers can be started here or have failed. Calls
/// `tell` with the name and a description of the state of each (`None` if it can be started), at each change.
/// Returns at once if this installation installs no packages.
pub async fn packages_settled(servers: &Servers, mut tell: impl FnMut(&str, Option<String>)) {
    let place = &servers.0.place;
    if !place.packages.is_on || !place.is_on() {
        return;
    }
    let entries = servers.installation_entries(&servers.0.file.state());
    let enabled = entries.into_iter().filter(|entry| entry.config.enabled);
    let installed = enabled.filter_map(|entry| {
        let command = package_of(&entry.config).ok().flatten()?;
        Some((entry, command.spec))
    });
    let installed: Vec<_> = installed.collect();
    let words = |why: &Unavailable| match why {
        Unavailable::Installing(state) => format!("its package is installed ({})", state.as_str()),
        Unavailable::Failed { .. }
        | Unavailable::Replaced
        | Unavailable::NotHere(_)
        | Unavailable::Trial
        | Unavailable::Off => why.to_string(),
    };
    let tell = |name: &str, why: Option<&Unavailable>| tell(name, why.map(words));
    servers.0.installations.settled(&installed, tell).await;
}

struct Round {
    servers: Servers,
    tasks: TaskTracker,
    stop: CancellationToken,
    running: Arc<Running>,
    gateway: String,
    turns: Arc<ProbeLimits>,
}

impl Round {
    /// Brings installations in line with the entries; returns true if some installation is unfinished.
    async fn advance(&self) -> Result<bool, store::Error> {
        let place = &self.servers.0.place;
        if !place.packages.is_on || !place.is_on() {
            return Ok(false);
        }
        let mut is_open = false;
        for entry in self.servers.all_entries().await? {
            if !entry.config.enabled {
                continue;
            }
            if let Ok(Some(command)) = package_of(&entry.config) {
                is_open |= self.advance_entry(&entry, &command.spec).await?;
            }
        }
        tidying::tidy(&self.servers, &self.gateway, |key| self.running.has(key)).await?;
        bundles::tidy(&self.servers).await?;
        Ok(is_open)
    }

    async fn advance_entry(
        &self,
        entry: &ServerEntry,
        spec: &PackageSpec,
    ) -> Result<bool, store::Error> {
        let installations = Arc::clone(&self.servers.0.installations);
        let row = installations.of(&entry.scope, &entry.name);
        let row = if let Some(row) = row.filter(|row| row.installation.spec == *spec) {
            row
        } else {
            let fresh = Installation::new(spec.clone());
            let records = self.servers.0.records.packages();
            records.begin(&entry.scope, &entry.name, &fresh).await?;
            installations.refresh().await?;
            let Some(row) = installations.of(&entry.scope, &entry.name) else {
                return Ok(true);
            };
            row
        };
        let installation = &row.installation;
        let key = (entry.scope.clone(), entry.name.clone());
        if installation.state.is_open() {
            let kind = if installation.is_update {
                Kind::Update
            } else {
                Kind::First
            };
            self.begin(&key, entry, kind);
            return Ok(true);
        }
        let whose = (&entry.scope, entry.name.as_str());
        if let Some(installed) = &installation.installed
            && installations
                .sandbox(whose, installed.content.as_str())
                .is_none()
        {
            self.begin(&key, entry, Kind::Copy);
            return Ok(true);
        }
        self.running.forget_copy(&key);
        Ok(false)
    }

    fn begin(&self, key: &ServerKey, entry: &ServerEntry, kind: Kind) {
        if !self.running.begin(key, kind) {
            return;
        }
        let job = Job {
            servers: self.servers.clone(),
            entry: entry.clone(),
            kind,
            gateway: self.gateway.clone(),
            turns: Arc::clone(&self.turns),
            closing: self.stop.clone(),
        };
        let (running, key) = (Arc::clone(&self.running), key.clone());
        let servers = self.servers.clone();
        self.tasks.spawn(async move {
            let name = job.entry.name.clone();
            if let Err(error) = Box::pin(job.run()).await {
                tracing::warn!(mcp.server = %name, ?error, "An installation cannot go on");
            }
            running.end(&key, kind);
            // Handles requests that came meanwhile.
            servers.0.installations.bell.notify_one();
        });
    }
}

/// Returns the end of a lease that begins now.
fn lease_end() -> sepal_core::domain::Timestamp {
    const HELD_MS: i64 = 15_000;
    sepal_core::domain::Timestamp(now().0 + HELD_MS)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Kind, RETRY, Running};
    use sepal_core::domain::Scope;

    #[tokio::test(start_paused = true)]
    async fn the_pause_before_another_copy_runs_from_the_end_of_the_last_one() {
        let running = Running::default();
        let key = (Scope::Installation, "it".to_owned());
        assert!(running.begin(&key, Kind::Copy));
        tokio::time::advance(2 * RETRY).await;
        assert!(!running.begin(&key, Kind::Copy), "it still runs");
        running.end(&key, Kind::Copy);
        let almost = RETRY.checked_sub(Duration::from_secs(1)).unwrap();
        tokio::time::advance(almost).await;
        assert!(!running.begin(&key, Kind::Copy));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(running.begin(&key, Kind::Copy));
        running.end(&key, Kind::Copy);
        assert!(running.begin(&key, Kind::Update), "not a copy");
        running.end(&key, Kind::Update);
        running.forget_copy(&key);
        assert!(running.begin(&key, Kind::Copy), "lost again");
    }
}
