//! Decides dry runs of waiting calls: who may start one, how many may run, and which results are kept.

use std::sync::Arc;

use crate::domain::{Actor, CallId, Code, Digest};
use crate::session::call::{Call, DryRun, DryRunReport, NoDryRun};
use crate::session::command::Decision;
use crate::session::decide::Draft;
use crate::session::decide::consent::{Person, check_may_approve, check_may_try};
use crate::session::decide::refusal::{already_decided, check_digest, check_not_expired};
use crate::session::decide::rules::check_not_denied;
use crate::session::decide::views::claim_idle_work;
use crate::session::event::Event;
use crate::session::refusal::Refusal;

/// Maximum number of running dry runs in a session, because each has a copy of the workspace and a sandbox.
const MOST_DRY_RUNS: usize = 2;

/// Starts a dry run; a repeat while it runs changes nothing. The dry run executes what the card shows, so
/// only people who may approve the call may start one.
pub(in crate::session::decide) fn begin(
    draft: &mut Draft<'_>,
    id: &CallId,
    shown: Option<&Digest>,
    person: Person<'_>,
) -> Result<(), Refusal> {
    let call = waiting(draft, id)?;
    check_not_expired(&call, draft.inputs.now)?;
    check_digest(call.digest(), shown)?;
    check_may_approve(draft, &call, person)?;
    check_may_try(draft, &call, person.actor)?;
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
        by: person.actor.clone(),
        since: draft.inputs.now,
        digest: facts.digest.clone(),
        report: None,
    };
    moved(draft, id, Some(dry_run), None);
    Ok(())
}

/// Stops the dry run or discards its result; without a dry run, this changes nothing.
pub(in crate::session::decide) fn discard(
    draft: &mut Draft<'_>,
    id: &CallId,
    person: Person<'_>,
) -> Result<(), Refusal> {
    let call = waiting(draft, id)?;
    check_may_approve(draft, &call, person)?;
    if call.dry_run.is_some() {
        moved(draft, id, None, Some(person.actor));
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
pub(in crate::session::decide) fn ended(draft: &mut Draft<'_>, id: &CallId, report: &DryRunReport) {
    let Ok(call) = waiting(draft, id) else {
        return;
    };
    if let Some(dry_run) = call.dry_run.as_deref().filter(|_| call.is_dry_running()) {
        let over = DryRun {
            report: Some(report.clone()),
            ..dry_run.clone()
        };
        moved(draft, id, Some(over), None);
    }
}

fn moved(draft: &mut Draft<'_>, id: &CallId, to: Option<DryRun>, by: Option<&Actor>) {
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
