//! An engine that comes later than the gateway: looked for until it answers and has what it needs,
//! then put in its place with all that a start does.

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

/// Between the first two looks; it doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Between two looks at the most: so long after it came, tools are there.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Who is told when it comes.
struct LastReport {
    /// What doors say of this installation.
    system: System,
    /// What sessions are offered.
    servers: Servers,
}

/// The janitor of what is there at start; what comes later brings its own.
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
    let kept = (store.live(), store.cluster_bus());
    Ok(Janitor::start(Arc::clone(runtime), store.records(), kept).await?)
}

/// Looks for what `place` lacks, if it may still come, until it is there or `stop`.
pub(super) fn begin(
    place: FoundRuntime,
    (system, servers): (System, Servers),
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

/// Waits for it and puts it in its place; what cleans up after it.
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
        match search.look().await {
            Ok(runtime) => break runtime,
            Err(lack) => still_missing(&mut place, search, lack, told),
        }
    };
    // Before anything new is started: what it finds now is of an earlier life.
    let janitor = start_janitor(&runtime, store).await;
    if !search.late.come(runtime) {
        return janitor.ok();
    }
    told.servers.place_came();
    tell(told, &FoundRuntime::on(place.runtime, &place.disk));
    tracing::info!("Tools that need a sandbox are on: the container engine has come");
    match janitor {
        Ok(janitor) => Some(janitor),
        Err(error) => {
            tracing::warn!(?error, "Nobody cleans up what sandboxes leave");
            None
        }
    }
}

/// Takes note of what is missing, where that is something else than before.
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
    tell(told, place);
}

fn tell(told: &LastReport, place: &FoundRuntime) {
    let (sandbox, check) = doctor::sandbox(place);
    told.system.put_sandbox(sandbox, check);
}
