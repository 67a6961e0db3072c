//! Refuses invalid decisions about calls, including repeated ones whose queue is gone because the turn went
//! on before the first answer arrived.

use crate::domain::{CallId, Code, Digest, Timestamp};
use crate::session::call::Call;
use crate::session::command::{Decision, Edit};
use crate::session::refusal::Refusal;
use crate::session::state::Control;

/// Checks that the decision's digest, if it has one, equals the digest of what would run now.
pub(super) fn check_shown(would_run: Option<&Digest>, decision: &Decision) -> Result<(), Refusal> {
    check_digest(would_run, decision.digest.as_ref())
}

/// Checks that a shown digest, if there is one, equals the digest of what would run now.
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

/// Checks that an edit changed nothing but the arguments: they bind to the current tool, which has to be
/// the one on the card.
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

/// Checks that the call has not expired.
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

/// Checks that a decision about a call of an earlier queue repeats the recorded one; the first decision
/// counts.
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
        // The edit itself identifies the repeated decision.
        Some(_) if past.is_edited => Ok(()),
        _ => check_shown(Some(&past.digest), decision),
    }
}
