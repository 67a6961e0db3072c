//! `agent`: its name, its tool, what the model is shown, and who runs the model.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use secrecy::SecretString;
use serde::{Deserialize, Deserializer};
use url::Url;

use super::of_models::{ModelPrice, effort, efforts, max_outputs, prices, windows};
use super::read;
use sepal_core::domain::{CompactionStrategy, Effort};

/// `agent.name` and `agent.version`.
#[derive(Debug, Clone)]
pub struct Agent {
    pub name: String,
    pub version: String,
}

/// `agent.tool`: the one tool of the agent as an MCP server (S0.32).
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    pub name: String,
    /// What it says of itself.
    pub description: String,
    /// The name of its one argument.
    pub argument_name: String,
    /// What the argument says of itself.
    pub argument_description: String,
}

/// Who decides about a call of the agent as an MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalWay {
    /// The client's person, asked by MCP elicitation.
    Elicit,
    /// A person in the page.
    Web,
    /// Nobody: the call is rejected.
    Deny,
    /// Nobody: the call runs.
    Auto,
}

/// `agent.chat`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chat {
    /// Tokens of history that the model is shown; `None` = as many as its window holds.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub max_tokens: Option<NonZeroU32>,
    /// Messages of history that the model is shown; `None` = no limit.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub max_messages: Option<NonZeroU32>,
    /// Model requests of one turn.
    pub max_llm_iterations: NonZeroU32,
    /// How often in a row a turn may make the same calls while they give the same; `None` = no limit.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub max_same_calls: Option<NonZeroU32>,
    /// How long a turn may go on without a person; `None` = as long as it takes.
    #[serde(rename = "turn_timeout_s", deserialize_with = "read::zero_is_never")]
    pub turn_limit: Option<Duration>,
    /// How long a call waits for a decision before it is rejected; `None` = until there is one.
    #[serde(rename = "approval_expiry_s", deserialize_with = "read::zero_is_never")]
    pub approval_expiry: Option<Duration>,
    /// The treatment of arguments that others than the owner of a session change.
    pub edits_by_others: EditsByOthers,
    /// What one turn may cost, in US dollars; 0 = no limit.
    pub request_budget: f64,
    /// What one session may cost, in US dollars; 0 = no limit.
    pub session_budget: f64,
    /// What happens to history that does not fit, the first way that suffices.
    pub compaction_strategy: Vec<CompactionStrategy>,
    /// Tokens that one summary may take; 0 = none is written.
    pub summary_budget_tokens: u32,
    /// Who gives sessions their titles.
    pub titles: Titles,
}

/// The treatment of arguments that somebody changes who is asked about a call of another person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EditsByOthers {
    /// They run once the owner of the session has said yes to them, too.
    AskOwner,
    /// They are refused.
    Refuse,
}

/// Who gives sessions their titles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Titles {
    /// Nobody: they are the first words of the first message.
    FirstWords,
    /// A model, after its first answer.
    Model,
}

/// `agent.llm`, with the default chosen and every vendor's variables in its entry.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Llm {
    /// The name of the default entry of `providers`.
    pub provider: String,
    /// Every provider by name: a kind's canonical name (D12), or one that the operator chose.
    pub providers: BTreeMap<String, ProviderEntry>,
    /// The default provider's model, by its name for it.
    pub model: String,
    /// What budgets count for a request whose price nobody knows, in US dollars; 0 = it is refused.
    pub unpriced_request_usd: f64,
    /// Sent only when set (S0.45).
    pub temperature: Option<f64>,
    /// How much models think of which nothing else is said; `None` = as they do by themselves.
    #[serde(deserialize_with = "effort")]
    pub effort: Option<Effort>,
    /// Tokens of one answer; sent only when set (S0.45, S0.67).
    #[serde(deserialize_with = "read::zero_is_none_option")]
    pub max_tokens: Option<NonZeroU32>,
    /// Percent of the model's window that definitions of tools may take before they are searched
    /// instead of sent; 0 = they are always sent.
    pub defer_tools_percent: u8,
    /// Who searches them.
    pub tool_search: ToolSearch,
    /// The system prompt, a Jinja2 template.
    pub prompt_template: String,
    /// What happens after a transient fault.
    pub retry: Retry,
    /// When a provider counts as out.
    pub breaker: Breaker,
    /// Pause between two pieces of the scripted model's answer.
    #[serde(rename = "scripted_pace_ms", deserialize_with = "read::milliseconds")]
    pub scripted_pace: Duration,
}

impl Llm {
    /// The entry of the default provider.
    pub fn default_entry(&self) -> Option<&ProviderEntry> {
        self.providers.get(&self.provider)
    }

    /// Tokens that an answer of such a provider may have; `None` = not sent (S0.45, S0.67, D16).
    pub fn max_tokens_for(&self, kind: ProviderKind) -> Option<u32> {
        let set = self.max_tokens.map(NonZeroU32::get);
        set.or_else(|| kind.required_max_tokens())
    }
}

/// One entry of `agent.llm.providers`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderEntry {
    pub kind: ProviderKind,
    /// The key; the vendors need one (S2.22).
    #[serde(default)]
    pub api_key: Option<SecretString>,
    /// Further keys, for when those before them are out.
    #[serde(default, deserialize_with = "keys")]
    pub api_keys: Vec<SecretString>,
    /// What answers instead while it is out.
    #[serde(default, deserialize_with = "fallbacks")]
    pub fallback: Vec<FallbackEntry>,
    /// Where the API is; `None` = the vendor's own address.
    #[serde(default, deserialize_with = "read::parsed_option")]
    pub base_url: Option<Url>,
    /// Which of OpenAI's interfaces it is spoken to in.
    #[serde(default)]
    pub api: ApiFlavour,
    /// How long its prompt cache keeps what it is given, where that can be chosen.
    #[serde(default)]
    pub cache_ttl: CacheTtl,
    /// Who makes room in the context of its models.
    #[serde(default)]
    pub compaction: CompactedBy,
    /// Tokens of input from which on its vendor compacts; `None` = what the limits of the history say.
    #[serde(default)]
    pub compaction_threshold: Option<u64>,
    /// Models to offer beside those that it lists itself.
    #[serde(default)]
    pub models: Vec<String>,
    /// Tokens that its models can read, where the catalogue does not know them.
    #[serde(default)]
    pub context_window: Option<u64>,
    /// The same by model.
    #[serde(default, deserialize_with = "windows")]
    pub context_windows: BTreeMap<String, u64>,
    /// Tokens of the longest answer, by model.
    #[serde(default, deserialize_with = "max_outputs")]
    pub max_outputs: BTreeMap<String, u64>,
    /// How much single models think.
    #[serde(default, deserialize_with = "efforts")]
    pub efforts: BTreeMap<String, Effort>,
    /// What they cost, by model.
    #[serde(default, deserialize_with = "prices")]
    pub prices: BTreeMap<String, ModelPrice>,
}

/// How long a prompt cache keeps what it is given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum CacheTtl {
    #[default]
    #[serde(rename = "5m")]
    FiveMinutes,
    #[serde(rename = "1h")]
    Hour,
}

/// Who makes room in the context of a provider's models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CompactedBy {
    /// Sepal, by `agent.chat.compaction_strategy`.
    #[default]
    Sepal,
    /// The vendor.
    Vendor,
}

/// Which of OpenAI's interfaces is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApiFlavour {
    /// Responses at the vendor's own address, Chat Completions anywhere else.
    #[default]
    Auto,
    /// Responses.
    Responses,
    /// Chat Completions.
    ChatCompletions,
}

/// Who searches tools whose definitions are not sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolSearch {
    /// The vendor, at its own address and for models that are known to have a search.
    #[default]
    Auto,
    /// The vendor, wherever its models are reached.
    Vendor,
    /// Sepal, for every model.
    Sepal,
}

/// What a provider speaks. `llm` says the rest of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderKind {
    /// OpenAI itself, or what stands at another base URL in its name.
    #[serde(rename = "openai")]
    OpenAi,
    /// Anthropic itself, or what stands at another base URL in its name.
    Anthropic,
    /// Google's Gemini itself, or what stands at another base URL in its name.
    Gemini,
    /// Anything that speaks Chat Completions at a base URL; needs no key.
    #[serde(rename = "openai-compatible")]
    OpenAiCompatible,
    /// The model that follows a script.
    Scripted,
}

impl ProviderKind {
    /// Reads a name of the settings; the aliases of D12 are accepted.
    pub fn parse(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "openai" | "chatgpt" => Some(Self::OpenAi),
            "anthropic" | "claude" => Some(Self::Anthropic),
            "gemini" | "google" => Some(Self::Gemini),
            "openai-compatible" => Some(Self::OpenAiCompatible),
            "scripted" => Some(Self::Scripted),
            _ => None,
        }
    }

    /// The name in `system:ready`, which keeps `claude` (D12).
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::Anthropic => "claude",
            Self::OpenAi | Self::Gemini | Self::OpenAiCompatible | Self::Scripted => self.as_str(),
        }
    }

    /// The canonical name (D12).
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::OpenAiCompatible => "openai-compatible",
            Self::Scripted => "scripted",
        }
    }

    /// The model of sessions that name none (S2.14-S2.16); a compatible server has its own. One that
    /// is retired or not listed is replaced when its provider lists its models.
    pub fn default_model(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => Some("gpt-4o"),
            Self::Anthropic => Some("claude-sonnet-4-5-20250929"),
            Self::Gemini => Some("gemini-2.0-flash-exp"),
            Self::OpenAiCompatible => None,
            Self::Scripted => Some("scripted"),
        }
    }

    /// Tokens of an answer that have to be told even when nobody set a limit (D16).
    pub fn required_max_tokens(self) -> Option<u32> {
        match self {
            Self::Anthropic => Some(8192),
            Self::OpenAi | Self::Gemini | Self::OpenAiCompatible | Self::Scripted => None,
        }
    }

    /// The kind of a canonical name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let all = [
            Self::OpenAi,
            Self::Anthropic,
            Self::Gemini,
            Self::OpenAiCompatible,
            Self::Scripted,
        ];
        all.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// `agent.llm.breaker`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Breaker {
    /// Faults in a row after which a provider is out; 0 = never.
    pub faults: u32,
    /// How long it is not asked then.
    #[serde(deserialize_with = "read::seconds")]
    pub pause: Duration,
}

/// A model that answers in the place of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FallbackEntry {
    pub provider: String,
    pub model: String,
}

/// `provider/model`; a model's name may hold a `/` itself.
pub(crate) fn fallback(text: &str) -> Option<FallbackEntry> {
    let (provider, model) = text.split_once('/')?;
    (!provider.is_empty() && !model.is_empty()).then(|| FallbackEntry {
        provider: provider.to_owned(),
        model: model.to_owned(),
    })
}

/// The parts of a list in one text.
pub(crate) fn listed(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(|letter: char| letter == ',' || letter.is_whitespace());
    parts.filter(|part| !part.is_empty())
}

fn keys<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<SecretString>, D::Error> {
    let text = Option::<String>::deserialize(from)?.unwrap_or_default();
    Ok(listed(&text).map(Into::into).collect())
}

/// What is wrong was refused before.
fn fallbacks<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<FallbackEntry>, D::Error> {
    let text = Option::<String>::deserialize(from)?.unwrap_or_default();
    Ok(listed(&text).filter_map(fallback).collect())
}

/// `agent.llm.retry` (S0.47).
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// How often a request is repeated.
    pub max_retries: u32,
    #[serde(deserialize_with = "read::seconds")]
    pub initial_backoff: Duration,
    #[serde(deserialize_with = "read::seconds")]
    pub max_backoff: Duration,
    /// By how much each wait is longer than the one before.
    pub backoff_multiplier: f64,
}
