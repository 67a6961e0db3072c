//! The part of the fold that keeps what servers ask while their calls run.

use std::sync::Arc;

use crate::domain::Timestamp;
use crate::session::event::Event;
use crate::session::state::Control;

/// Folds a question, or what became of it. While it waited, the turn's time did not run.
pub(super) fn evolve_elicitation(control: &mut Control, event: &Event, at: Timestamp) {
    let Some(turn) = &mut control.turn else {
        return;
    };
    if let Event::ElicitationAsked(asked) = event {
        turn.elicitations.push(Arc::clone(asked));
    } else if let Event::ElicitationOpened { id, .. } = event {
        let asked = turn.elicitations.iter_mut().find(|asked| asked.id == *id);
        if let Some(asked) = asked {
            Arc::make_mut(asked).is_opened = true;
        }
    } else if let Event::ElicitationResolved { id, answer, .. } = event {
        turn.attended = Some(at);
        let asked = turn.elicitations.iter_mut().find(|asked| asked.id == *id);
        if let Some(asked) = asked {
            Arc::make_mut(asked).answer = Some(answer.clone());
        }
    } else if let Event::Ended { call, .. } = event {
        turn.elicitations.retain(|asked| asked.call != *call);
    }
}
