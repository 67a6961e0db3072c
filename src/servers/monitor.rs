//! Looks after the servers of the installation: lists new ones in the background, and asks remote
//! ones now and then how they are. It starts nothing in a sandbox that was listed once (O12): how
//! those are is known from their use and from tests.

use std::collections::HashSet;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::catalogue::entry::{ServerEntry, Source};
use super::connections::opening::{Failure, Phase, ServerLocation};
use super::health::probe_schedule::ProbeSchedule;
use super::news::NewsKind;
use super::offers;
use super::registry::{Servers, ServersParts};
use crate::domain::{Digest, SandboxId, Scope, Tool};
use crate::mcp::config::{FileState, Looks};
use crate::store;

/// How often remote servers are looked at unless `mcp-config.json` says otherwise.
const EVERY: Duration = Duration::from_mins(1);

/// Starts the registry; its tasks run on `tasks` until `stop`.
pub fn start(parts: ServersParts, (tasks, stop): (TaskTracker, CancellationToken)) -> Servers {
    let servers = Servers::new(parts, tasks.clone());
    tasks.spawn(run(servers.clone(), stop.clone()));
    tasks.spawn(watch_file(servers.clone(), stop));
    servers
}

/// Runs until `stop`. News are heard while looks go on, which may take long each.
async fn run(servers: Servers, stop: CancellationToken) {
    let mut looked = None;
    let mut schedule = ProbeSchedule::default();
    let mut looks = FuturesUnordered::new();
    loop {
        let looks_at_all = tokio::select! {
            () = stop.cancelled() => return,
            Some(print) = looks.next() => {
                schedule.ended(&print);
                None
            }
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
                },
            }
        }
        while let Some(entry) = schedule.next() {
            looks.push(glance(servers.clone(), entry));
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
            before = after;
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = hears => {}
        never = servers.0.file.watch() => match never {},
    }
}

/// Lets wait what nobody has listed yet; with `all`, remote servers too. Each configuration is
/// tried once: what does not start now starts when somebody mends, tests or uses it.
async fn line_up(
    servers: &Servers,
    all: bool,
    schedule: &mut ProbeSchedule,
) -> Result<(), store::Error> {
    let mut entries = servers.installation_entries(&servers.0.file.state());
    for row in servers.0.records.mcp_servers().all().await? {
        let scope = Scope::Tenant(row.tenant);
        entries.push(servers.entry(row.name, Source::Tenant, scope, row.config));
    }
    let there: HashSet<Digest> = entries.iter().map(ServerEntry::fingerprint).collect();
    let waiting = schedule.waiting();
    let mut due = Vec::new();
    // Without a sandbox nobody can say what would run there; it is looked at when there is one.
    let has_place = servers.0.place.is_on();
    let is_due = |entry: &ServerEntry| entry.config.enabled && (has_place || entry.is_remote());
    for entry in entries.into_iter().filter(is_due) {
        let print = entry.fingerprint();
        let key = entry.definitions_key(&servers.0.place.image());
        let is_known =
            schedule.was_tried(&print) || servers.0.definitions.get(&key).await?.is_some();
        if !is_known || (entry.is_remote() && (all || waiting.contains(&print))) {
            due.push(entry);
        }
    }
    schedule.wait(due, &there);
    Ok(())
}

/// Looks at one, and says which it was.
async fn glance(servers: Servers, entry: ServerEntry) -> Digest {
    let mut phases = Vec::new();
    // What went wrong is in the records of its health.
    let _ = try_out(&servers, &entry, &mut phases).await;
    entry.fingerprint()
}

/// Opens a server in a place that is thrown away, lists it, and closes it.
pub(crate) async fn try_out(
    servers: &Servers,
    entry: &ServerEntry,
    phases: &mut Vec<Phase>,
) -> Result<(Vec<Tool>, Vec<String>), Failure> {
    let sandbox = SandboxId::from_bits(rand::random());
    let place = ServerLocation {
        tenant: entry.tenant(),
        // Looks have turns of their own, for tenants too.
        holder: None,
        sandbox: &sandbox,
        secrets: None,
    };
    let opened = servers.open_and_list(entry, place, phases).await;
    let result = match opened {
        Ok((opened, tools)) => {
            offers::note(servers, entry, &opened).await;
            opened.kill().await;
            let said = opened.last_words();
            Ok((tools, said))
        }
        Err(failure) => Err(failure),
    };
    if !entry.is_remote() {
        servers.0.place.discard(&sandbox).await;
    }
    result
}
