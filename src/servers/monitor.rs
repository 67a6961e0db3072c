//! Looks after the servers of the installation: lists new ones in the background, and asks remote
//! ones now and then how they are. It starts nothing in a sandbox that was listed once (O12): how
//! those are is known from their use and from tests.

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
use crate::domain::{Code, Digest, Scope};
use crate::mcp::config::{FileState, Looks};
use crate::store;

/// How often remote servers are looked at unless `mcp-config.json` says otherwise.
const EVERY: Duration = Duration::from_mins(1);

/// Starts the registry; its tasks run on `tasks` until `stop`.
pub fn start(parts: ServersParts, (tasks, stop): (TaskTracker, CancellationToken)) -> Servers {
    let servers = Servers::new(parts, tasks.clone());
    tasks.spawn(run(servers.clone(), stop.clone()));
    tasks.spawn(packages::run(
        servers.clone(),
        (tasks.clone(), stop.clone()),
    ));
    tasks.spawn(watch_file(servers.clone(), stop));
    servers
}

/// Runs until `stop`. News are heard while looks go on, which may take long each.
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

/// When all are to be looked at next: at once, then as often as `mcp-config.json` says (its changes ring
/// the bell, and this is asked again); `None` = not again.
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

/// Loads edits of `mcp-config.json`, until `stop`.
async fn watch_file(servers: Servers, stop: CancellationToken) {
    let mut changes = servers.0.file.changes();
    let hears = async {
        let mut before = servers.0.file.state();
        while changes.changed().await.is_ok() {
            let after = servers.0.file.state();
            servers.stale();
            servers.0.bell.notify_one();
            let tell = |from: &FileState, to: &FileState, kind: &NewsKind| {
                let new = to
                    .servers
                    .keys()
                    .filter(|name| !from.servers.contains_key(*name));
                new.for_each(|name| servers.tell(None, name, kind.clone()));
            };
            tell(&before, &after, &NewsKind::Added);
            tell(&after, &before, &NewsKind::Removed);
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

/// Lets wait what nobody has listed yet; with `all`, remote servers too. What does not start now is tried
/// again after longer and longer pauses, and at once when somebody mends, tests or uses it.
async fn line_up(
    servers: &Servers,
    all: bool,
    schedule: &mut ProbeSchedule,
) -> Result<(), store::Error> {
    let entries = servers.all_entries().await?;
    let there: HashSet<Digest> = entries.iter().map(ServerEntry::fingerprint).collect();
    let waiting = schedule.waiting();
    let mut due = Vec::new();
    // Without a sandbox nobody can say what would run there; it is looked at when there is one.
    let has_place = servers.0.place.is_on();
    // What has a package is listed once that is installed.
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

/// Looks at one, and says which it was, and whether there is nothing to try again.
async fn glance(servers: Servers, entry: ServerEntry) -> (Digest, bool) {
    let mut phases = Vec::new();
    // What went wrong is in the records of its health.
    let tried = try_out(&servers, (&entry, None), &mut phases).await;
    let waits_for_people = |failure: &Failure| failure.code == Code::AuthorizationRequired;
    let is_well = tried.as_ref().err().is_none_or(waits_for_people);
    (entry.fingerprint(), is_well)
}
