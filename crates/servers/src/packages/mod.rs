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
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

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

/// How often unfinished installations are checked, which another gateway may have left.
const LOOK: Duration = Duration::from_secs(5);
/// How often packages are checked while no installation is unfinished.
const CALM: Duration = Duration::from_mins(1);
/// The least time between the starts of two attempts to copy a package.
const RETRY: Duration = Duration::from_mins(5);

/// The installations that this gateway runs now.
#[derive(Default)]
struct Running(Mutex<HashSet<ServerKey>>);

impl Running {
    /// Begins an installation; returns false if one already runs for that server.
    fn begin(&self, key: &ServerKey) -> bool {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        running.insert(key.clone())
    }

    fn end(&self, key: &ServerKey) {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        running.remove(key);
    }

    fn has(&self, key: &ServerKey) -> bool {
        let running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        running.contains(key)
    }
}

/// Runs installations and removes unused ones, until `stop`.
pub(super) async fn run(servers: Servers, (tasks, stop): (TaskTracker, CancellationToken)) {
    let mut round = Round {
        servers,
        tasks,
        stop: stop.clone(),
        running: Arc::default(),
        // A random id, so that leases belong to this process alone.
        gateway: format!("{:016x}", rand::random::<u64>()),
        turns: Arc::default(),
        failed: HashMap::new(),
    };
    loop {
        let pause = match round.look().await {
            Ok(true) => LOOK,
            Ok(false) => CALM,
            Err(error) => {
                tracing::warn!(?error, "The packages of MCP servers cannot be looked at");
                LOOK
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
    /// When the last attempt to copy another gateway's package began here.
    failed: HashMap<ServerKey, tokio::time::Instant>,
}

impl Round {
    /// Brings installations in line with the entries; returns true if some installation is unfinished.
    async fn look(&mut self) -> Result<bool, store::Error> {
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
                is_open |= self.look_at(&entry, &command.spec).await?;
            }
        }
        tidying::tidy(&self.servers, &self.gateway, |key| self.running.has(key)).await?;
        bundles::tidy(&self.servers).await?;
        Ok(is_open)
    }

    async fn look_at(
        &mut self,
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
            self.begin(&key, (entry, kind));
            return Ok(true);
        }
        let whose = (&entry.scope, entry.name.as_str());
        if let Some(installed) = &installation.installed
            && installations
                .sandbox(whose, installed.content.as_str())
                .is_none()
        {
            let failed = self.failed.get(&key);
            if failed.is_none_or(|at| at.elapsed() >= RETRY) {
                self.failed.insert(key.clone(), tokio::time::Instant::now());
                self.begin(&key, (entry, Kind::Copy));
            }
            return Ok(true);
        }
        self.failed.remove(&key);
        Ok(false)
    }

    fn begin(&self, key: &ServerKey, (entry, kind): (&ServerEntry, Kind)) {
        if !self.running.begin(key) {
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
        let registry = Arc::clone(&self.servers.0);
        self.tasks.spawn(async move {
            let name = job.entry.name.clone();
            if let Err(error) = Box::pin(job.run()).await {
                tracing::warn!(mcp.server = %name, ?error, "An installation cannot go on");
            }
            running.end(&key);
            // Handles requests that came meanwhile.
            registry.installations.bell.notify_one();
        });
    }
}

/// Returns the end of a lease that begins now.
fn lease_end() -> sepal_core::domain::Timestamp {
    const HELD_MS: i64 = 15_000;
    sepal_core::domain::Timestamp(now().0 + HELD_MS)
}
