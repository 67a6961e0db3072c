//! Provides the system prompt as a context (S4.3).

use std::sync::Arc;

use async_trait::async_trait;

use super::prompts::Prompts;
use super::provider::{ContextError, ContextProvider, ContextSession};
use super::value::Context;

use sepal_core::history::{Input, PromptError, SystemPrompt};

/// Provides the system prompt: a template whose placeholders the assembler fills in, because only the request
/// knows which tools are offered.
#[derive(Debug, Clone)]
pub struct SystemPromptProvider(Arc<Prompts>);

impl SystemPromptProvider {
    /// Parses the template, so that a mistake in it is an error now and not in a turn.
    pub fn new(template: &str, input: Input<'_>) -> Result<Self, PromptError> {
        let prompt = SystemPrompt::new(template, input)?;
        Ok(Self(Arc::new(Prompts::new(prompt))))
    }

    /// The prompt's context.
    pub fn context(&self) -> Context {
        Context::of_template(Arc::clone(&self.0))
    }
}

impl Default for SystemPromptProvider {
    /// An empty prompt.
    fn default() -> Self {
        Self(Arc::new(Prompts::new(SystemPrompt::default())))
    }
}

#[async_trait]
impl ContextProvider for SystemPromptProvider {
    fn name(&self) -> &'static str {
        "system-prompt"
    }

    async fn provide(&self, _: &ContextSession<'_>) -> Result<Vec<Context>, ContextError> {
        Ok(vec![self.context()])
    }

    fn at_hand(&self, _: &ContextSession<'_>) -> Option<Vec<Context>> {
        Some(vec![self.context()])
    }
}
