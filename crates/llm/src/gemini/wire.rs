//! The wire forms of the `generateContent` API: requests borrow from the entries, chunks from the stream's
//! text.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::stream::text::{Text, or_default};
use sepal_core::domain::TokenUsage;

/// A request.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) system_instruction: Option<Instruction<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tools: Vec<Tools<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_config: Option<ToolConfig>,
    pub(super) contents: Vec<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) generation_config: Option<GenerationConfig>,
}

/// The system prompt, which is separate from the messages and has no role.
#[derive(Debug, Serialize)]
pub(super) struct Instruction<'a> {
    pub(super) parts: [Part<'a>; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tools<'a> {
    pub(super) function_declarations: Vec<Declaration<'a>>,
}

#[derive(Debug, Serialize)]
pub(super) struct Declaration<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) description: &'a str,
    /// Absent if the tool takes no arguments: the vendor refuses an object without properties.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parameters: Option<Value>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolConfig {
    pub(super) function_calling_config: CallingConfig,
}

#[derive(Debug, Serialize)]
pub(super) struct CallingConfig {
    pub(super) mode: &'static str,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GenerationConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thinking_config: Option<ThinkingConfig>,
}

/// The thinking parameters: a level or a budget, never both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThinkingConfig {
    /// True if the response should include thoughts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) include_thoughts: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thinking_budget: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thinking_level: Option<&'static str>,
}

#[derive(Debug, Serialize)]
pub(super) struct Content<'a> {
    pub(super) role: Role,
    pub(super) parts: Vec<Part<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    User,
    Model,
}

/// A part of a message.
#[derive(Debug, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub(super) enum Part<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        thought: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<Cow<'a, str>>,
    },
    Call {
        function_call: Call<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<Cow<'a, str>>,
    },
    Response {
        function_response: Response<'a>,
    },
    Data {
        inline_data: InlineData<'a>,
    },
}

/// A picture or a document.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InlineData<'a> {
    pub(super) mime_type: &'static str,
    pub(super) data: &'a str,
}

#[derive(Debug, Serialize)]
pub(super) struct Call<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    pub(super) name: Cow<'a, str>,
    pub(super) args: Cow<'a, Value>,
}

#[derive(Debug, Serialize)]
#[expect(clippy::struct_field_names, reason = "the vendor's names")]
pub(super) struct Response<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    pub(super) name: Cow<'a, str>,
    pub(super) response: Outcome<'a>,
}

/// The outcome of a call, under the keys that the vendor recommends.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome<'a> {
    Output(Cow<'a, str>),
    Error(Cow<'a, str>),
}

/// A chunk of a stream, or a complete answer. Other fields are ignored.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Chunk<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) candidates: Vec<Candidate<'a>>,
    #[serde(borrow, default)]
    pub(super) prompt_feedback: Option<Feedback<'a>>,
    #[serde(borrow, default)]
    pub(super) usage_metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

/// The verdict of the vendor's filter on the request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Feedback<'a> {
    #[serde(borrow, default)]
    pub(super) block_reason: Text<'a>,
    #[serde(borrow, default)]
    pub(super) block_reason_message: Text<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate<'a> {
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(borrow, default)]
    pub(super) content: Option<ContentForm<'a>>,
    #[serde(borrow, default)]
    pub(super) finish_reason: Text<'a>,
    #[serde(borrow, default)]
    pub(super) finish_message: Text<'a>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ContentForm<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) parts: Vec<PartForm<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PartForm<'a> {
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) thought: bool,
    #[serde(borrow, default)]
    pub(super) thought_signature: Text<'a>,
    #[serde(borrow, default)]
    pub(super) function_call: Option<CallForm<'a>>,
}

/// A complete call, or a part of a call whose arguments are streamed. The last part is empty.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallForm<'a> {
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) args: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) partial_args: Vec<PieceForm<'a>>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) will_continue: bool,
}

impl CallForm<'_> {
    /// Returns true for an empty part, which ends a streamed call.
    pub(super) fn is_empty(&self) -> bool {
        self.name.0.trim().is_empty() && self.args.is_none() && self.partial_args.is_empty()
    }
}

/// A piece of a call's arguments. The vendor's flag for a continued text is ignored: a text is always
/// appended to the text at its path.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PieceForm<'a> {
    #[serde(borrow, default)]
    pub(super) json_path: Text<'a>,
    #[serde(borrow, default)]
    pub(super) string_value: Option<Text<'a>>,
    #[serde(default)]
    pub(super) number_value: Value,
    #[serde(default)]
    pub(super) bool_value: Value,
    /// True if there is a `nullValue`, whose value is `null` itself.
    #[serde(rename = "nullValue", default, deserialize_with = "is_there")]
    pub(super) is_null: bool,
}

fn is_there<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(deserializer).map(|_| true)
}

/// Parses the usage; `None` if it is invalid.
pub(super) fn usage(raw: &RawValue) -> Option<TokenUsage> {
    let usage: UsageForm = serde_json::from_str(raw.get()).ok()?;
    let prompt = usage.prompt_token_count?;
    let input_tokens = prompt.saturating_add(usage.tool_use_prompt_token_count.unwrap_or_default());
    let reasoning_tokens = usage.thoughts_token_count.unwrap_or_default();
    let said = usage.candidates_token_count.unwrap_or_default();
    let cached = usage.cached_content_token_count.unwrap_or_default();
    Some(TokenUsage {
        input_tokens,
        cached_tokens: cached.min(input_tokens),
        cache_write_tokens: 0,
        cache_write_long_tokens: 0,
        output_tokens: said.saturating_add(reasoning_tokens),
        reasoning_tokens,
        is_estimated: false,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the vendor's names")]
struct UsageForm {
    prompt_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
}
