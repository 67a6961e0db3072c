//! What a session's agent is made of: model, tools, sandbox and rules, chosen once per session.

use std::sync::Arc;

use super::home::Home;
use super::place::SandboxPlace;
use super::servers::Servers;
use super::tools::SessionTools;
use crate::domain::{SandboxId, SessionKey, Tool};
use crate::history::{self, PromptError, SystemPrompt};
use crate::llm::{Catalogue, Provider, RetryConfig, tokens};
use crate::session::ModelChoice;

/// Tokens that an answer is expected to need where nobody set a limit.
const ORDINARY_ANSWER: u64 = 4096;

/// What limits the working context.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChatLimits {
    /// What of the history the model is shown.
    pub history: history::Limits,
    /// Tokens that the model can read, if known.
    pub window: Option<u64>,
}

/// What every request of a session says beside its history.
pub(super) struct Standing {
    /// The system prompt.
    pub(super) system: String,
    /// The tools.
    pub(super) tools: Arc<[Tool]>,
    /// What of the history fits beside them.
    pub(super) limits: history::Limits,
    /// Tokens of prompt and tools.
    pub(super) tokens: u64,
}

/// Builds the agent of a session (S2.5).
#[derive(Clone)]
pub struct AgentFactory {
    /// The model provider.
    pub provider: Arc<dyn Provider>,
    /// The model that new sessions get.
    pub model: String,
    /// Prices and windows.
    pub catalogue: Arc<Catalogue>,
    /// The system prompt.
    pub prompt: Arc<SystemPrompt>,
    /// Limits of the working context.
    pub history: history::Limits,
    /// What happens after a transient fault of the provider.
    pub retry: RetryConfig,
    /// Sent only when set (S0.45).
    pub temperature: Option<f64>,
    /// The longest answer; sent only when set.
    pub max_tokens: Option<u32>,
    /// Where sandboxed tools run.
    pub place: Arc<SandboxPlace>,
    /// The MCP servers of the installation and its tenants.
    pub servers: Servers,
}

/// The agent of one session.
#[derive(Clone)]
pub struct AgentParts {
    pub(super) provider: Arc<dyn Provider>,
    pub(super) catalogue: Arc<Catalogue>,
    pub(super) prompt: Arc<SystemPrompt>,
    pub(super) limits: ChatLimits,
    pub(super) retry: RetryConfig,
    pub(super) temperature: Option<f64>,
    pub(super) max_tokens: Option<u32>,
    pub(super) tools: Arc<SessionTools>,
}

impl AgentParts {
    /// The standing part of the next request; input, tools and prompt are counted before each one
    /// (S2.63).
    /// `input` is what was asked, for prompts that say it.
    pub(super) fn standing(&self, input: &str) -> Result<Standing, PromptError> {
        let tools = self.tools.definitions();
        let system = self.prompt.render(&tools, input)?;
        let tokens = tokens::of_text(&system) + tools.iter().map(tokens::of_tool).sum::<u64>();
        let window = self.limits.window;
        let answer = self.max_tokens.map(u64::from).or_else(|| {
            // Not told: an answer of ordinary length, or what a small model can spare.
            window.map(|window| ORDINARY_ANSWER.min(window / 4))
        });
        let taken = tokens + answer.unwrap_or_default();
        Ok(Standing {
            limits: self.limits.history.within(window, taken),
            system,
            tools,
            tokens,
        })
    }
}

impl AgentFactory {
    /// What answers in a new session.
    pub fn model_choice(&self) -> ModelChoice {
        ModelChoice {
            provider: self.provider.id().to_owned(),
            model: self.model.clone(),
        }
    }

    /// The agent of a session that began with that sandbox. Nothing is started yet.
    pub fn create_agent(&self, key: &SessionKey, sandbox: &SandboxId) -> AgentParts {
        let window = self
            .catalogue
            .find(&self.model)
            .map(|model| model.context_window);
        AgentParts {
            provider: Arc::clone(&self.provider),
            catalogue: Arc::clone(&self.catalogue),
            prompt: Arc::clone(&self.prompt),
            limits: ChatLimits {
                history: self.history,
                window,
            },
            retry: self.retry,
            temperature: self.temperature,
            max_tokens: self.max_tokens,
            tools: Arc::new(SessionTools::new(
                self.servers.clone(),
                Arc::clone(&self.place),
                Home::new(Arc::clone(&self.place), key.clone(), sandbox.clone()),
            )),
        }
    }
}
