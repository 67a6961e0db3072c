//! Decisions that are sent again after their queue is gone: the turn went on before the answer to the
//! first one arrived.

use super::refusal::{already_decided, check_shown, expired, no_such_call};
use crate::session::command::{Decision, Refusal};
use crate::session::state::Control;

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
