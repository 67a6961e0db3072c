//! What a session's agent is made of: model, tools, sandbox and rules, chosen once per session.

use std::sync::Arc;

use super::home::Home;
use super::place::SandboxPlace;
use super::providers::Providers;
use super::servers::Servers;
use super::standing::{Prompts, Rendered};
use super::tools::SessionTools;
use crate::domain::{SandboxId, SessionId, SessionKey, TenantId, Tool};
use crate::history::{self, PromptError};
use crate::llm::{Catalogue, RetryConfig};
use crate::session::{Control, ModelChoice};
use crate::telemetry::traces::Traces;

/// Tokens that an answer is expected to need where nobody set a limit.
const ORDINARY_ANSWER: u64 = 4096;

/// What every request of a session says beside its history.
pub(super) struct Standing {
    /// The system prompt.
    pub(super) system: Arc<str>,
    /// The tools.
    pub(super) tools: Arc<[Tool]>,
    /// What of the history fits beside them.
    pub(super) limits: history::Limits,
    /// What would fit if the session read the whole window of the model.
    pub(super) whole: history::Limits,
    /// Tokens of prompt and tools.
    pub(super) tokens: u64,
}

/// Builds the agent of a session (S2.5).
#[derive(Clone)]
pub struct AgentFactory {
    /// The model providers.
    pub providers: Providers,
    /// Prices and windows.
    pub catalogue: Arc<Catalogue>,
    /// The system prompt.
    pub prompts: Arc<Prompts>,
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
    /// Where spans go.
    pub traces: Traces,
    /// The agent's name in traces.
    pub agent_name: Arc<str>,
}

/// The agent of one session.
#[derive(Clone)]
pub struct AgentParts {
    pub(super) tenant: TenantId,
    /// For the log.
    pub(super) session: SessionId,
    pub(super) providers: Providers,
    pub(super) catalogue: Arc<Catalogue>,
    pub(super) prompts: Arc<Prompts>,
    pub(super) history: history::Limits,
    pub(super) retry: RetryConfig,
    pub(super) temperature: Option<f64>,
    pub(super) max_tokens: Option<u32>,
    pub(super) tools: Arc<SessionTools>,
    pub(super) traces: Traces,
    pub(super) agent_name: Arc<str>,
}

impl AgentParts {
    /// The standing part of the next request; input, tools and prompt are counted before each one
    /// (S2.63).
    /// `input` is what was asked, for prompts that say it; `limits` are those of the session.
    pub(super) fn standing(
        &self,
        choice: &ModelChoice,
        input: &str,
        limits: history::Limits,
    ) -> Result<Standing, PromptError> {
        let tools = self.tools.definitions();
        let Rendered { system, tokens } = self.prompts.with(&tools, input)?;
        let window = self.window(choice);
        let answer = self.max_tokens.map(u64::from).or_else(|| {
            // Not told: an answer of ordinary length, or what a small model can spare.
            window.map(|window| ORDINARY_ANSWER.min(window / 4))
        });
        let taken = tokens + answer.unwrap_or_default();
        Ok(Standing {
            limits: limits.within(window, taken),
            whole: history::Limits::default().within(window, taken),
            system,
            tools,
            tokens,
        })
    }
}

impl AgentFactory {
    /// What answers in a tenant's new session.
    pub fn model_choice(&self, tenant: &TenantId) -> ModelChoice {
        self.providers.default_choice(tenant)
    }

    /// The agent of a session that began with that sandbox. Nothing is started yet; which model
    /// answers is looked up at each request.
    pub fn create_agent(&self, key: &SessionKey, sandbox: &SandboxId) -> AgentParts {
        AgentParts {
            tenant: key.tenant.clone(),
            session: key.session.clone(),
            providers: self.providers.clone(),
            catalogue: Arc::clone(&self.catalogue),
            prompts: Arc::clone(&self.prompts),
            history: self.history,
            retry: self.retry,
            temperature: self.temperature,
            max_tokens: self.max_tokens,
            tools: Arc::new(SessionTools::new(
                self.servers.clone(),
                Arc::clone(&self.place),
                Home::new(Arc::clone(&self.place), key.clone(), sandbox.clone()),
            )),
            traces: self.traces.clone(),
            agent_name: Arc::clone(&self.agent_name),
        }
    }
}

impl AgentParts {
    /// How much of the past the session lets its model read: what the settings say, or whatever the
    /// model's window holds.
    pub(super) fn limits(&self, control: &Control) -> history::Limits {
        limits(control, self.history)
    }

    /// Tokens that the model can read, if known.
    pub(super) fn window(&self, choice: &ModelChoice) -> Option<u64> {
        let known = self.catalogue.find(&choice.model);
        known.map(|model| model.context_window)
    }
}

/// The limits of a session where the settings say `usual`.
pub(super) fn limits(control: &Control, usual: history::Limits) -> history::Limits {
    if control.reads_whole {
        history::Limits::default()
    } else {
        usual
    }
}
