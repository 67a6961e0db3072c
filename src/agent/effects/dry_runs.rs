//! Runs dry runs: tries waiting calls in copies of the workspace, beside all other effects.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Running, WantedEffects, tool_call};
use crate::domain::{CallId, Digest};
use crate::session::{Command, Control, Effect};

/// The dry runs of one session.
#[derive(Default)]
pub(super) struct DryRuns {
    /// The running dry runs. Dropping a guard stops the dry run with everything that it started.
    running: BTreeMap<CallId, DropGuard>,
    /// The stored results of finished dry runs, by call and digest.
    kept: BTreeMap<CallId, Digest>,
}

impl DryRuns {
    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.running.clear();
    }

    /// Returns the results that no card shows any more and no call can take.
    fn forgotten(&mut self, control: &Control) -> Vec<(CallId, Digest)> {
        let calls = control.calls();
        let now: BTreeMap<CallId, Digest> = calls
            .filter_map(|call| Some((call.id.clone(), call.dry_run_result()?.clone())))
            .collect();
        let before = std::mem::replace(&mut self.kept, now);
        let is_gone = |(call, digest): &(CallId, Digest)| self.kept.get(call) != Some(digest);
        before.into_iter().filter(is_gone).collect()
    }
}

/// Starts missing dry runs and stops those that are no longer wanted.
pub(super) fn reconcile(running: &mut Running, wanted: &WantedEffects<'_>, effects: &[Effect]) {
    let forgotten = running.dry_runs.forgotten(wanted.control);
    if !forgotten.is_empty() {
        let tools = Arc::clone(&wanted.agent.tools);
        let forgetting = async move { tool_call::dry_run::forget(&tools, &forgotten).await };
        running.tracker.spawn(forgetting);
    }
    let mut before = std::mem::take(&mut running.dry_runs.running);
    for effect in effects {
        let Effect::DryRun(call) = effect else {
            continue;
        };
        let goes_on = before.remove(call);
        if let Some(guard) = goes_on.or_else(|| begin(running, wanted, call)) {
            running.dry_runs.running.insert(call.clone(), guard);
        }
    }
}

fn begin(running: &Running, wanted: &WantedEffects<'_>, id: &CallId) -> Option<DropGuard> {
    let call = Arc::clone(wanted.control.call(id)?);
    let stop = CancellationToken::new();
    let guard = stop.clone().drop_guard();
    let (outcomes, tools) = (running.outcomes(), Arc::clone(&wanted.agent.tools));
    running.tracker.spawn(async move {
        let report = tool_call::dry_run::run(&tools, &call, &stop).await;
        if let Some(report) = report {
            let (call, report) = (call.id.clone(), Box::new(report));
            outcomes.submit(Command::DryRunEnded { call, report }).await;
        }
    });
    Some(guard)
}
