//! Decides which version of its assistant a session uses.

use std::sync::Arc;

use super::Draft;
use super::rules::review_calls;
use crate::domain::{Actor, Code};
use crate::session::assistant::SessionAssistant;
use crate::session::event::Event;
use crate::session::model::ModelChoice;
use crate::session::refusal::Refusal;

/// Takes another version of the session's assistant into use, from the next model request on. Its rules hold for
/// the calls that wait, too. A model that the version does not allow is replaced by its default.
pub(super) fn update(
    draft: &mut Draft<'_>,
    assistant: &Arc<SessionAssistant>,
    by: &Actor,
) -> Result<(), Refusal> {
    draft.create();
    let known = draft.control.assistant.as_ref();
    let Some(known) = known.filter(|known| known.id == assistant.id) else {
        let text = "the session was not started with this assistant";
        return Err(Refusal::new(Code::NothingToDo, text));
    };
    if known.version == assistant.version {
        return Ok(());
    }
    // What the owner gave up stays given up.
    let assistant = Arc::new(SessionAssistant {
        narrowed: known.narrowed.clone(),
        ..SessionAssistant::clone(assistant)
    });
    draft.push(Event::AssistantUpdated {
        assistant: Arc::clone(&assistant),
        by: by.clone(),
    });
    let definition = &assistant.definition;
    let is_allowed = |model: &ModelChoice| definition.check_model(model).is_ok();
    if let Some(model) = definition.default_model(|_| true)
        && !draft.control.model.as_ref().is_some_and(is_allowed)
    {
        draft.push(Event::ModelChosen { model });
    }
    review_calls(draft);
    Ok(())
}
