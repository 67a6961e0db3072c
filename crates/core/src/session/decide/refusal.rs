//! Why a decision about a call is refused, wherever the call stands: also one that is sent again after
//! its queue is gone, because the turn went on before the answer to the first one arrived.

use crate::domain::{CallId, Code, Digest, Timestamp};
use crate::session::call::Call;
use crate::session::command::{Decision, Edit, Refusal};
use crate::session::state::Control;

/// Whether the decision is about what the call would run with now, if it says what it is about.
pub(super) fn check_shown(would_run: Option<&Digest>, decision: &Decision) -> Result<(), Refusal> {
    check_digest(would_run, decision.digest.as_ref())
}

/// The same of anything that names what it was shown.
pub(super) fn check_digest(
    would_run: Option<&Digest>,
    shown: Option<&Digest>,
) -> Result<(), Refusal> {
    if shown.is_some_and(|shown| would_run.is_some_and(|digest| shown != digest)) {
        return Err(Refusal::of_field(
            Code::ChangedSinceShown,
            "digest",
            "what would run is no longer what was shown; read the card again",
        ));
    }
    Ok(())
}

/// Whether a person who changed arguments changed nothing else: the arguments bind to the tool of now,
/// and that has to be the one on the card.
pub(super) fn check_same_tool(shown: &Digest, edit: &Edit) -> Result<(), Refusal> {
    if edit.unedited.as_ref() == Some(shown) {
        return Ok(());
    }
    Err(Refusal::of_field(
        Code::ChangedSinceShown,
        "digest",
        "the tool, its server or its sandbox is no longer what the card shows; reject the call, and \
         the model can ask for it as it is now",
    ))
}

pub(super) fn no_such_call(id: &CallId) -> Refusal {
    let message = format!("no matching pending tool call `{id}`");
    Refusal::of_field(Code::NoSuchCall, "callId", message)
}

pub(super) fn already_decided(id: &CallId) -> Refusal {
    let message = format!("the call `{id}` was decided already, or has started");
    Refusal::of_field(Code::AlreadyDecided, "callId", message)
}

/// Whether the call can still be decided, as far as time goes.
pub(super) fn check_not_expired(call: &Call, now: Timestamp) -> Result<(), Refusal> {
    if call.has_expired || call.is_overdue(now) {
        return Err(expired(&call.id));
    }
    Ok(())
}

pub(super) fn expired(id: &CallId) -> Refusal {
    let message = format!("the call `{id}` has expired: nobody decided it in time");
    Refusal::of_field(Code::CallExpired, "callId", message)
}

/// Whether a call of an earlier queue was decided in this way; the first decision counts.
pub(super) fn check_repeat(control: &Control, decision: &Decision) -> Result<(), Refusal> {
    let Some(past) = control.past_decision(&decision.call) else {
        return Err(no_such_call(&decision.call));
    };
    if past.has_expired {
        return Err(expired(&decision.call));
    }
    if decision.approved != past.is_approved || decision.take_back {
        return Err(already_decided(&decision.call));
    }
    if !past.is_approved {
        return Ok(());
    }
    match &decision.edit {
        Some(edit) if edit.equal != past.equal => Err(already_decided(&decision.call)),
        // It names what it changed.
        Some(_) if past.is_edited => Ok(()),
        _ => check_shown(Some(&past.digest), decision),
    }
}
