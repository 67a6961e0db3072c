//! The wire forms of Chat Completions: requests borrow from the entries, chunks from the stream's text.

use std::borrow::Cow;

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::host::Thinking;
use crate::stream::text::{Text, count, or_default, or_none};
use sepal_core::domain::TokenUsage;

/// A request.
#[derive(Debug, Serialize)]
pub(super) struct Body<'a> {
    pub(super) model: &'a str,
    /// JSON of a list of [`ToolForm`]s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tools: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_choice: Option<&'static str>,
    pub(super) messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_completion_tokens: Option<u32>,
    pub(super) stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stream_options: Option<StreamOptions>,
    #[serde(flatten)]
    pub(super) thinking: Thinking,
}

#[derive(Debug, Serialize)]
pub(super) struct StreamOptions {
    pub(super) include_usage: bool,
}

/// A tool in the form that S3.46 requires.
#[derive(Debug, Serialize)]
pub(super) struct ToolForm<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) function: FunctionForm<'a>,
}

#[derive(Debug, Serialize)]
pub(super) struct FunctionForm<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) description: &'a str,
    pub(super) parameters: Cow<'a, Value>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) strict: bool,
}

/// A message of the conversation.
#[derive(Debug, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub(super) enum Message<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_details: Option<&'a Value>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<CallForm<'a>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: Cow<'a, str>,
    },
}

/// The content of a user message: a plain text if possible, because some servers accept nothing else.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<ContentPart<'a>>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ContentPart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl<'a> },
    File { file: FileForm<'a> },
}

#[derive(Debug, Serialize)]
pub(super) struct ImageUrl<'a> {
    pub(super) url: &'a str,
}

#[derive(Debug, Serialize)]
pub(super) struct FileForm<'a> {
    pub(super) filename: &'a str,
    pub(super) file_data: &'a str,
}

#[derive(Debug, Serialize)]
pub(super) struct CallForm<'a> {
    pub(super) id: Cow<'a, str>,
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) function: CalledForm<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) extra_content: Option<&'a Value>,
}

#[derive(Debug, Serialize)]
pub(super) struct CalledForm<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) arguments: String,
}

/// A chunk of a stream, or a complete answer: they differ only in `delta` and `message`. Other fields are
/// ignored.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) choices: Vec<Choice<'a>>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    /// Groq's place for the usage.
    #[serde(borrow, default)]
    pub(super) x_groq: Option<Extension<'a>>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
    /// `error` if the chunk itself is an error, as older vLLM versions send it.
    #[serde(borrow, default)]
    pub(super) object: Text<'a>,
    /// The words of an error that stands in place of a chunk.
    #[serde(borrow, default)]
    pub(super) message: Text<'a>,
    #[serde(borrow, default)]
    pub(super) detail: Text<'a>,
    #[serde(borrow, default)]
    pub(super) msg: Text<'a>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Extension<'a> {
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(borrow, default)]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    pub(super) message: Option<Delta<'a>>,
    #[serde(borrow, default)]
    pub(super) finish_reason: Text<'a>,
    /// Moonshot's place for the usage.
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    pub(super) content: Said<'a>,
    #[serde(borrow, default)]
    pub(super) refusal: Text<'a>,
    #[serde(borrow, default)]
    pub(super) reasoning_content: Text<'a>,
    #[serde(borrow, default)]
    pub(super) reasoning: Text<'a>,
    /// The pieces of `OpenRouter`'s reasoning, which it wants back.
    #[serde(borrow, default)]
    pub(super) reasoning_details: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) tool_calls: Vec<CallDelta<'a>>,
}

/// A piece of an answer: a text, or parts of which some are thoughts, as Mistral sends them.
#[derive(Debug, Default)]
pub(super) struct Said<'a> {
    pub(super) text: Text<'a>,
    pub(super) thought: String,
}

#[derive(Deserialize)]
struct SaidPart<'a> {
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    thinking: Text<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Said<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = <&'de RawValue>::deserialize(deserializer)?.get();
        let parts = json.starts_with('[').then(|| serde_json::from_str(json));
        let Some(Ok(parts)): Option<Result<Vec<SaidPart<'de>>, _>> = parts else {
            let text = serde_json::from_str(json).map_err(de::Error::custom)?;
            let thought = String::new();
            return Ok(Self { text, thought });
        };
        let text: String = parts.iter().map(|part| part.text.0.as_ref()).collect();
        Ok(Self {
            text: Text(Cow::Owned(text)),
            thought: parts.iter().map(|part| part.thinking.0.as_ref()).collect(),
        })
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct CallDelta<'a> {
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) function: Option<FunctionDelta<'a>>,
    /// Signatures that Gemini wants back with its calls.
    #[serde(borrow, default)]
    pub(super) extra_content: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct FunctionDelta<'a> {
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    /// A string by the specification, an object from some servers (S3.24).
    #[serde(borrow, default)]
    pub(super) arguments: Option<&'a RawValue>,
}

impl Chunk<'_> {
    /// The text of the chunk, if it holds nothing else that matters.
    pub(super) fn only_text(&self) -> Option<&str> {
        let [choice] = self.choices.as_slice() else {
            return None;
        };
        let (Some(delta), None) = (&choice.delta, &choice.message) else {
            return None;
        };
        let other = [
            &choice.finish_reason,
            &delta.refusal,
            &delta.reasoning_content,
            &delta.reasoning,
        ];
        let is_only = choice.index.unwrap_or_default() == 0
            && choice.usage.or(self.usage).is_none()
            && self.x_groq.is_none()
            && delta.tool_calls.is_empty()
            && delta.reasoning_details.is_none()
            && delta.content.thought.is_empty()
            && other.iter().all(|text| text.0.is_empty());
        match &delta.content.text.0 {
            Cow::Borrowed(text) if is_only && !text.is_empty() => Some(text),
            Cow::Borrowed(_) | Cow::Owned(_) => None,
        }
    }
}

impl Chunk<'_> {
    /// Returns true if the chunk itself is an error.
    pub(super) fn is_error(&self) -> bool {
        let words = [&self.message, &self.detail, &self.msg];
        let has_words = words.iter().any(|text| !text.0.is_empty());
        self.object.0 == "error" || (has_words && self.choices.is_empty() && self.usage.is_none())
    }
}

impl CallDelta<'_> {
    /// Returns true if the piece names its tool.
    pub(super) fn has_name(&self) -> bool {
        let function = self.function.as_ref();
        function.is_some_and(|function| !function.name.0.is_empty())
    }
}

impl FunctionDelta<'_> {
    /// The piece of the arguments' JSON.
    pub(super) fn arguments(&self) -> Cow<'_, str> {
        let Some(raw) = self.arguments else {
            return Cow::Borrowed("");
        };
        match serde_json::from_str::<Text<'_>>(raw.get()) {
            Ok(Text(text)) if raw.get().starts_with('"') => text,
            Ok(_) | Err(_) => Cow::Borrowed(raw.get()),
        }
    }
}

/// Parses the usage from any of its places; `None` if it is invalid.
pub(super) fn usage(raw: &RawValue) -> Option<TokenUsage> {
    let usage: UsageForm = serde_json::from_str(raw.get()).ok()?;
    let input_tokens = usage.prompt_tokens.or(usage.input_tokens)?;
    let said = usage.completion_tokens.or(usage.output_tokens);
    let said = said.unwrap_or_default();
    // Some servers include reasoning only in the total.
    let by_total = usage
        .total_tokens
        .unwrap_or_default()
        .saturating_sub(input_tokens);
    let cached = usage.prompt_tokens_details.and_then(|d| d.cached_tokens);
    let cached = cached
        .or(usage.prompt_cache_hit_tokens)
        .or(usage.cached_tokens);
    let reasoning = usage
        .completion_tokens_details
        .and_then(|d| d.reasoning_tokens);
    let output_tokens = said.max(by_total);
    Some(TokenUsage {
        input_tokens,
        cached_tokens: cached.unwrap_or_default().min(input_tokens),
        cache_write_tokens: 0,
        cache_write_long_tokens: 0,
        output_tokens,
        reasoning_tokens: reasoning.unwrap_or_default().min(output_tokens),
        is_estimated: false,
    })
}

#[derive(Deserialize)]
struct UsageForm {
    #[serde(default, deserialize_with = "count")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    completion_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    total_tokens: Option<u64>,
    /// The names of the Responses form, which some servers use here too.
    #[serde(default, deserialize_with = "count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "or_none")]
    prompt_tokens_details: Option<InputDetails>,
    #[serde(default, deserialize_with = "or_none")]
    completion_tokens_details: Option<OutputDetails>,
    /// The name of the cached part in `DeepSeek`'s usage.
    #[serde(default, deserialize_with = "count")]
    prompt_cache_hit_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct InputDetails {
    #[serde(default, deserialize_with = "count")]
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct OutputDetails {
    #[serde(default, deserialize_with = "count")]
    reasoning_tokens: Option<u64>,
}

#[cfg(test)]
mod tests;
