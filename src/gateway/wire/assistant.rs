//! Encodes the assistant of a session, and parses the choice of one.

use serde_json::{Value, json};

use crate::agent::AssistantChoice;
use crate::domain::{AssistantId, Code};
use crate::session::{Narrowing, Refusal, SessionAssistant, ToolSelection};

/// Returns what people see of a session's assistant. Its instructions are for the model.
pub(super) fn assistant_value(assistant: &SessionAssistant) -> Value {
    let definition = &assistant.definition;
    json!({
        "id": assistant.id,
        "version": assistant.version,
        "name": definition.name,
        "description": definition.description,
        "openings": definition.openings,
        "models": definition.models,
    })
}

/// Reads which assistant a new session is started with, and what its owner gives up beyond it.
pub fn assistant_choice(
    assistant: Option<&str>,
    tools: Option<ToolSelection>,
    skills: Option<Vec<String>>,
) -> Result<Option<AssistantChoice>, Refusal> {
    let narrowed = Narrowing { tools, skills };
    let Some(text) = assistant else {
        let field = match narrowed {
            Narrowing { tools: Some(_), .. } => "tools",
            Narrowing {
                skills: Some(_), ..
            } => "skills",
            Narrowing { .. } => return Ok(None),
        };
        let text = format!("`{field}` narrows what an `assistant` may use; name one");
        return Err(Refusal::of_field(Code::InvalidArguments, field, text));
    };
    let missing = || {
        let text = format!("there is no assistant `{text}`");
        Refusal::of_field(Code::NotFound, "assistant", text)
    };
    let id = AssistantId::parse(text).ok_or_else(missing)?;
    Ok(Some(AssistantChoice { id, narrowed }))
}
