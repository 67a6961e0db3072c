//! Decisions that are sent again after their queue is gone: the turn went on before the answer to the
//! first one arrived.

use super::Draft;
use super::queue::{already_decided, is_what_was_shown, no_such_call};
use crate::session::command::{Decision, Refusal};

impl Draft<'_> {
    /// Whether a call of an earlier queue was decided in this way; the first decision counts.
    pub(super) fn is_repeat(&self, decision: &Decision) -> Result<(), Refusal> {
        let Some(past) = self.control.past_decision(&decision.call) else {
            return Err(no_such_call(&decision.call));
        };
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
            _ => is_what_was_shown(Some(&past.digest), decision),
        }
    }
}
