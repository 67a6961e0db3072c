//! `agent`: its name, its tool, its history limits, and its model providers.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use secrecy::SecretString;
use serde::{Deserialize, Deserializer};
use url::Url;

use super::of_models::{ModelPrice, effort, efforts, max_outputs, prices, windows};
use super::read;
use sepal_core::domain::{Effort, StrategyName};

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
    /// The tool's description for MCP clients.
    pub description: String,
    /// The name of its only argument.
    pub argument_name: String,
    /// The argument's description.
    pub argument_description: String,
}

/// The way in which a call is decided when the agent runs as an MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalWay {
    /// The MCP client's user decides, by elicitation.
    Elicit,
    /// A person decides in the page.
    Web,
    /// The call is rejected.
    Deny,
    /// The call runs without a decision.
    Auto,
}

/// `agent.chat`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chat {
    /// The most tokens of history in a request; `None` = as many as fit the window.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub max_tokens: Option<NonZeroU32>,
    /// The most messages of history in a request; `None` = no limit.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub max_messages: Option<NonZeroU32>,
    /// The most model requests of one turn.
    pub max_llm_iterations: NonZeroU32,
    /// The number of times in a row that a turn may make the same calls with the same results; `None` = no
    /// limit.
    #[serde(deserialize_with = "read::zero_is_none")]
    pub max_same_calls: Option<NonZeroU32>,
    /// The longest time that a turn may run without a person; `None` = no limit.
    #[serde(rename = "turn_timeout_s", deserialize_with = "read::zero_is_never")]
    pub turn_limit: Option<Duration>,
    /// The time after which an undecided call is rejected; `None` = never.
    #[serde(rename = "approval_expiry_s", deserialize_with = "read::zero_is_never")]
    pub approval_expiry: Option<Duration>,
    /// The treatment of arguments that are changed by others than the owner of a session.
    pub edits_by_others: EditsByOthers,
    /// The most that one turn may cost, in US dollars; 0 = no limit.
    pub request_budget: f64,
    /// The most that one session may cost, in US dollars; 0 = no limit.
    pub session_budget: f64,
    /// The ways to shrink history that does not fit, applied one after the other until it does.
    pub compaction_strategy: Vec<StrategyName>,
    /// The most tokens that one summary may use; 0 = no summaries are written.
    pub summary_budget_tokens: u32,
    /// The source of session titles.
    pub titles: Titles,
}

/// The treatment of arguments that a person changes who is asked about another person's call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EditsByOthers {
    /// They run once the owner of the session has approved them too.
    AskOwner,
    /// They are refused.
    Refuse,
}

/// The source of session titles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Titles {
    /// The first words of the first message.
    FirstWords,
    /// A model writes the title after the first answer.
    Model,
}

/// `agent.llm`, with the default provider chosen and every vendor's variables merged into its entry.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Llm {
    /// The name of the default entry of `providers`.
    pub provider: String,
    /// All providers by name: the canonical name of a kind (D12), or a name that the operator chose.
    pub providers: BTreeMap<String, ProviderEntry>,
    /// The default provider's model, by the provider's name for it.
    pub model: String,
    /// The assumed cost of a request with an unknown price, in US dollars; 0 = such a request is refused if a
    /// budget is set.
    pub unpriced_request_usd: f64,
    /// Sent only if set (S0.45).
    pub temperature: Option<f64>,
    /// The default effort; `None` = the model's own default.
    #[serde(deserialize_with = "effort")]
    pub effort: Option<Effort>,
    /// The most tokens of one answer; sent only if set (S0.45, S0.67).
    #[serde(deserialize_with = "read::zero_is_none_option")]
    pub max_tokens: Option<NonZeroU32>,
    /// The most percent of the model's window that tool definitions may take; above it they are searched
    /// instead of sent. 0 = they are always sent.
    pub defer_tools_percent: u8,
    /// The party that searches the tools.
    pub tool_search: ToolSearch,
    /// The system prompt, a Jinja2 template.
    pub prompt_template: String,
    /// The retry policy for transient faults.
    pub retry: Retry,
    /// The circuit breaker's settings.
    pub breaker: Breaker,
    /// The pause between two pieces of the scripted model's answer.
    #[serde(rename = "scripted_pace_ms", deserialize_with = "read::milliseconds")]
    pub scripted_pace: Duration,
    /// The addresses of the model servers to look for, by name.
    pub local_servers: BTreeMap<String, String>,
}

impl Llm {
    /// The entry of the default provider.
    pub fn default_entry(&self) -> Option<&ProviderEntry> {
        self.providers.get(&self.provider)
    }

    /// The most tokens of an answer from this kind of provider; `None` = not sent (S0.45, S0.67, D16).
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
    /// The API key; the vendors' own addresses need one (S2.22).
    #[serde(default)]
    pub api_key: Option<SecretString>,
    /// Further keys, used while those before them are unavailable.
    #[serde(default, deserialize_with = "keys")]
    pub api_keys: Vec<SecretString>,
    /// The fallback models, used while this provider is unavailable.
    #[serde(default, deserialize_with = "fallbacks")]
    pub fallback: Vec<FallbackEntry>,
    /// The base URL of the API; `None` = the vendor's own address.
    #[serde(default, deserialize_with = "read::parsed_option")]
    pub base_url: Option<Url>,
    /// The OpenAI API to use.
    #[serde(default)]
    pub api: ApiFlavour,
    /// The lifetime of prompt cache entries, where it can be chosen.
    #[serde(default)]
    pub cache_ttl: CacheTtl,
    /// The party that compacts the context of this provider's models.
    #[serde(default)]
    pub compaction: CompactedBy,
    /// Input tokens from which on the vendor compacts; `None` = derived from the history limits.
    #[serde(default)]
    pub compaction_threshold: Option<u64>,
    /// Models to offer beside those that the provider lists.
    #[serde(default)]
    pub models: Vec<String>,
    /// The context window in tokens of models that the catalogue does not know.
    #[serde(default)]
    pub context_window: Option<u64>,
    /// Context windows in tokens, by model.
    #[serde(default, deserialize_with = "windows")]
    pub context_windows: BTreeMap<String, u64>,
    /// Output limits in tokens, by model.
    #[serde(default, deserialize_with = "max_outputs")]
    pub max_outputs: BTreeMap<String, u64>,
    /// Default efforts, by model.
    #[serde(default, deserialize_with = "efforts")]
    pub efforts: BTreeMap<String, Effort>,
    /// Prices, by model.
    #[serde(default, deserialize_with = "prices")]
    pub prices: BTreeMap<String, ModelPrice>,
}

/// The lifetime of prompt cache entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum CacheTtl {
    #[default]
    #[serde(rename = "5m")]
    FiveMinutes,
    #[serde(rename = "1h")]
    Hour,
}

/// The party that compacts the context of a provider's models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CompactedBy {
    /// Sepal, by `agent.chat.compaction_strategy`.
    #[default]
    Sepal,
    /// The vendor.
    Vendor,
}

/// The OpenAI API to use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApiFlavour {
    /// Responses at the vendor's own address, Chat Completions elsewhere.
    #[default]
    Auto,
    /// Responses.
    Responses,
    /// Chat Completions.
    ChatCompletions,
}

/// The party that searches tools whose definitions are not sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolSearch {
    /// The vendor, at its own address and for models that are known to support search.
    #[default]
    Auto,
    /// The vendor, at any address.
    Vendor,
    /// Sepal, for every model.
    Sepal,
}

/// The API that a provider speaks; `llm` implements it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderKind {
    /// OpenAI itself, or a compatible server at another base URL.
    #[serde(rename = "openai")]
    OpenAi,
    /// Anthropic itself, or a compatible server at another base URL.
    Anthropic,
    /// Google's Gemini itself, or a compatible server at another base URL.
    Gemini,
    /// A server with the Chat Completions API at a base URL; needs no key.
    #[serde(rename = "openai-compatible")]
    OpenAiCompatible,
    /// The scripted model.
    Scripted,
}

impl ProviderKind {
    /// Parses a name in settings; the aliases of D12 are accepted.
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

    /// The default model of sessions (S2.14-S2.16); a compatible server has none. A model that is retired or
    /// not listed is replaced once its provider lists its models.
    pub fn default_model(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => Some("gpt-4o"),
            Self::Anthropic => Some("claude-sonnet-4-5-20250929"),
            Self::Gemini => Some("gemini-2.0-flash-exp"),
            Self::OpenAiCompatible => None,
            Self::Scripted => Some("scripted"),
        }
    }

    /// The output limit in tokens that must be sent even if none is configured (D16).
    pub fn required_max_tokens(self) -> Option<u32> {
        match self {
            Self::Anthropic => Some(8192),
            Self::OpenAi | Self::Gemini | Self::OpenAiCompatible | Self::Scripted => None,
        }
    }

    /// Finds a kind by its canonical name.
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
    /// Consecutive faults after which a provider counts as out; 0 = faults never count.
    pub faults: u32,
    /// The first pause of a provider that is out.
    #[serde(deserialize_with = "read::seconds")]
    pub pause: Duration,
}

/// A fallback model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FallbackEntry {
    pub provider: String,
    pub model: String,
}

/// Parses `provider/model`; the model's name may contain a `/` itself.
pub(crate) fn fallback(text: &str) -> Option<FallbackEntry> {
    let (provider, model) = text.split_once('/')?;
    (!provider.is_empty() && !model.is_empty()).then(|| FallbackEntry {
        provider: provider.to_owned(),
        model: model.to_owned(),
    })
}

/// Splits a list in one text, at commas and whitespace.
pub(crate) fn listed(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(|letter: char| letter == ',' || letter.is_whitespace());
    parts.filter(|part| !part.is_empty())
}

fn keys<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<SecretString>, D::Error> {
    let text = Option::<String>::deserialize(from)?.unwrap_or_default();
    Ok(listed(&text).map(Into::into).collect())
}

/// Invalid entries were refused before.
fn fallbacks<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<FallbackEntry>, D::Error> {
    let text = Option::<String>::deserialize(from)?.unwrap_or_default();
    Ok(listed(&text).filter_map(fallback).collect())
}

/// `agent.llm.retry` (S0.47).
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// The most repetitions of a request.
    pub max_retries: u32,
    #[serde(deserialize_with = "read::seconds")]
    pub initial_backoff: Duration,
    #[serde(deserialize_with = "read::seconds")]
    pub max_backoff: Duration,
    /// The factor between consecutive pauses.
    pub backoff_multiplier: f64,
}
