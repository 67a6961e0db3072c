//! Adds the instructions of a session's assistant to the system prompt.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::tool_call::SessionTools;
use crate::context::{Context, ContextError, ContextProvider, ContextSession};
use crate::session::SessionAssistant;

/// The source of the instructions, for the composition of a request.
const SOURCE: &str = "assistant";

/// The instructions of the version that is in use.
pub(in crate::agent) struct AssistantInstructions {
    tools: Arc<SessionTools>,
    /// The context of the last version: unchanged, including its counted tokens, as long as the version is. The
    /// lock is never held across an await.
    known: Mutex<Option<(Arc<SessionAssistant>, Vec<Context>)>>,
}

impl AssistantInstructions {
    pub(in crate::agent) fn new(tools: Arc<SessionTools>) -> Self {
        Self {
            tools,
            known: Mutex::default(),
        }
    }

    fn contexts(&self) -> Vec<Context> {
        let Some(assistant) = self.tools.assistant() else {
            return Vec::new();
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, contexts)) = &*known
            && Arc::ptr_eq(of, &assistant)
        {
            return contexts.clone();
        }
        let instructions = assistant.definition.instructions.as_str();
        let contexts: Vec<Context> = (!instructions.trim().is_empty())
            .then(|| {
                Context::system(instructions)
                    .with_metadata("source", SOURCE)
                    .with_metadata("entry_id", SOURCE)
            })
            .into_iter()
            .collect();
        *known = Some((assistant, contexts.clone()));
        contexts
    }
}

#[async_trait]
impl ContextProvider for AssistantInstructions {
    fn name(&self) -> &'static str {
        SOURCE
    }

    async fn provide(&self, _: &ContextSession<'_>) -> Result<Vec<Context>, ContextError> {
        Ok(self.contexts())
    }

    fn at_hand(&self, _: &ContextSession<'_>) -> Option<Vec<Context>> {
        Some(self.contexts())
    }
}
