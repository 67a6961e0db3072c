//! Waits for a container engine that starts later than the gateway: looks for it until it answers and has
//! everything required, then installs it as a start would.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::doctor;
use super::sandboxes::{FoundRuntime, Search};
use crate::gateway::System;
use crate::sandbox::{Error, Janitor, Runtime};
use crate::servers::Servers;
use crate::store::Store;

/// The pause between the first two looks; it doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause between two looks: tools are available this long after the engine started, at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The parts that are told when the engine comes.
struct LastReport {
    /// The system information that doors show.
    system: System,
    /// The servers offered to sessions.
    servers: Servers,
}

/// Starts the janitor of an engine that is there at start; `None` if it comes later, with its own janitor.
pub(super) async fn janitor(
    place: &FoundRuntime,
    store: &Store,
) -> anyhow::Result<Option<Janitor>> {
    if place.search.is_some() {
        return Ok(None);
    }
    Ok(Some(start_janitor(&place.runtime, store).await?))
}

async fn start_janitor(runtime: &Arc<dyn Runtime>, store: &Store) -> anyhow::Result<Janitor> {
    Ok(Janitor::start(
        Arc::clone(runtime),
        store.records(),
        store.live(),
        store.cluster_bus(),
    )
    .await?)
}

/// Looks for the engine that `place` lacks, if it may still come, until it is there or `stop`.
pub(super) fn begin(
    place: FoundRuntime,
    system: System,
    servers: Servers,
    store: &Store,
    (tasks, stop): &(TaskTracker, CancellationToken),
) {
    let Some(search) = place.search.clone() else {
        return;
    };
    let told = LastReport { system, servers };
    let (store, stop) = (store.clone(), stop.clone());
    tasks.spawn(async move {
        let coming = come(&search, place, &told, &store);
        let janitor = tokio::select! {
            () = stop.cancelled() => return,
            janitor = coming => janitor,
        };
        stop.cancelled().await;
        if let Some(janitor) = janitor {
            janitor.stop().await;
        }
    });
}

/// Waits for the engine and installs it. Returns its janitor.
async fn come(
    search: &Search,
    mut place: FoundRuntime,
    told: &LastReport,
    store: &Store,
) -> Option<Janitor> {
    let mut pause = FIRST_PAUSE;
    let runtime = loop {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        match search.find().await {
            Ok(runtime) => break runtime,
            Err(lack) => still_missing(&mut place, search, lack, told),
        }
    };
    // Before anything new is started: everything that the janitor finds now is from an earlier process.
    let janitor = start_janitor(&runtime, store).await;
    if !search.late.come(runtime) {
        return janitor.ok();
    }
    told.servers.place_came();
    put_report(told, &FoundRuntime::on(place.runtime, &place.disk));
    tracing::info!("Tools that need a sandbox are on: the container engine has come");
    match janitor {
        Ok(janitor) => Some(janitor),
        Err(error) => {
            tracing::warn!(?error, "Nobody cleans up what sandboxes leave");
            None
        }
    }
}

/// Records and reports what is missing, if it changed.
fn still_missing(place: &mut FoundRuntime, search: &Search, lack: Error, told: &LastReport) {
    let known = place.passed_over.as_mut().or(place.problem.as_mut());
    let Some(known) = known.filter(|known| known.to_string() != lack.to_string()) else {
        return;
    };
    tracing::warn!(error = ?lack, "Tools that need a sandbox are still off: {lack}");
    *known = Arc::new(lack);
    if let Some(problem) = &place.problem {
        search.late.lacks(Arc::clone(problem));
    }
    put_report(told, place);
}

fn put_report(told: &LastReport, place: &FoundRuntime) {
    let (sandbox, check) = doctor::sandbox(place);
    told.system.put_sandbox(sandbox, check);
}
