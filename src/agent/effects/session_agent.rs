//! Builds the agent of a session: model, tools, sandbox and rules.

use std::sync::Arc;
use std::time::Duration;

use super::assistant::AssistantInstructions;
use super::skills::SessionSkills;
use super::tool_call::SessionTools;
use super::tool_call::workspace::instructions::WorkspaceInstructions;
use super::tool_call::workspace::undone::UndoneChanges;
use crate::agent::attachments::{Attachments, Reader, Sight};
use crate::agent::budget::Budgets;
use crate::agent::service_events::ServiceObserver;
use crate::context::{
    ArrangedContexts, Assembler, ContextBuilder, ContextProvider, HistoryProvider, PromptWeights,
    SystemPromptProvider, SystemText,
};
use crate::domain::{
    Effort, ModelRequestId, SandboxId, SessionId, SessionKey, TenantId, TokenUsage, Tool, UserId,
};
use crate::history::{self, CompactionStrategy, Due, PromptError};
use crate::llm::catalogue::{self, Abilities, Ability, Model};
use crate::llm::tokens::Counter;
use crate::llm::tool_search::{Deferral, ToolSearch};
use crate::llm::{Compactor, Overrides, ProviderKind, RetryConfig, Vendor};
use crate::providers::Providers;
use crate::sandbox::assignment::SandboxAssignment;
use crate::sandbox::host::SandboxHost;
use crate::servers::{OwnTools, Servers};
use crate::session::{Control, ModelChoice};
use crate::skills::Skills;
use crate::store::records::Payer;
use crate::telemetry::traces::Traces;

/// The expected tokens of an answer if no limit is set.
const ORDINARY_ANSWER: u64 = 4096;
/// The assumed ratio of a summary's source to the summary, for comparing models by price.
const TYPICAL_RATIO: u64 = 10;

/// The input of a request from its session.
#[derive(Debug, Clone, Copy)]
pub(in crate::agent) struct Reads<'a> {
    /// The person's question, for prompts that contain it.
    pub(in crate::agent) input: &'a str,
    /// The arranged contexts of the session's providers.
    pub(in crate::agent) arranged: &'a ArrangedContexts,
    /// The session's limits.
    pub(in crate::agent) limits: history::Limits,
    /// True if results are shortened, or were in an earlier request.
    pub(in crate::agent) has_short_results: bool,
}

/// The part of a request besides the history.
pub(in crate::agent) struct RequestBase {
    pub(in crate::agent) system: SystemText,
    pub(in crate::agent) tools: Arc<[Tool]>,
    /// The tools that are deferred to a search instead of sent.
    pub(in crate::agent) deferral: Option<Deferral>,
    /// The limits of the history that fits beside it.
    pub(in crate::agent) limits: history::Limits,
    /// The limits if the session read the whole window of the model.
    pub(in crate::agent) whole: history::Limits,
    /// Tokens of prompt, tools, and the providers' contexts besides the history.
    pub(in crate::agent) tokens: u64,
    /// The tokens of prompt and tools one by one, before correction by the provider's reports.
    pub(in crate::agent) weights: Arc<PromptWeights>,
    /// The model's window in tokens, if it is known.
    pub(in crate::agent) window: Option<u64>,
}

/// A model that may approve calls in place of the person who would be asked.
#[derive(Debug, Clone)]
pub struct Reviewer {
    pub choice: ModelChoice,
    /// The time limit for one call.
    pub time_limit: Duration,
}

/// The parts that the agents of all sessions share: those of the process, and the operator's settings.
pub struct AgentParts {
    pub providers: Providers,
    pub context: ContextSources,
    /// The limits of the working context, and its compaction strategies.
    pub history: history::ContextRules,
    /// The token limit of one summary of entries that leave the context; 0 = no summaries.
    pub summary_budget: u64,
    /// The retries after a transient error of the provider.
    pub retry: RetryConfig,
    /// Sent only when set (S0.45).
    pub temperature: Option<f64>,
    /// The effort of models for which no other is set; `None` = the model's own default.
    pub effort: Option<Effort>,
    /// The longest answer; sent only when set.
    pub max_tokens: Option<u32>,
    /// The percentage of the model's window above which tool definitions are searched instead of sent; 0 =
    /// they are always sent.
    pub defer_tools_percent: u8,
    /// The kind of tool search.
    pub tool_search: ToolSearch,
    /// The time for which a turn may go on without a person (S0.58).
    pub turn_limit: Option<Duration>,
    /// The host of sandboxed tools.
    pub place: Arc<SandboxHost>,
    /// The MCP servers of the installation and its tenants.
    pub servers: Servers,
    /// The attachments of sessions.
    pub attachments: Attachments,
    /// The skills of tenants and people; `None` = no skills.
    pub skills: Option<Skills>,
    /// The budgets of requests.
    pub budgets: Budgets,
    pub traces: Traces,
    /// The agent's name in traces.
    pub agent_name: Arc<str>,
    /// The reviewer of calls that administrators opened to it; `None` = nobody.
    pub reviewer: Option<Reviewer>,
    /// The observer of a program that embeds the gateway.
    pub observer: Option<Arc<dyn ServiceObserver>>,
}

/// Makes the agent of each session, and chooses the provider and model that a new session begins with (S2.5).
#[derive(Clone)]
pub struct AgentFactory {
    pub(in crate::agent) parts: Arc<AgentParts>,
}

/// The agent of one session.
#[derive(Clone)]
pub struct SessionAgent {
    pub(in crate::agent) tenant: TenantId,
    pub(in crate::agent) session: SessionId,
    /// The owner of the session.
    pub(in crate::agent) owner: UserId,
    pub(in crate::agent) parts: Arc<AgentParts>,
    /// Assembles the contexts of requests.
    pub(in crate::agent) context: Assembler,
    pub(in crate::agent) tools: Arc<SessionTools>,
    pub(in crate::agent) skills: Arc<SessionSkills>,
}

impl SessionAgent {
    /// Returns the part of the next request besides the history; input, tools and prompt are counted before
    /// each request (S2.63).
    pub(in crate::agent) fn request_base(
        &self,
        choice: &ModelChoice,
        reads: Reads<'_>,
        counter: Counter,
    ) -> Result<RequestBase, PromptError> {
        let model = self.describe(choice);
        let window = model.context_window;
        let own = OwnTools::new(self.skills.are_offered(), reads.has_short_results);
        let limits = (window, self.parts.defer_tools_percent);
        let offer = self.tools.offer(&choice.provider, limits, own);
        let (tools, searchable) = (offer.definitions, offer.searchable);
        // The prompt lists only tools that are sent in any case, because the provider decides who searches
        // the others.
        let told = searchable.as_ref().map(|searchable| &searchable.told);
        let told = told.filter(|told| !told.is_empty()).unwrap_or(&tools);
        let system = reads.arranged.system(told, reads.input)?;
        let tokens = system.tokens(&tools, counter);
        let answer = self.parts.max_tokens.map_or_else(
            // Without a limit: an ordinary answer, or what a small model can spare.
            || ORDINARY_ANSWER.min(window / 4),
            u64::from,
        );
        let longest = self.longest_answer(choice).map(u64::from);
        let answer = longest.map_or(answer, |longest| answer.min(longest));
        let taken = match tokens + answer {
            // An assumed window must still leave room for the history.
            taken if model.is_window_assumed => taken.min(window / 2),
            taken => taken,
        };
        let fits = |limits: history::Limits| match model.max_input {
            // If the input has its own limit, the answer needs no room in it.
            Some(most) => limits.within(window, taken).within(most, tokens),
            None => limits.within(window, taken),
        };
        Ok(RequestBase {
            limits: fits(reads.limits),
            whole: fits(history::Limits::default()),
            window: (!model.is_window_assumed).then_some(window),
            weights: system.weights(&tools, counter),
            system,
            tools,
            deferral: searchable.map(|searchable| Deferral {
                searchable,
                by: self.parts.tool_search,
            }),
            tokens,
        })
    }
}

impl AgentFactory {
    /// Makes a factory of agents with these parts.
    pub fn new(parts: AgentParts) -> Self {
        Self {
            parts: Arc::new(parts),
        }
    }

    /// Returns the context rules of a tenant's sessions unless they chose others.
    pub(in crate::agent) fn context_rules(&self, tenant: &TenantId) -> history::ContextRules {
        self.parts.context_rules(tenant)
    }

    /// Returns the model of a person's new session.
    pub fn model_choice(&self, whose: (&TenantId, &UserId)) -> ModelChoice {
        self.parts.providers.default_choice(whose)
    }

    /// Makes the agent of `owner`'s session, which began with that sandbox. Starts nothing yet; the model is
    /// looked up at each request.
    pub fn create_agent(
        &self,
        key: &SessionKey,
        owner: &UserId,
        sandbox: &SandboxId,
    ) -> SessionAgent {
        let parts = &self.parts;
        let tools = Arc::new(SessionTools::new(
            parts.servers.clone(),
            Arc::clone(&parts.place),
            SandboxAssignment::new(
                Arc::clone(&parts.place),
                key.clone(),
                owner.clone(),
                sandbox.clone(),
            ),
            parts.attachments.clone(),
        ));
        let skills = SessionSkills::open(parts.skills.clone(), key, owner, &tools);
        SessionAgent {
            tenant: key.tenant.clone(),
            session: key.session.clone(),
            owner: owner.clone(),
            parts: Arc::clone(parts),
            context: parts.context.of_session(&tools, &skills),
            tools,
            skills,
        }
    }
}

impl AgentParts {
    /// Combines the settings with the strategies of the tenant's admins.
    fn context_rules(&self, tenant: &TenantId) -> history::ContextRules {
        let chosen = self.providers.compaction(tenant);
        history::ContextRules {
            limits: self.history.limits,
            strategies: chosen.unwrap_or_else(|| Arc::clone(&self.history.strategies)),
            own: Arc::clone(&self.history.own),
        }
    }
}

impl SessionAgent {
    /// Returns the context rules unless the session chose others.
    pub(in crate::agent) fn context_rules(&self) -> history::ContextRules {
        self.parts.context_rules(&self.tenant)
    }

    /// Returns how much of the history the session lets its model read: by the settings, or the whole window.
    pub(in crate::agent) fn limits(&self, control: &Control) -> history::Limits {
        self.context_rules().limits(control)
    }

    /// Returns the limits of the next request, lowered if an earlier one was too long for its provider.
    pub(in crate::agent) fn turn_limits(&self, control: &Control) -> history::Limits {
        self.limits(control).lowered(control)
    }

    /// Returns the compactor of a model's vendor; `None` = Sepal compacts.
    pub(in crate::agent) fn compactor(&self, choice: &ModelChoice) -> Option<Compactor> {
        let offer = self.parts.providers.find(&self.tenant, &choice.provider);
        offer?.provider.compactor(&choice.model)
    }

    /// Returns the strategies to use if earlier turns do not fit.
    pub(in crate::agent) fn strategies(
        &self,
        control: &Control,
    ) -> Vec<Arc<dyn CompactionStrategy>> {
        self.context_rules().all(control)
    }

    /// Returns the token counter of a model.
    pub(in crate::agent) fn counter(&self, choice: &ModelChoice) -> Counter {
        let offer = self.parts.providers.find(&self.tenant, &choice.provider);
        offer.map_or_else(Counter::default, |offer| offer.counter(&choice.model))
    }

    /// Returns the known or assumed description of a model.
    pub(in crate::agent) fn describe(&self, choice: &ModelChoice) -> Arc<Model> {
        let offer = self.parts.providers.find(&self.tenant, &choice.provider);
        offer.map_or_else(
            || {
                let of = Vendor::default();
                Arc::new(catalogue::describe(
                    of,
                    &choice.model,
                    &Overrides::default(),
                ))
            },
            |offer| offer.describe(&choice.model),
        )
    }

    /// Returns the effort of a model: from the session, the provider's setting for the model, or the
    /// settings.
    pub(in crate::agent) fn effort(&self, choice: &ModelChoice) -> Option<Effort> {
        let offer = self.parts.providers.find(&self.tenant, &choice.provider);
        let said = offer.and_then(|offer| offer.said().efforts.get(&choice.model).copied());
        choice.effort.or(said).or(self.parts.effort)
    }

    /// Chooses the model that writes a summary: the cheapest one that the session's provider offers. Never
    /// another provider, because the person chose who reads the conversation.
    pub(in crate::agent) fn summariser(&self, session: &ModelChoice, due: &Due) -> ModelChoice {
        let Some(offer) = self.parts.providers.find(&self.tenant, &session.provider) else {
            return session.clone();
        };
        let usage = TokenUsage {
            input_tokens: due.max_tokens.saturating_mul(TYPICAL_RATIO),
            output_tokens: due.max_tokens,
            ..TokenUsage::default()
        };
        let own = [session.model.as_str()];
        let offered = offer.models().iter().map(String::as_str);
        let offered = own.into_iter().chain(offered).chain(offer.default_model());
        let whose = (&self.tenant, &self.owner);
        let is_open = |model: &&str| {
            let choice = ModelChoice::new(offer.id(), *model);
            self.parts.providers.may_use(whose, &choice)
        };
        let offered = offered.filter(is_open);
        let priced = offered.filter_map(|model| {
            let cost = offer.describe(model).price(&usage)?;
            Some((cost, model))
        });
        let cheapest = priced.min_by_key(|(cost, _)| *cost);
        cheapest.map_or_else(
            || session.clone(),
            |(_, model)| ModelChoice::new(offer.id(), model),
        )
    }

    /// The key of its session.
    pub(in crate::agent) fn key(&self) -> SessionKey {
        SessionKey {
            tenant: self.tenant.clone(),
            session: self.session.clone(),
        }
    }

    /// Returns the payer of a model request of the running turn.
    pub(in crate::agent) fn payer(&self, control: &Control, request: ModelRequestId) -> Payer {
        let turn = control.turn.as_ref();
        Payer {
            key: self.key(),
            owner: self.owner.clone(),
            request: Some(request),
            session_since: control.created_at,
            turn_since: turn.map_or(control.created_at, |turn| turn.started),
            assistant: control
                .assistant
                .as_ref()
                .and_then(|assistant| assistant.definition.budget),
        }
    }

    /// Returns the model's ability to read attachments, within the session's limits.
    pub(in crate::agent) fn reader(&self, choice: &ModelChoice, limits: history::Limits) -> Reader {
        let window = self.describe(choice).context_window;
        let most = limits.max_tokens.map_or(window, |most| most.min(window));
        Reader::new(self.sight(choice), most)
    }

    /// Returns the attachments that a model can see. A model without a description is sent everything: its
    /// provider decides.
    fn sight(&self, choice: &ModelChoice) -> Sight {
        let Some(offer) = self.parts.providers.find(&self.tenant, &choice.provider) else {
            return Sight::Documents;
        };
        let model = offer.describe(&choice.model);
        let has_images = model.abilities_are != Abilities::Known || model.can(Ability::Images);
        let reads_pdf = match offer.kind() {
            ProviderKind::OpenAi | ProviderKind::Anthropic | ProviderKind::Gemini => true,
            ProviderKind::OpenAiCompatible | ProviderKind::Scripted => false,
        };
        match (has_images, reads_pdf) {
            (true, _) if offer.kind() == ProviderKind::Gemini => Sight::Sounds,
            (true, true) => Sight::Documents,
            (true, false) => Sight::Images,
            (false, _) => Sight::Nothing,
        }
    }

    /// Returns the token limit of a model's answer, if one is set.
    pub(in crate::agent) fn longest_answer(&self, choice: &ModelChoice) -> Option<u32> {
        let offer = self.parts.providers.find(&self.tenant, &choice.provider)?;
        let said = offer.said().max_outputs.get(&choice.model)?;
        u32::try_from(*said).ok()
    }
}

/// The sources of context for an installation's sessions, besides each session's own history.
#[derive(Clone, Default)]
pub struct ContextSources {
    pub system_prompt: SystemPromptProvider,
    /// The most bytes read of each instruction file in a workspace; `None` = instruction files are not read.
    pub workspace_instructions: Option<u64>,
    /// Providers whose context is shown before the history, because it seldom changes.
    pub before: Vec<Arc<dyn ContextProvider>>,
    /// Providers whose context is shown right before the newest question, because it changes from turn to
    /// turn.
    pub after: Vec<Arc<dyn ContextProvider>>,
}

impl ContextSources {
    /// Makes the assembler of the session with these tools and skills.
    pub(super) fn of_session(
        &self,
        tools: &Arc<SessionTools>,
        skills: &Arc<SessionSkills>,
    ) -> Assembler {
        let skills: Arc<dyn ContextProvider> = Arc::<SessionSkills>::clone(skills);
        let instructions = self.workspace_instructions.map(|most| {
            let instructions = WorkspaceInstructions::new(Arc::clone(tools), most);
            Arc::new(instructions) as Arc<dyn ContextProvider>
        });
        let assistant: Arc<dyn ContextProvider> =
            Arc::new(AssistantInstructions::new(Arc::clone(tools)));
        let history: Arc<dyn ContextProvider> = Arc::new(HistoryProvider::whole());
        let undone: Arc<dyn ContextProvider> = Arc::new(UndoneChanges::new(Arc::clone(tools)));
        ContextBuilder::default()
            .with_system_prompt(self.system_prompt.clone())
            .with_context_providers([assistant])
            .with_context_providers(self.before.iter().cloned())
            .with_context_providers([skills])
            .with_context_providers(instructions)
            .with_context_providers([history])
            .with_context_providers([undone])
            .with_context_providers(self.after.iter().cloned())
            .build()
    }
}
