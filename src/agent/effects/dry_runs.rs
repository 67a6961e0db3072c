//! Another effect: calls that wait are tried in copies of the workspace, beside whatever else goes on.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Running, Wanted, tool_call};
use crate::domain::CallId;
use crate::session::{Command, Effect};

/// The dry runs of one session. One that is no longer wanted ends with what it started.
#[derive(Default)]
pub(super) struct DryRuns(BTreeMap<CallId, DropGuard>);

impl DryRuns {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Starts those that are missing and stops those that are no longer wanted.
pub(super) fn reconcile(running: &mut Running, wanted: &Wanted<'_>, effects: &[Effect]) {
    let mut before = std::mem::take(&mut running.dry_runs.0);
    for effect in effects {
        let Effect::DryRun(call) = effect else {
            continue;
        };
        let goes_on = before.remove(call);
        if let Some(guard) = goes_on.or_else(|| begin(running, wanted, call)) {
            running.dry_runs.0.insert(call.clone(), guard);
        }
    }
}

fn begin(running: &Running, wanted: &Wanted<'_>, id: &CallId) -> Option<DropGuard> {
    let call = Arc::clone(wanted.control.call(id)?);
    let stop = CancellationToken::new();
    let guard = stop.clone().drop_guard();
    let (outcomes, tools) = (running.outcomes(), Arc::clone(&wanted.agent.tools));
    running.tracker.spawn(async move {
        let report = tool_call::dry_run::run(&tools, &call, &stop).await;
        if let Some(report) = report {
            let (call, report) = (call.id.clone(), Box::new(report));
            outcomes.tell(Command::DryRunEnded { call, report }).await;
        }
    });
    Some(guard)
}
