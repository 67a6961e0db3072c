//! Folds elicitations, the questions of servers during their calls.

use std::sync::Arc;

use crate::domain::{CallId, Timestamp};
use crate::session::call::Elicitation;
use crate::session::event::Event;
use crate::session::state::Control;

/// Folds an elicitation event. The turn's time limit restarts when an elicitation moves on, because the
/// turn waited for a person.
pub(super) fn evolve_elicitation(control: &mut Control, event: &Event, at: Timestamp) {
    if let Event::ElicitationAsked(asked) = event {
        if let Some(kept) = asked_for(control, &asked.call) {
            kept.push(Arc::clone(asked));
        }
    } else if let Event::ElicitationOpened { id, call, .. } = event {
        let kept = asked_for(control, call).into_iter().flatten();
        if let Some(asked) = { kept }.find(|asked| asked.id == *id) {
            Arc::make_mut(asked).is_opened = true;
        }
    } else if let Event::ElicitationResolved {
        id, call, answer, ..
    } = event
    {
        let kept = asked_for(control, call).into_iter().flatten();
        if let Some(asked) = { kept }.find(|asked| asked.id == *id) {
            Arc::make_mut(asked).answer = Some(answer.clone());
        }
        if let Some(turn) = &mut control.turn {
            turn.attended = Some(at);
        }
    } else if let Event::SamplingMoved { id, call, to } = event {
        let kept = asked_for(control, call).into_iter().flatten();
        let asked = { kept }.find(|asked| asked.id == *id);
        if let Some(sampling) = asked.and_then(|asked| Arc::make_mut(asked).sampling.as_mut()) {
            sampling.stage = to.clone();
        }
        if let Some(turn) = &mut control.turn {
            turn.attended = Some(at);
        }
    } else if let Event::Ended { call, .. } = event
        && let Some(kept) = asked_for(control, call)
    {
        kept.retain(|asked| asked.call != *call);
    }
}

/// The list of elicitations that belongs to this call: the views' or the turn's.
fn asked_for<'c>(control: &'c mut Control, call: &CallId) -> Option<&'c mut Vec<Arc<Elicitation>>> {
    if control.views.calls.iter().any(|it| it.id == *call) {
        return Some(&mut control.views.elicitations);
    }
    control.turn.as_mut().map(|turn| &mut turn.elicitations)
}
