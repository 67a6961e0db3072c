//! Decides dry runs of waiting calls: who may start one, how many may run, and which results are kept.

use std::sync::Arc;

use crate::domain::{Actor, CallId, Code, Digest, Role};
use crate::session::call::{Call, DryRun, DryRunReport, NoDryRun};
use crate::session::command::{Command, Decision, Refusal};
use crate::session::decide::Draft;
use crate::session::decide::consent::{check_may_approve, check_may_try};
use crate::session::decide::refusal::{already_decided, check_digest, check_not_expired};
use crate::session::decide::rules::check_not_denied;
use crate::session::decide::views::claim_idle_work;
use crate::session::event::Event;

/// Maximum number of running dry runs in a session, because each has a copy of the workspace and a sandbox.
const MOST_DRY_RUNS: usize = 2;

/// Follows a command about a dry run.
pub(in crate::session::decide) fn follow(
    draft: &mut Draft<'_>,
    command: &Command,
) -> Result<(), Refusal> {
    if let Command::DryRun {
        call,
        digest,
        by,
        role,
    } = command
    {
        begin(draft, (call, digest.as_ref()), (by, *role))?;
    } else if let Command::DropDryRun { call, by, role } = command {
        put_away(draft, call, (by, *role))?;
    } else if let Command::DryRunEnded { call, report } = command {
        ended(draft, call, report);
    }
    Ok(())
}

/// Starts a dry run; a repeat while it runs changes nothing. The dry run executes what the card shows, so
/// only people who may approve the call may start one.
fn begin(
    draft: &mut Draft<'_>,
    (id, shown): (&CallId, Option<&Digest>),
    who: (&Actor, Option<Role>),
) -> Result<(), Refusal> {
    let call = waiting(draft, id)?;
    check_not_expired(&call, draft.inputs.now)?;
    check_digest(call.digest(), shown)?;
    check_may_approve(draft, &call, who)?;
    check_may_try(draft, &call, who.0)?;
    check_not_denied(draft, &call, &call.args)?;
    let Some(facts) = &call.facts else {
        return Err(none(NoDryRun::NoTool));
    };
    if let Some(reason) = facts.no_dry_run() {
        return Err(none(reason));
    }
    if call.is_dry_running() {
        return Ok(());
    }
    let running = draft.control.calls().filter(|call| call.is_dry_running());
    if running.count() >= MOST_DRY_RUNS {
        let text = format!(
            "{MOST_DRY_RUNS} dry runs are under way in this session; wait for one of them, or drop one"
        );
        return Err(Refusal::of_field(Code::TooManyRequests, "callId", text));
    }
    claim_idle_work(draft);
    let dry_run = DryRun {
        by: who.0.clone(),
        since: draft.inputs.now,
        digest: facts.digest.clone(),
        report: None,
    };
    moved(draft, id, (Some(dry_run), None));
    Ok(())
}

/// Stops the dry run or discards its result; without a dry run, this changes nothing.
fn put_away(
    draft: &mut Draft<'_>,
    id: &CallId,
    who: (&Actor, Option<Role>),
) -> Result<(), Refusal> {
    let call = waiting(draft, id)?;
    check_may_approve(draft, &call, who)?;
    if call.dry_run.is_some() {
        moved(draft, id, (None, Some(who.0)));
    }
    Ok(())
}

/// Checks that an approval that takes a dry run's result names the result on the card.
pub(super) fn check_result(call: &Call, decision: &Decision) -> Result<(), Refusal> {
    let Some(result) = &decision.dry_run else {
        return Ok(());
    };
    if decision.edit.is_some() {
        let text = "changed arguments were not tried; have the call tried with them, or let it run";
        return Err(Refusal::of_field(Code::InvalidArguments, "dryRun", text));
    }
    if call.dry_run_result() == Some(result) {
        return Ok(());
    }
    let text = "the card shows no dry run with this result any more; have the call tried again, or let it \
                run";
    Err(Refusal::of_field(Code::ChangedSinceShown, "dryRun", text))
}

/// Stores the report of a dry run if the call still waits and the dry run was not dropped.
fn ended(draft: &mut Draft<'_>, id: &CallId, report: &DryRunReport) {
    let Ok(call) = waiting(draft, id) else {
        return;
    };
    if let Some(dry_run) = call.dry_run.as_deref().filter(|_| call.is_dry_running()) {
        let over = DryRun {
            report: Some(report.clone()),
            ..dry_run.clone()
        };
        moved(draft, id, (Some(over), None));
    }
}

fn moved(draft: &mut Draft<'_>, id: &CallId, (to, by): (Option<DryRun>, Option<&Actor>)) {
    draft.push(Event::DryRunMoved {
        call: id.clone(),
        to: to.map(Arc::new),
        by: by.cloned(),
    });
}

fn waiting(draft: &Draft<'_>, id: &CallId) -> Result<Arc<Call>, Refusal> {
    let call = draft.find(id)?;
    if call.is_pending() {
        return Ok(Arc::clone(call));
    }
    Err(already_decided(id))
}

fn none(reason: NoDryRun) -> Refusal {
    let text = format!("this call has no dry run: {}", reason.text());
    Refusal::of_field(Code::NotAllowed, "callId", text)
}
