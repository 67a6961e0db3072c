//! Recovers a session whose runner is gone: running calls become unknown unless their server runs them as
//! tasks, and old approvals are asked again.

use std::sync::Arc;

use super::{Draft, elicitation, sampling};
use crate::domain::{Actor, CallId, Code, GatewayId};
use crate::session::call::{Call, CallStatus, CallTask, Decider, ElicitationEnd, Outcome};
use crate::session::event::Event;
use crate::session::refusal::Refusal;

/// Makes the deciding gateway the runner if `from` is the last known one. This starts a new epoch, in which
/// outcomes of earlier epochs are dropped.
pub(super) fn take_over(draft: &mut Draft<'_>, from: Option<&GatewayId>) {
    if draft.control.version == 0 || draft.control.runner.gateway.as_ref() != from {
        return;
    }
    draft.claim();
    sampling::lose(draft);
    let turn = draft.control.turn.as_ref();
    let is_turn_stopping = turn.is_some_and(|turn| turn.is_stopping);
    let calls: Vec<Arc<Call>> = draft.control.calls().cloned().collect();
    for call in &calls {
        recover(draft, call, is_turn_stopping && call.origin.is_none());
    }
    if calls.iter().any(|call| !call.is_ended()) {
        draft.advance();
    }
}

/// Records the task that the server made of a running call; the first one counts.
pub(super) fn task_created(draft: &mut Draft<'_>, id: &CallId, task: &CallTask) {
    let call = draft.control.call(id);
    if call.is_some_and(|call| call.is_executing() && call.task.is_none()) {
        let task = CallTask {
            since: draft.inputs.now,
            ..task.clone()
        };
        draft.push(Event::TaskCreated {
            call: id.clone(),
            task,
        });
    }
}

fn recover(draft: &mut Draft<'_>, call: &Call, is_turn_stopping: bool) {
    match &call.status {
        // Its server goes on with the task, and may repeat the questions that it asked through the old
        // runner.
        CallStatus::Executing { .. } if call.task.is_some() => {
            let asked = elicitation::of_call(draft, &call.id);
            elicitation::close(draft, asked, ElicitationEnd::Withdrawn);
        }
        CallStatus::Executing { is_stopping, .. } => {
            let may_run_again = call
                .facts
                .as_ref()
                .is_some_and(|facts| facts.may_run_again());
            let is_to_stop = is_turn_stopping || *is_stopping;
            match (may_run_again, is_to_stop) {
                // Nobody knows whether the stop reached the call, or when it ended.
                (false, _) => {
                    draft.end_call(&call.id, Outcome::Unknown { cause: None }, 0);
                }
                (true, true) => draft.end_call(&call.id, Outcome::Cancelled, 0),
                (true, false) => {
                    let asked = sampling::of_call(draft, &call.id);
                    elicitation::close(draft, asked, ElicitationEnd::Withdrawn);
                }
            }
        }
        CallStatus::Approved { at, .. }
            if draft.inputs.now.since_ms(*at) > draft.inputs.rules.approval_stale_after_ms =>
        {
            draft.take_back(&call.id, Decider::System);
        }
        CallStatus::Approved { .. } | CallStatus::Pending { .. } | CallStatus::Ended { .. } => {}
    }
}

/// Records a person's statement whether a call with an unknown outcome happened.
pub(super) fn resolve_unknown(
    draft: &mut Draft<'_>,
    call: &CallId,
    happened: bool,
    by: &Actor,
) -> Result<(), Refusal> {
    let Some(name) = draft.control.unknown.get(call).cloned() else {
        return Err(Refusal::of_field(
            Code::NoSuchCall,
            "callId",
            format!("no call `{call}` has an unknown outcome"),
        ));
    };
    draft.push(Event::Settled {
        call: call.clone(),
        name,
        happened,
        by: by.clone(),
    });
    Ok(())
}
