//! Defines the interface of model providers: requests in, pieces of an answer out.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use jiff::civil::Date;
use secrecy::SecretString;

use sepal_config::ProviderKind;
use sepal_core::domain::{CountedEntry, Effort, Entry, Native, TokenUsage, Tool};

use crate::catalogue::Ability;
use crate::compaction::{CompactedInput, Compacting, CompactionSetting, Compactor};
use crate::{
    Api, CacheTtl, Contents, Deferral, Error, ModelListing, anthropic, compaction, gemini, openai,
    scripted,
};

/// The key of the example files (S0.25). The server starts with it, but every request fails.
pub const PLACEHOLDER_KEY: &str = "dummy-api-key";

/// The pieces of an answer. Dropping the stream ends the request at the provider.
pub type ModelStream = BoxStream<'static, Result<ModelEvent, Error>>;

/// A configured service that answers model requests.
#[async_trait]
pub trait Provider: Send + Sync {
    /// The provider's configured name.
    fn id(&self) -> &str;

    /// The API that the provider speaks.
    fn kind(&self) -> ProviderKind;

    /// Sends a request to a model. An error has the same meaning here and in the stream.
    async fn stream(&self, request: Request) -> Result<ModelStream, Error>;

    /// Lists the provider's models.
    async fn models(&self) -> Result<ModelListing, Error>;

    /// The base URL at which the provider answered, if it is another than the configured one.
    fn found_address(&self) -> Option<String> {
        None
    }

    /// The vendor's compaction for a model; `None` if it is not configured, not supported, or the model
    /// refused it.
    fn compactor(&self, _model: &str) -> Option<Compactor> {
        None
    }
}

/// One request. The large parts are shared, so that an attempt does not copy the history.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// The model's name at the provider.
    pub model: String,
    pub system: Option<Arc<str>>,
    /// The working context, oldest first.
    pub entries: Entries,
    /// The contents of the entries' attachments.
    pub contents: Contents,
    /// The tools that the model may call.
    pub tools: Arc<[Tool]>,
    /// The tools in the form for a vendor that searches tools itself; it replaces `tools`.
    pub deferral: Option<Deferral>,
    /// Sent only if set (S0.45), and only to models that accept it.
    pub temperature: Option<f64>,
    /// The thinking effort; `None` = the model's default.
    pub effort: Option<Effort>,
    /// The output limit in tokens; sent only if set and not 0 (S0.67).
    pub max_tokens: Option<u32>,
    /// The model's output limit in tokens, as an operator or an admin set it; overrides the catalogue.
    pub max_output: Option<u32>,
    /// The output tokens that the budgets cover, if they are less than the longest answer. Lowers the limit
    /// that is sent otherwise, and never raises it.
    pub affordable: Option<u32>,
    /// The compaction that the vendor may do; `None` = none.
    pub compacting: Option<Compacting>,
}

impl Request {
    /// The output limit to send, from `max_tokens` and `affordable`; `None` = no limit.
    pub(crate) fn longest_answer(&self) -> Option<u32> {
        let told = self.max_tokens.filter(|&limit| limit > 0);
        told.into_iter().chain(self.affordable).min()
    }
}

/// The entries of a request, oldest first. Each entry is shared with the session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Entries(Arc<[Arc<CountedEntry>]>);

impl Entries {
    /// Iterates over all entries.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> + Clone {
        self.0.iter().map(|entry| &***entry)
    }
}

impl From<Vec<Arc<CountedEntry>>> for Entries {
    fn from(entries: Vec<Arc<CountedEntry>>) -> Self {
        Self(entries.into())
    }
}

impl From<Vec<Entry>> for Entries {
    fn from(entries: Vec<Entry>) -> Self {
        Self(entries.into_iter().map(CountedEntry::new).collect())
    }
}

impl<const COUNT: usize> From<[Entry; COUNT]> for Entries {
    fn from(entries: [Entry; COUNT]) -> Self {
        Self(entries.into_iter().map(CountedEntry::new).collect())
    }
}

/// A piece of a model's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// More text.
    Text(String),
    /// More of the model's visible reasoning.
    Reasoning(String),
    /// All text so far was reasoning: the model closed its thoughts without having opened them.
    TextWasReasoning,
    /// A tool call starts. Calls are numbered from 0 in the order in which they start.
    CallStarted {
        /// The index of the call in this answer.
        index: usize,
        /// The provider's id of the call; empty if it gave none.
        provider_id: String,
        /// The tool's name, as in the request.
        name: String,
    },
    /// More of a call's arguments, as JSON.
    CallArguments { index: usize, json: String },
    /// The tokens that the request used; a later event replaces an earlier one.
    Usage(TokenUsage),
    /// Blocks that are stored with the message and sent back to the same provider family.
    Native(Native),
    /// The vendor compacted the request.
    Compacted(CompactedInput),
    /// A part of the request was left out because the model refuses it; the text tells people what and why.
    /// Sent once per provider and model.
    LeftOut(String),
    /// The vendor's explanation for ending the answer early: the category of a refusal, or the finding of its
    /// filter.
    StopDetail(String),
    /// The answer is complete; nothing follows.
    Finished(Finish),
}

impl ModelEvent {
    /// Returns true if the event is output of the model itself, not data about it from the provider.
    pub fn is_said(&self) -> bool {
        match self {
            Self::Text(_)
            | Self::Reasoning(_)
            | Self::TextWasReasoning
            | Self::CallStarted { .. }
            | Self::CallArguments { .. } => true,
            Self::Usage(_)
            | Self::Native(_)
            | Self::Compacted(_)
            | Self::LeftOut(_)
            | Self::StopDetail(_)
            | Self::Finished(_) => false,
        }
    }
}

/// The reason why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Finish {
    /// The answer is complete.
    Stop,
    /// The model waits for the results of its calls.
    Calls,
    /// The answer reached the output limit (S2.27).
    Length,
    /// The provider's filter stopped the answer.
    Filtered,
    /// The model refused to answer.
    Refused,
    /// The vendor paused a long answer; the model continues if the partial answer is sent back.
    Paused,
    /// The context window was full before the answer was complete.
    WindowFull,
    /// An unknown reason.
    Other,
}

impl Finish {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Calls => "tool_calls",
            Self::Length => "length",
            Self::Filtered => "content_filter",
            Self::Refused => "refusal",
            Self::Paused => "pause",
            Self::WindowFull => "context_window",
            Self::Other => "other",
        }
    }
}

/// A model as its provider lists it. Missing facts come from the catalogue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListedModel {
    /// The model's name in requests.
    pub id: String,
    /// The model's name for people, if the provider gives one.
    pub name: Option<String>,
    /// The context window in tokens, if the provider gives it.
    pub context_window: Option<u64>,
    /// The output limit in tokens, if the provider gives it.
    pub max_output: Option<u64>,
    /// The model's abilities, if the provider gives them.
    pub abilities: Option<Vec<Ability>>,
    /// The day on which the provider switches the model off, if it gives one.
    pub retires_at: Option<Date>,
}

/// The settings of a provider.
#[derive(Debug, Clone)]
pub struct Settings {
    pub id: String,
    pub kind: ProviderKind,
    /// The key, if any.
    pub api_key: Option<SecretString>,
    /// The base URL; `None` = the vendor's own address.
    pub base_url: Option<String>,
    /// The OpenAI API to use.
    pub api: Api,
    /// The lifetime of the provider's cache entries, where it can be chosen.
    pub cache_ttl: CacheTtl,
    /// The setting that decides who compacts the context of the provider's models.
    pub compaction: CompactionSetting,
    /// The pause of the scripted model before each piece; other providers ignore it.
    pub pace: Duration,
}

/// Creates a provider from its settings; refuses settings that can never work (S2.22).
pub fn connect(settings: Settings, http: reqwest::Client) -> Result<Arc<dyn Provider>, Error> {
    match settings.kind {
        ProviderKind::OpenAi | ProviderKind::OpenAiCompatible => openai::connect(settings, http),
        ProviderKind::Scripted => Ok(Arc::new(scripted::Scripted::new(
            settings.id,
            settings.pace,
        ))),
        ProviderKind::Anthropic => Ok(Arc::new(anthropic::Messages::new(settings, http)?)),
        ProviderKind::Gemini => Ok(Arc::new(gemini::GenerateContent::new(settings, http)?)),
    }
}

/// The smallest compaction threshold in input tokens for such a provider; `None` if it does not compact. Only
/// Anthropic and OpenAI's Responses API do.
pub fn least_threshold(kind: ProviderKind, api: Api, base_url: Option<&str>) -> Option<u64> {
    match kind {
        ProviderKind::Anthropic => Some(compaction::ANTHROPIC_LEAST),
        ProviderKind::OpenAi | ProviderKind::OpenAiCompatible => {
            openai::speaks_responses(kind, api, base_url).then_some(compaction::OPENAI_LEAST)
        }
        ProviderKind::Gemini | ProviderKind::Scripted => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Api, ProviderKind, least_threshold};

    /// Asserts S2.6, S3.34.
    #[test]
    fn names_and_aliases_are_read_and_the_wire_keeps_claude() {
        fn check(text: &str, canonical: &str, wire: &str) {
            let kind = ProviderKind::parse(text).unwrap();
            assert_eq!((kind.as_str(), kind.wire_name()), (canonical, wire));
        }
        check("openai", "openai", "openai");
        check("ChatGPT", "openai", "openai");
        check("claude", "anthropic", "claude");
        check("anthropic", "anthropic", "claude");
        check("google", "gemini", "gemini");
        check("gemini", "gemini", "gemini");
        check(
            "openai-compatible",
            "openai-compatible",
            "openai-compatible",
        );
        check(" scripted ", "scripted", "scripted");
        assert_eq!(ProviderKind::parse("cohere"), None);
    }

    #[test]
    fn only_messages_and_responses_compact() {
        use ProviderKind::{Anthropic, Gemini, OpenAi, OpenAiCompatible, Scripted};
        let elsewhere = Some("http://h/v1");
        for (kind, api, base_url, expected) in [
            (Anthropic, Api::Auto, None, Some(50_000)),
            (Anthropic, Api::Auto, elsewhere, Some(50_000)),
            (OpenAi, Api::Auto, None, Some(1_000)),
            (
                OpenAi,
                Api::Auto,
                Some("https://api.openai.com/v1"),
                Some(1_000),
            ),
            (OpenAi, Api::Auto, elsewhere, None),
            (OpenAi, Api::ChatCompletions, None, None),
            (OpenAiCompatible, Api::Responses, elsewhere, Some(1_000)),
            (OpenAiCompatible, Api::Auto, elsewhere, None),
            (Gemini, Api::Auto, None, None),
            (Scripted, Api::Auto, None, None),
        ] {
            let least = least_threshold(kind, api, base_url);
            assert_eq!(least, expected, "{kind:?} {api} {base_url:?}");
        }
    }
}
