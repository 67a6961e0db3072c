//! What every provider of models is asked for, and what it says: requests in, pieces of an answer out.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use jiff::civil::Date;
use secrecy::SecretString;

use sepal_config::ProviderKind;
use sepal_core::domain::{Effort, Entry, Native, TokenUsage, Tool, Weighed};

use crate::catalogue::Ability;
use crate::compaction::{CompactedInput, Compacting, CompactionSetting, Compactor};
use crate::{
    Api, CacheTtl, Contents, Deferral, Error, anthropic, compaction, gemini, openai, scripted,
};

/// The key of the example files (S0.25): it starts, and every answer is an error.
pub const PLACEHOLDER_KEY: &str = "dummy-api-key";

/// What a model said so far, piece by piece. Dropping it ends the request at the provider.
pub type ModelStream = BoxStream<'static, Result<ModelEvent, Error>>;

/// A configured service that answers model requests.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Its configured name.
    fn id(&self) -> &str;

    /// What it speaks.
    fn kind(&self) -> ProviderKind;

    /// Asks a model. An error here and an error in the stream mean the same.
    async fn stream(&self, request: Request) -> Result<ModelStream, Error>;

    /// Asks which models there are.
    async fn models(&self) -> Result<Vec<ListedModel>, Error>;

    /// How its vendor compacts what that model is sent; none = it does not, because nobody set it, or
    /// because the model refused.
    fn compactor(&self, _model: &str) -> Option<Compactor> {
        None
    }
}

/// One request. The parts that grow are shared, so that an attempt costs no copy of the history.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// The model's name at the provider.
    pub model: String,
    pub system: Option<Arc<str>>,
    /// The working context, oldest first.
    pub entries: Entries,
    /// What is attached to the entries.
    pub contents: Contents,
    /// The tools that the model may ask for.
    pub tools: Arc<[Tool]>,
    /// What a vendor that searches tools by itself is told instead of them.
    pub deferral: Option<Deferral>,
    /// Sent only when set (S0.45), and only to models that take it.
    pub temperature: Option<f64>,
    /// How much the model may think; none = as much as it does by itself.
    pub effort: Option<Effort>,
    /// The longest answer; sent only when set and not 0 (S0.67).
    pub max_tokens: Option<u32>,
    /// What somebody said of the longest answer that the model can give; wins over the catalogue.
    pub max_output: Option<u32>,
    /// What budgets cover of the answer, where that is less than its longest: it shortens whatever is sent
    /// otherwise, and lengthens nothing.
    pub affordable: Option<u32>,
    /// That the vendor may compact it; none = it may not.
    pub compacting: Option<Compacting>,
}

impl Request {
    /// The longest answer that is asked for; none = nobody wants a limit.
    pub(crate) fn longest_answer(&self) -> Option<u32> {
        let told = self.max_tokens.filter(|&limit| limit > 0);
        told.into_iter().chain(self.affordable).min()
    }
}

/// Entries of a request, oldest first; the session goes on sharing each of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Entries(Arc<[Arc<Weighed>]>);

impl Entries {
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> + Clone {
        self.0.iter().map(|entry| &***entry)
    }
}

impl From<Vec<Arc<Weighed>>> for Entries {
    fn from(entries: Vec<Arc<Weighed>>) -> Self {
        Self(entries.into())
    }
}

impl From<Vec<Entry>> for Entries {
    fn from(entries: Vec<Entry>) -> Self {
        Self(entries.into_iter().map(Weighed::new).collect())
    }
}

impl<const COUNT: usize> From<[Entry; COUNT]> for Entries {
    fn from(entries: [Entry; COUNT]) -> Self {
        Self(entries.into_iter().map(Weighed::new).collect())
    }
}

/// A piece of a model's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// More text.
    Text(String),
    /// More of what the model thinks aloud.
    Reasoning(String),
    /// A tool call begins. Calls are numbered from 0 in the order in which they began.
    CallStarted {
        /// Its number in this answer.
        index: usize,
        /// The provider's id; empty when it gave none.
        provider_id: String,
        /// The tool's name, as the request named it.
        name: String,
    },
    /// More of a call's arguments, as JSON text.
    CallArguments { index: usize, json: String },
    /// What the request used; a later one replaces an earlier one.
    Usage(TokenUsage),
    /// Blocks to be kept with the message and sent back to the same family.
    Native(Native),
    /// The vendor compacted what it was sent.
    Compacted(CompactedInput),
    /// A part of the request that was left out, because the model takes none: what, and why, in
    /// words for people. Said once for each provider and model.
    LeftOut(String),
    /// Why the vendor ended the answer before its end, in the vendor's words: the category of a
    /// refusal, or what its filter found.
    StopDetail(String),
    /// The answer is whole; nothing follows.
    Finished(Finish),
}

impl ModelEvent {
    /// Whether the model itself said it, and not its provider about it.
    pub fn is_said(&self) -> bool {
        match self {
            Self::Text(_)
            | Self::Reasoning(_)
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

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Finish {
    /// It said all it wanted.
    Stop,
    /// It waits for the results of its calls.
    Calls,
    /// It reached the longest answer (S2.27).
    Length,
    /// The provider's filter stopped it.
    Filtered,
    /// The model refused to answer.
    Refused,
    /// The vendor paused a long answer; asked again with it, the model goes on.
    Paused,
    /// The window of the model was full before the answer was whole.
    WindowFull,
    /// A reason we do not know.
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

/// A model as its provider lists it. What it does not say is for the catalogue to say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListedModel {
    /// Its name in requests.
    pub id: String,
    /// Its name for people, if the provider gives one.
    pub name: Option<String>,
    /// Its window in tokens, if the provider says it.
    pub context_window: Option<u64>,
    /// Tokens of its longest answer, if the provider says it.
    pub max_output: Option<u64>,
    /// What it can do, if the provider says it.
    pub abilities: Option<Vec<Ability>>,
    /// The day on which the provider switches it off, if the provider says it.
    pub retires_at: Option<Date>,
}

/// What a provider needs to be reached.
#[derive(Debug, Clone)]
pub struct Settings {
    pub id: String,
    pub kind: ProviderKind,
    /// The key, if any.
    pub api_key: Option<SecretString>,
    /// Where it is; none = the vendor's own address.
    pub base_url: Option<String>,
    /// Which of OpenAI's interfaces it is spoken to in.
    pub api: Api,
    /// How long its cache keeps what it is given, where that can be chosen.
    pub cache_ttl: CacheTtl,
    /// Who makes room in the context of its models.
    pub compaction: CompactionSetting,
    /// How long the scripted model waits before each piece; the others go at their own pace.
    pub pace: Duration,
}

/// Makes a provider of its settings; refuses what can never work (S2.22).
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

/// The least tokens of input at which such a provider can be told to compact; none = it compacts
/// nothing: only Anthropic and OpenAI in its Responses do.
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
