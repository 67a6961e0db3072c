//! Monitors the servers of the installation: lists new servers in the background, and probes remote servers
//! at intervals. A sandboxed server that was listed once is not started again (O12): its health is known from
//! its use and from tests.

use std::collections::HashSet;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::catalogue::entry::ServerEntry;
use super::connections::opening::Failure;
use super::health::probe_schedule::ProbeSchedule;
use super::news::NewsKind;
use super::packages;
use super::registry::{Servers, ServersParts};
use super::try_out::try_out;
use sepal_core::domain::{Code, Digest, Scope};
use sepal_mcp::config::{FileState, Looks};
use sepal_store as store;

/// The interval at which remote servers are probed unless `mcp-config.json` says otherwise.
const EVERY: Duration = Duration::from_mins(1);

/// Starts the registry; its tasks run on `tasks` until `stop`.
pub fn start(parts: ServersParts, (tasks, stop): (TaskTracker, CancellationToken)) -> Servers {
    let servers = Servers::new(parts, tasks.clone());
    tasks.spawn(run(servers.clone(), stop.clone()));
    tasks.spawn(packages::run(servers.clone(), tasks.clone(), stop.clone()));
    tasks.spawn(watch_file(servers.clone(), stop));
    servers
}

/// Runs until `stop`. Keeps reacting to events while probes run, because each probe may take long.
async fn run(servers: Servers, stop: CancellationToken) {
    let mut looked = None;
    let mut schedule = ProbeSchedule::default();
    let mut looks = JoinSet::new();
    loop {
        let looks_at_all = tokio::select! {
            () = stop.cancelled() => return,
            Some(ended) = looks.join_next() => {
                if let Ok((print, is_well)) = ended {
                    schedule.ended(&print, is_well);
                }
                None
            }
            () = until(schedule.next_again()), if schedule.next_again().is_some() => Some(false),
            () = until(due(looked, servers.0.file.state().looks)) => {
                looked = Some(Instant::now());
                Some(true)
            }
            () = servers.0.bell.notified() => Some(false),
        };
        if let Some(all) = looks_at_all {
            tokio::select! {
                () = stop.cancelled() => return,
                read = line_up(&servers, all, &mut schedule) => if let Err(error) = read {
                    tracing::warn!(?error, "The MCP servers cannot be looked at");
                    schedule.put_off();
                },
            }
        }
        while let Some(entry) = schedule.next() {
            looks.spawn(glance(servers.clone(), entry));
        }
    }
}

/// Returns when all servers are probed next: at once the first time, then at the interval of
/// `mcp-config.json` (its changes ring the bell, and this is computed again); `None` if never again.
fn due(looked: Option<Instant>, looks: Looks) -> Option<Instant> {
    let Some(looked) = looked else {
        return Some(Instant::now());
    };
    match looks {
        Looks::Usual => Some(looked + EVERY),
        Looks::Every(interval) => looked.checked_add(interval),
        Looks::Never => None,
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Loads edits of `mcp-config.json` and announces added and removed servers, until `stop`.
async fn watch_file(servers: Servers, stop: CancellationToken) {
    let mut changes = servers.0.file.changes();
    let hears = async {
        let mut before = servers.0.file.state();
        while changes.changed().await.is_ok() {
            let after = servers.0.file.state();
            servers.stale();
            servers.0.bell.notify_one();
            let publish = |from: &FileState, to: &FileState, kind: &NewsKind| {
                let new = to
                    .servers
                    .keys()
                    .filter(|name| !from.servers.contains_key(*name));
                new.for_each(|name| servers.publish(None, name, kind.clone()));
            };
            publish(&before, &after, &NewsKind::Added);
            publish(&after, &before, &NewsKind::Removed);
            let gone = before.servers.keys();
            for name in gone.filter(|name| !after.servers.contains_key(*name)) {
                let installations = &servers.0.installations;
                if let Err(error) = installations.forget(&Scope::Installation, name).await {
                    tracing::warn!(mcp.server = %name, ?error, "An installation is left behind");
                }
            }
            servers.0.installations.bell.notify_one();
            before = after;
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = hears => {}
        never = servers.0.file.watch() => match never {},
    }
}

/// Queues the servers that were never listed; with `all`, remote servers too. A server that does not start is
/// retried with exponential backoff, and at once when somebody repairs, tests or uses it.
async fn line_up(
    servers: &Servers,
    all: bool,
    schedule: &mut ProbeSchedule,
) -> Result<(), store::Error> {
    let entries = servers.all_entries().await?;
    let there: HashSet<Digest> = entries.iter().map(ServerEntry::fingerprint).collect();
    let waiting = schedule.waiting();
    let mut due = Vec::new();
    // Without sandboxes it is unknown what would run there; such servers are probed once there are sandboxes.
    let has_place = servers.0.place.is_on();
    // A server with a package is listed once the package is installed.
    let is_due = |entry: &ServerEntry| {
        entry.config.enabled && (has_place || entry.is_remote()) && !entry.is_installing()
    };
    for entry in entries.into_iter().filter(is_due) {
        let print = entry.fingerprint();
        let key = entry.definitions_key(&servers.0.place.image());
        let is_waiting = waiting.contains(&print);
        let is_unlisted = (is_waiting || schedule.is_due(&print))
            && servers.0.definitions.get(&key).await?.is_none();
        if is_unlisted || (entry.is_remote() && (all || is_waiting)) {
            due.push(entry);
        }
    }
    schedule.wait(due, &there);
    Ok(())
}

/// Probes one server; returns its fingerprint, and true if no retry is needed.
async fn glance(servers: Servers, entry: ServerEntry) -> (Digest, bool) {
    let mut phases = Vec::new();
    // The health records hold the error.
    let tried = try_out(&servers, &entry, None, &mut phases).await;
    let waits_for_people = |failure: &Failure| failure.code == Code::AuthorizationRequired;
    let is_well = tried.as_ref().err().is_none_or(waits_for_people);
    (entry.fingerprint(), is_well)
}
