//! Makes random commands about dry runs: starting, dropping and taking them, and reports at any time.

use super::world::World;
use crate::domain::{CallId, ChangeCounts, Digest, Role};
use crate::session::{Command, Decision, DryRunReport, DryRunStatus};

pub(super) fn command(world: &World, other: CallId, seed: u8) -> Command {
    let queue = world.state.control.turn.iter().flat_map(|turn| &turn.queue);
    let mut running = queue.filter(|call| call.is_dry_running());
    let (by, role) = (World::person(), Some(Role::Member));
    match seed % 6 {
        3 => take(world, &other),
        0 | 1 => Command::DryRun {
            call: other,
            digest: None,
            by,
            role,
        },
        2 => Command::DropDryRun {
            call: other,
            by,
            role,
        },
        _ => Command::DryRunEnded {
            call: running.next().map_or(other, |call| call.id.clone()),
            report: Box::new(report("tried")),
        },
    }
}

/// An approval that takes the result of the call's dry run, or a nonexistent result if there is none.
pub(crate) fn take(world: &World, call: &CallId) -> Command {
    let tried = world.state.control.call(call);
    let result = tried.and_then(|tried| tried.dry_run_result()).cloned();
    Command::Decide(Decision {
        call: call.clone(),
        approved: true,
        take_back: false,
        reason: None,
        edit: None,
        dry_run: Some(result.unwrap_or_else(|| Digest::from_wire("none"))),
        digest: None,
        by: World::person(),
        role: Some(Role::Member),
    })
}

/// The report of a completed dry run.
pub(crate) fn report(text: &str) -> DryRunReport {
    DryRunReport {
        status: DryRunStatus::Completed,
        text: text.to_owned(),
        cut_bytes: 0,
        exit_code: Some(0),
        duration_ms: 5,
        prepared_ms: 3,
        counts: ChangeCounts::default(),
        files: Vec::new(),
        unseen: Vec::new(),
        result: Some(Digest::from_wire(text)),
        no_result: None,
    }
}
