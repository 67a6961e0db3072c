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

#[cfg(test)]
mod tests {
    use sepal_core::domain::{SessionId, SessionKey, TenantId};
    use sepal_core::history::Input;

    use super::SystemPromptProvider;
    use crate::{ContextKind, ContextProvider, ContextSession};

    /// Asserts S4.3.
    #[tokio::test]
    async fn the_prompt_is_one_context_of_the_kind_system() {
        let key = SessionKey {
            tenant: TenantId::from_bits(1),
            session: SessionId::from_bits(1),
        };
        let session = ContextSession::create(key);
        let provider = SystemPromptProvider::new("Be kind.", Input::Apart("query")).unwrap();
        let given = provider.provide(&session).await.unwrap();
        let shown: Vec<_> = given
            .iter()
            .map(|context| (context.kind(), context.content()))
            .collect();
        assert_eq!(shown, [(&ContextKind::System, "Be kind.".into())]);
    }
}
