//! The wire forms of the Responses API: requests borrow from the entries, events from the stream's text.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::stream::text::{Text, count, or_default, or_none};
use sepal_core::domain::TokenUsage;

/// A request. Fields that stay the same from turn to turn come first.
#[derive(Debug, Serialize)]
pub(super) struct Body<'a> {
    pub(super) model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) instructions: Option<&'a str>,
    /// JSON of a list of [`ToolForm`]s or [`ToolEntry`]s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tools: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_choice: Option<&'static str>,
    pub(super) input: Vec<Item<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) include: Option<[&'static str; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prompt_cache_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) context_management: Option<[ContextEdit; 1]>,
    /// True if the vendor should store the answer.
    pub(super) store: bool,
    pub(super) stream: bool,
}

/// Asks the vendor to compact the input from a number of tokens on.
#[derive(Debug, Serialize)]
pub(super) struct ContextEdit {
    #[serde(rename = "type")]
    kind: &'static str,
    compact_threshold: u64,
}

impl ContextEdit {
    pub(super) fn compaction(compact_threshold: u64) -> Self {
        Self {
            kind: "compaction",
            compact_threshold,
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Reasoning {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) summary: Option<&'static str>,
}

/// An entry of the tool list, for requests whose vendor searches.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum ToolEntry<'a> {
    Tool(ToolForm<'a>),
    Namespace(Namespace<'a>),
    Search(SearchForm),
}

/// A group of functions that the model can load together or one by one.
#[derive(Debug, Serialize)]
pub(super) struct Namespace<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) description: String,
    pub(super) tools: Vec<ToolForm<'a>>,
}

/// The tool search that the vendor runs.
#[derive(Debug, Serialize)]
pub(super) struct SearchForm {
    #[serde(rename = "type")]
    kind: &'static str,
}

impl Default for SearchForm {
    fn default() -> Self {
        Self {
            kind: "tool_search",
        }
    }
}

/// A tool. `strict` is always sent: without it the vendor would apply every schema strictly.
#[derive(Debug, Serialize)]
pub(super) struct ToolForm<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) name: Cow<'a, str>,
    pub(super) description: &'a str,
    pub(super) parameters: Cow<'a, Value>,
    pub(super) strict: bool,
    /// True if the model sees the tool only after a search.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) defer_loading: bool,
}

/// An item of the conversation.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Item<'a> {
    Own(OwnItem<'a>),
    /// A thought, search or compaction, as the vendor sent it.
    Native(&'a Value),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum OwnItem<'a> {
    Message {
        role: Role,
        content: Content<'a>,
        /// The phase of the message, commentary or final answer; the vendor wants it back.
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a str>,
    },
    FunctionCall {
        call_id: &'a str,
        name: Cow<'a, str>,
        /// The namespace of a deferred function.
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
        arguments: String,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: Content<'a>,
    },
}

/// A plain text, or parts of which some are not texts.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<ContentPart<'a>>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type")]
pub(super) enum ContentPart<'a> {
    #[serde(rename = "input_text")]
    Text { text: Cow<'a, str> },
    #[serde(rename = "input_image")]
    Image { image_url: &'a str },
    #[serde(rename = "input_file")]
    File {
        filename: &'a str,
        file_data: &'a str,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    User,
    Assistant,
}

/// An event of a stream, or a complete answer, whose `object` is `response`. The fields of an event are
/// parsed only if its kind is known, so an unknown event may hold anything.
#[derive(Debug, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow, rename = "type", default)]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) object: Text<'a>,
    #[serde(borrow, default)]
    pub(super) output_index: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) item_id: Text<'a>,
    /// A piece of text, reasoning or arguments.
    #[serde(borrow, default)]
    pub(super) delta: Text<'a>,
    /// The complete text, in the event that ends its pieces.
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    /// The complete arguments, in the event that ends their pieces.
    #[serde(borrow, default)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

/// An item of an answer.
#[derive(Debug, Deserialize)]
pub(super) struct ItemForm<'a> {
    #[serde(borrow, rename = "type", default)]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) call_id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) phase: Text<'a>,
    /// The texts and refusals of a message.
    #[serde(borrow, default)]
    pub(super) content: Option<&'a RawValue>,
    /// The summary of a thought.
    #[serde(borrow, default)]
    pub(super) summary: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct PartForm<'a> {
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    #[serde(borrow, default)]
    pub(super) refusal: Text<'a>,
}

/// A complete answer, or its head.
#[derive(Debug, Deserialize)]
pub(super) struct ResponseForm<'a> {
    #[serde(borrow, default)]
    pub(super) status: Text<'a>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) output: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) incomplete_details: Option<Incomplete<'a>>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Incomplete<'a> {
    #[serde(borrow, default)]
    pub(super) reason: Text<'a>,
}

/// The JSON of arguments: a string by the specification, an object from some servers (S3.24).
pub(super) fn arguments(raw: Option<&RawValue>) -> String {
    let Some(raw) = raw else {
        return String::new();
    };
    match serde_json::from_str::<Text<'_>>(raw.get()) {
        Ok(Text(text)) if raw.get().starts_with('"') => text.into_owned(),
        Ok(_) if raw.get() == "null" => String::new(),
        Ok(_) | Err(_) => raw.get().to_owned(),
    }
}

/// The parts of a list, with texts and refusals; empty if it is not a list of parts.
pub(super) fn texts(raw: Option<&RawValue>) -> Vec<PartForm<'_>> {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default()
}

/// Parses the usage; `None` if it is invalid.
pub(super) fn usage(raw: &RawValue) -> Option<TokenUsage> {
    let usage: UsageForm = serde_json::from_str(raw.get()).ok()?;
    let input_tokens = usage.input_tokens?;
    let output_tokens = usage.output_tokens.unwrap_or_default();
    let input = usage.input_tokens_details.unwrap_or_default();
    let output = usage.output_tokens_details.unwrap_or_default();
    let cached_tokens = input.cached_tokens.unwrap_or_default().min(input_tokens);
    let written = input.cache_write_tokens.unwrap_or_default();
    Some(TokenUsage {
        input_tokens,
        cached_tokens,
        cache_write_long_tokens: 0,
        cache_write_tokens: written.min(input_tokens - cached_tokens),
        output_tokens,
        reasoning_tokens: output
            .reasoning_tokens
            .unwrap_or_default()
            .min(output_tokens),
        is_estimated: false,
    })
}

#[derive(Deserialize)]
struct UsageForm {
    #[serde(default, deserialize_with = "count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "or_none")]
    input_tokens_details: Option<InputDetails>,
    #[serde(default, deserialize_with = "or_none")]
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Default, Deserialize)]
struct InputDetails {
    #[serde(default, deserialize_with = "count")]
    cached_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    cache_write_tokens: Option<u64>,
}

#[derive(Default, Deserialize)]
struct OutputDetails {
    #[serde(default, deserialize_with = "count")]
    reasoning_tokens: Option<u64>,
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::{arguments, usage};

    #[test]
    fn every_class_of_tokens_is_read() {
        fn check(json: &str, expected: Option<[u64; 5]>) {
            let raw: &RawValue = serde_json::from_str(json).unwrap();
            let got = usage(raw).map(|u| {
                [
                    u.input_tokens,
                    u.cached_tokens,
                    u.cache_write_tokens,
                    u.output_tokens,
                    u.reasoning_tokens,
                ]
            });
            assert_eq!(got, expected, "{json}");
        }
        check(
            r#"{"input_tokens":9,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":2},
                "output_tokens":7,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":16}"#,
            Some([9, 4, 2, 7, 3]),
        );
        check(r#"{"input_tokens":9}"#, Some([9, 0, 0, 0, 0]));
        check(
            r#"{"input_tokens":1,"input_tokens_details":{"cached_tokens":4},"output_tokens_details":null}"#,
            Some([1, 1, 0, 0, 0]),
        );
        check("{}", None);
        check("[]", None);
    }

    #[test]
    fn arguments_are_a_string_or_an_object() {
        for (json, expected) in [
            (r#""{\"a\":1}""#, r#"{"a":1}"#),
            (r#"{"a":1}"#, r#"{"a":1}"#),
            ("null", ""),
            (r#""""#, ""),
        ] {
            let raw: &RawValue = serde_json::from_str(json).unwrap();
            assert_eq!(arguments(Some(raw)), expected, "{json}");
        }
        assert_eq!(arguments(None), "");
    }
}
