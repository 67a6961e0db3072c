//! Folds elicitations, the questions of servers during their calls.

use std::sync::Arc;

use crate::domain::{CallId, ElicitationId};
use crate::session::call::{Elicitation, ElicitationAnswer, SamplingStage};
use crate::session::state::Control;

/// Keeps a new elicitation.
pub(super) fn asked(control: &mut Control, asked: &Arc<Elicitation>) {
    if let Some(kept) = list_of(control, &asked.call) {
        kept.push(Arc::clone(asked));
    }
}

/// Records that the person opened the page of an elicitation.
pub(super) fn opened(control: &mut Control, id: &ElicitationId, call: &CallId) {
    change(control, id, call, |asked| asked.is_opened = true);
}

/// Records the answer.
pub(super) fn resolved(
    control: &mut Control,
    id: &ElicitationId,
    call: &CallId,
    answer: &ElicitationAnswer,
) {
    change(control, id, call, |asked| {
        asked.answer = Some(answer.clone());
    });
}

/// Moves a requested completion to another stage.
pub(super) fn sampling_moved(
    control: &mut Control,
    id: &ElicitationId,
    call: &CallId,
    to: &SamplingStage,
) {
    change(control, id, call, |asked| {
        if let Some(sampling) = &mut asked.sampling {
            sampling.stage = to.clone();
        }
    });
}

/// Drops the elicitations of a call that ended.
pub(super) fn drop_elicitations(control: &mut Control, call: &CallId) {
    if let Some(kept) = list_of(control, call) {
        kept.retain(|asked| asked.call != *call);
    }
}

fn change(
    control: &mut Control,
    id: &ElicitationId,
    call: &CallId,
    change: impl FnOnce(&mut Elicitation),
) {
    let mut kept = list_of(control, call).into_iter().flatten();
    if let Some(asked) = kept.find(|asked| asked.id == *id) {
        change(Arc::make_mut(asked));
    }
}

/// The list of elicitations that belongs to this call: the views' or the turn's.
fn list_of<'c>(control: &'c mut Control, call: &CallId) -> Option<&'c mut Vec<Arc<Elicitation>>> {
    if control.views.calls.iter().any(|it| it.id == *call) {
        return Some(&mut control.views.elicitations);
    }
    control.turn.as_mut().map(|turn| &mut turn.elicitations)
}
