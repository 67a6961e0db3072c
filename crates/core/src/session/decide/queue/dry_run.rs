//! Dry runs of calls that wait: who may have one, how many there are, and what is kept of them.

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

/// Dry runs of one session at the same time: each has a copy of the workspace and a sandbox.
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

/// Begins one; a repeat while it runs changes nothing. It runs what the card shows, so whoever may not
/// let the call run may not have it tried either.
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

/// Ends it, or puts away what came of it; where there is none, that changes nothing.
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

/// Whether a yes that takes the result of a dry run names the one that is shown.
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

/// Keeps what came of it, if anybody still waits for it.
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
