//! What a session's agent is made of: model, tools, sandbox and rules, chosen once per session.

use std::sync::Arc;
use std::time::Duration;

use super::context_sources::ContextSources;
use super::skills::SessionSkills;
use super::tool_call::SessionTools;
use crate::agent::attachments::{Attachments, Reader, Sight};
use crate::agent::budget::Budgets;
use crate::context::{Arranged, Assembler, PromptWeights, SystemText};
use crate::domain::{
    CompactionStrategy, Effort, ModelRequestId, SandboxId, SessionId, SessionKey, TenantId,
    TokenUsage, Tool, UserId,
};
use crate::history::{self, Due, PromptError};
use crate::llm::catalogue::{Ability, Model};
use crate::llm::tokens::Counter;
use crate::llm::tool_search::{Deferral, ToolSearch};
use crate::llm::{Catalogue, Compactor, Overrides, ProviderKind, RetryConfig, Vendor};
use crate::providers::Providers;
use crate::sandbox::assignment::SandboxAssignment;
use crate::sandbox::host::SandboxHost;
use crate::servers::{OwnTools, Servers};
use crate::session::{Control, ModelChoice};
use crate::skills::Skills;
use crate::store::records::Payer;
use crate::telemetry::traces::Traces;

/// Tokens that an answer is expected to need where nobody set a limit.
const ORDINARY_ANSWER: u64 = 4096;
/// How much longer what is summarised is than its summary, where models are compared by price.
const TYPICAL_RATIO: u64 = 10;

/// What a request reads of its session.
#[derive(Debug, Clone, Copy)]
pub(in crate::agent) struct Reads<'a> {
    /// What was asked, for prompts that say it.
    pub(in crate::agent) input: &'a str,
    /// What the session's providers gave.
    pub(in crate::agent) arranged: &'a Arranged,
    /// Those of the session.
    pub(in crate::agent) limits: history::Limits,
    /// Whether results are in a short form, or were so in a request before.
    pub(in crate::agent) has_short_results: bool,
}

/// What every request of a session says beside its history.
pub(in crate::agent) struct RequestBase {
    pub(in crate::agent) system: SystemText,
    pub(in crate::agent) tools: Arc<[Tool]>,
    /// What a vendor that searches tools by itself is told instead of them.
    pub(in crate::agent) deferral: Option<Deferral>,
    /// What of the history fits beside them.
    pub(in crate::agent) limits: history::Limits,
    /// What would fit if the session read the whole window of the model.
    pub(in crate::agent) whole: history::Limits,
    /// Tokens of prompt and tools, and of whatever providers gave beside the history.
    pub(in crate::agent) tokens: u64,
    /// Those of prompt and tools one by one, before the provider's reports corrected them.
    pub(in crate::agent) weights: Arc<PromptWeights>,
    /// Tokens that the model can read, if somebody said so.
    pub(in crate::agent) window: Option<u64>,
}

/// A model that may say yes to calls in the place of the person who would be asked.
#[derive(Debug, Clone)]
pub struct Reviewer {
    pub choice: ModelChoice,
    /// How long it may take for one call.
    pub time_limit: Duration,
}

/// Builds the agent of a session (S2.5).
#[derive(Clone)]
pub struct AgentFactory {
    pub providers: Providers,
    pub catalogue: Catalogue,
    pub context: ContextSources,
    /// Limits of the working context, and what makes room in it.
    pub history: history::ContextRules,
    /// Tokens that one summary of what leaves the context may take; 0 = none is written.
    pub summary_budget: u64,
    /// What happens after a transient fault of the provider.
    pub retry: RetryConfig,
    /// Sent only when set (S0.45).
    pub temperature: Option<f64>,
    /// How much models think of which nobody has said anything else; none = as they do by themselves.
    pub effort: Option<Effort>,
    /// The longest answer; sent only when set.
    pub max_tokens: Option<u32>,
    /// Percent of the model's window that definitions of tools may take before they are searched
    /// instead of sent; 0 = they are always sent.
    pub defer_tools_percent: u8,
    /// Who searches them.
    pub tool_search: ToolSearch,
    /// How long a turn may go on without a person (S0.58).
    pub turn_limit: Option<Duration>,
    /// Where sandboxed tools run.
    pub place: Arc<SandboxHost>,
    /// The MCP servers of the installation and its tenants.
    pub servers: Servers,
    /// What is attached to sessions.
    pub attachments: Attachments,
    /// The skills of its tenants and their people; none = sessions have none.
    pub skills: Option<Skills>,
    /// What requests may cost.
    pub budgets: Budgets,
    pub traces: Traces,
    /// The agent's name in traces.
    pub agent_name: Arc<str>,
    /// Who reviews calls that administrators opened; none = nobody.
    pub reviewer: Option<Reviewer>,
}

/// The agent of one session.
#[derive(Clone)]
pub struct SessionAgent {
    pub(in crate::agent) tenant: TenantId,
    pub(in crate::agent) session: SessionId,
    /// Whose session it is.
    owner: UserId,
    pub(in crate::agent) budgets: Budgets,
    pub(in crate::agent) providers: Providers,
    pub(in crate::agent) catalogue: Catalogue,
    /// Gathers what its requests are made of.
    pub(in crate::agent) context: Assembler,
    pub(in crate::agent) history: history::ContextRules,
    pub(in crate::agent) summary_budget: u64,
    pub(in crate::agent) retry: RetryConfig,
    pub(in crate::agent) temperature: Option<f64>,
    effort: Option<Effort>,
    defer_tools_percent: u8,
    tool_search: ToolSearch,
    pub(in crate::agent) max_tokens: Option<u32>,
    pub(in crate::agent) turn_limit: Option<Duration>,
    pub(in crate::agent) tools: Arc<SessionTools>,
    pub(in crate::agent) skills: Arc<SessionSkills>,
    pub(in crate::agent) attachments: Attachments,
    pub(in crate::agent) traces: Traces,
    pub(in crate::agent) agent_name: Arc<str>,
    pub(in crate::agent) reviewer: Option<Reviewer>,
}

impl SessionAgent {
    /// The standing part of the next request; input, tools and prompt are counted before each one
    /// (S2.63).
    pub(in crate::agent) fn request_base(
        &self,
        choice: &ModelChoice,
        reads: Reads<'_>,
        counter: Counter,
    ) -> Result<RequestBase, PromptError> {
        let model = self.describe(choice);
        let window = model.context_window;
        let own = OwnTools::new(self.skills.are_offered(), reads.has_short_results);
        let offer = self.tools.offer(window, self.defer_tools_percent, own);
        let (tools, searchable) = (offer.definitions, offer.searchable);
        // The prompt names what is told in any case: only the provider knows who searches.
        let told = searchable.as_ref().map(|searchable| &searchable.told);
        let told = told.filter(|told| !told.is_empty()).unwrap_or(&tools);
        let system = reads.arranged.system(told, reads.input)?;
        let tokens = system.tokens(&tools, counter);
        let answer = self.max_tokens.map_or_else(
            // Not told: an answer of ordinary length, or what a small model can spare.
            || ORDINARY_ANSWER.min(window / 4),
            u64::from,
        );
        let longest = self.longest_answer(choice).map(u64::from);
        let answer = longest.map_or(answer, |longest| answer.min(longest));
        let taken = match tokens + answer {
            // A guess must not leave the past without any room.
            taken if model.is_window_assumed => taken.min(window / 2),
            taken => taken,
        };
        let fits = |limits: history::Limits| match model.max_input {
            // The answer needs no room of a request that has a limit of its own.
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
                by: self.tool_search,
            }),
            tokens,
        })
    }
}

impl AgentFactory {
    /// What holds for the working context of a tenant's sessions unless they chose otherwise.
    pub(in crate::agent) fn context_rules(&self, tenant: &TenantId) -> history::ContextRules {
        context_rules(&self.history, (&self.providers, tenant))
    }

    /// What answers in a person's new session.
    pub fn model_choice(&self, whose: (&TenantId, &UserId)) -> ModelChoice {
        self.providers.default_choice(whose)
    }

    /// The agent of `owner`'s session, which began with that sandbox. Nothing is started yet; which model
    /// answers is looked up at each request.
    pub fn create_agent(
        &self,
        key: &SessionKey,
        owner: &UserId,
        sandbox: &SandboxId,
    ) -> SessionAgent {
        let tools = Arc::new(SessionTools::new(
            self.servers.clone(),
            Arc::clone(&self.place),
            SandboxAssignment::new(
                Arc::clone(&self.place),
                key.clone(),
                owner.clone(),
                sandbox.clone(),
            ),
            self.attachments.clone(),
        ));
        let skills = SessionSkills::open(self.skills.clone(), (key, owner), &tools);
        SessionAgent {
            tenant: key.tenant.clone(),
            session: key.session.clone(),
            owner: owner.clone(),
            budgets: self.budgets.clone(),
            providers: self.providers.clone(),
            catalogue: self.catalogue,
            context: self.context.of_session(&tools, &skills),
            history: self.history.clone(),
            summary_budget: self.summary_budget,
            retry: self.retry,
            temperature: self.temperature,
            effort: self.effort,
            defer_tools_percent: self.defer_tools_percent,
            tool_search: self.tool_search,
            max_tokens: self.max_tokens,
            turn_limit: self.turn_limit,
            tools,
            skills,
            attachments: self.attachments.clone(),
            traces: self.traces.clone(),
            agent_name: Arc::clone(&self.agent_name),
            reviewer: self.reviewer.clone(),
        }
    }
}

/// What the settings or the tenant's admins say of the working context.
fn context_rules(
    settings: &history::ContextRules,
    (providers, tenant): (&Providers, &TenantId),
) -> history::ContextRules {
    let said = providers.compaction(tenant);
    history::ContextRules {
        limits: settings.limits,
        strategies: said.unwrap_or_else(|| Arc::clone(&settings.strategies)),
    }
}

impl SessionAgent {
    /// What holds for the working context unless the session chose otherwise.
    pub(in crate::agent) fn context_rules(&self) -> history::ContextRules {
        context_rules(&self.history, (&self.providers, &self.tenant))
    }

    /// How much of the past the session lets its model read: what the settings say, or whatever the
    /// model's window holds.
    pub(in crate::agent) fn limits(&self, control: &Control) -> history::Limits {
        self.context_rules().limits(control)
    }

    /// The same for the next request, which may read less since one was too long for its provider.
    pub(in crate::agent) fn turn_limits(&self, control: &Control) -> history::Limits {
        self.limits(control).lowered(control)
    }

    /// How a model's vendor compacts what it is sent; none = Sepal does.
    pub(in crate::agent) fn compactor(&self, choice: &ModelChoice) -> Option<Compactor> {
        let offer = self.providers.find(&self.tenant, &choice.provider);
        offer?.provider.compactor(&choice.model)
    }

    /// What makes room where earlier turns do not fit.
    pub(in crate::agent) fn strategies(&self, control: &Control) -> Vec<CompactionStrategy> {
        self.context_rules().strategies(control).to_vec()
    }

    /// What counts the tokens of a model.
    pub(in crate::agent) fn counter(&self, choice: &ModelChoice) -> Counter {
        let offer = self.providers.find(&self.tenant, &choice.provider);
        offer.map_or_else(Counter::default, |offer| offer.counter(&choice.model))
    }

    /// What is known or assumed of a model.
    pub(in crate::agent) fn describe(&self, choice: &ModelChoice) -> Model {
        let offer = self.providers.find(&self.tenant, &choice.provider);
        offer.map_or_else(
            || {
                self.catalogue
                    .describe(Vendor::default(), &choice.model, &Overrides::default())
            },
            |offer| offer.describe(self.catalogue, &choice.model),
        )
    }

    /// How much a model may think: what the session chose, what was said of the model, or the
    /// settings' own.
    pub(in crate::agent) fn effort(&self, choice: &ModelChoice) -> Option<Effort> {
        let offer = self.providers.find(&self.tenant, &choice.provider);
        let said = offer.and_then(|offer| offer.said().efforts.get(&choice.model).copied());
        choice.effort.or(said).or(self.effort)
    }

    /// Who writes a summary: the cheapest model that the session's provider offers. No other provider,
    /// because the person chose who reads the conversation.
    pub(in crate::agent) fn summariser(&self, session: &ModelChoice, due: &Due) -> ModelChoice {
        let Some(offer) = self.providers.find(&self.tenant, &session.provider) else {
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
        let priced = offered.filter_map(|model| {
            let cost = offer.describe(self.catalogue, model).price(&usage)?;
            Some((cost, model))
        });
        let cheapest = priced.min_by_key(|(cost, _)| *cost);
        cheapest.map_or_else(
            || session.clone(),
            |(_, model)| ModelChoice::new(offer.id(), model),
        )
    }

    /// The session that it answers in.
    pub(in crate::agent) fn key(&self) -> SessionKey {
        SessionKey {
            tenant: self.tenant.clone(),
            session: self.session.clone(),
        }
    }

    /// Who pays for a model request of the running turn.
    pub(in crate::agent) fn payer(&self, control: &Control, request: ModelRequestId) -> Payer {
        let turn = control.turn.as_ref();
        Payer {
            key: self.key(),
            owner: self.owner.clone(),
            request: Some(request),
            session_since: control.created_at,
            turn_since: turn.map_or(control.created_at, |turn| turn.started),
        }
    }

    /// What a model reads of what is attached, where the session lets it read so much.
    pub(in crate::agent) fn reader(&self, choice: &ModelChoice, limits: history::Limits) -> Reader {
        let window = self.describe(choice).context_window;
        let most = limits.max_tokens.map_or(window, |most| most.min(window));
        Reader::new(self.sight(choice), most)
    }

    /// What a model can see of what is attached. One that nobody described is sent everything: its
    /// provider knows better.
    fn sight(&self, choice: &ModelChoice) -> Sight {
        let Some(offer) = self.providers.find(&self.tenant, &choice.provider) else {
            return Sight::Documents;
        };
        let is_known = offer.knows(self.catalogue, &choice.model);
        let has_images = !is_known || self.describe(choice).can(Ability::Images);
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

    /// Tokens of the longest answer of a model, if somebody said so.
    pub(in crate::agent) fn longest_answer(&self, choice: &ModelChoice) -> Option<u32> {
        let offer = self.providers.find(&self.tenant, &choice.provider)?;
        let said = offer.said().max_outputs.get(&choice.model)?;
        u32::try_from(*said).ok()
    }
}
