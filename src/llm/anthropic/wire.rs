//! Messages on the wire: requests borrow from the entries, events from the stream's text.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::domain::TokenUsage;
use crate::llm::contents::Encoded;
use crate::llm::stream::text::{Text, or_default};

/// A request.
#[derive(Debug, Serialize)]
pub(super) struct Body<'a> {
    pub(super) model: &'a str,
    pub(super) max_tokens: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tools: Vec<ToolForm<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_choice: Option<ToolChoice>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) system: Vec<Block<'a>>,
    pub(super) messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    pub(super) stream: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct ToolChoice {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct ToolForm<'a> {
    pub(super) name: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) description: &'a str,
    pub(super) input_schema: Cow<'a, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cache_control: Option<CacheControl>,
}

/// Says that everything up to here is worth keeping.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct CacheControl {
    #[serde(rename = "type")]
    kind: &'static str,
}

impl CacheControl {
    pub(super) const HERE: Self = Self { kind: "ephemeral" };
}

#[derive(Debug, Serialize)]
pub(super) struct Message<'a> {
    pub(super) role: Role,
    pub(super) content: Vec<Block<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    User,
    Assistant,
}

/// A block of a message.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Block<'a> {
    Own(OwnBlock<'a>),
    /// As the vendor sent it.
    Native(&'a Value),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum OwnBlock<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Image {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Document {
        source: Source<'a>,
        title: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ToolUse {
        id: &'a str,
        name: Cow<'a, str>,
        input: Cow<'a, Value>,
    },
    ToolResult {
        tool_use_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<ResultContent<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
}

/// What a tool gave; absent where it is blank, because the vendor refuses blank texts.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum ResultContent<'a> {
    Text(Cow<'a, str>),
    Blocks(Vec<Block<'a>>),
}

/// Where the content of a picture or a document is: here.
#[derive(Debug, Serialize)]
pub(super) struct Source<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    media_type: &'static str,
    data: &'a str,
}

impl<'a> Source<'a> {
    pub(super) fn new(encoded: &'a Encoded) -> Self {
        Self {
            kind: "base64",
            media_type: encoded.media_type(),
            data: encoded.data(),
        }
    }
}

/// An event of a stream, or a whole message, whose `type` is `message`. What a kind of event holds
/// is read only when that kind is known, so that an unknown one may hold anything.
#[derive(Debug, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow, rename = "type", default)]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) index: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) content_block: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) delta: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

/// `message_start`, or a whole answer.
#[derive(Debug, Deserialize)]
pub(super) struct MessageForm<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) content: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Text<'a>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
}

/// The beginning of a block, or a whole one.
#[derive(Debug, Deserialize)]
pub(super) struct BlockForm<'a> {
    #[serde(borrow, rename = "type", default)]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    #[serde(borrow, default)]
    pub(super) thinking: Text<'a>,
    #[serde(borrow, default)]
    pub(super) signature: Text<'a>,
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) input: Option<&'a RawValue>,
}

/// More of a block, or the end of the message.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, rename = "type", default)]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    #[serde(borrow, default)]
    pub(super) partial_json: Text<'a>,
    #[serde(borrow, default)]
    pub(super) thinking: Text<'a>,
    #[serde(borrow, default)]
    pub(super) signature: Text<'a>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Text<'a>,
}

/// What a request used, as far as it is known. The numbers of a stream are sums so far.
#[derive(Debug, Default, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the vendor's names")]
pub(super) struct Usage {
    /// Neither read from the cache nor put into it.
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

impl Usage {
    /// Takes what a later event says; a usage that is none changes nothing.
    pub(super) fn take(&mut self, raw: &RawValue) {
        let Ok(later) = serde_json::from_str::<Self>(raw.get()) else {
            return;
        };
        let pairs = [
            (&mut self.input_tokens, later.input_tokens),
            (
                &mut self.cache_creation_input_tokens,
                later.cache_creation_input_tokens,
            ),
            (
                &mut self.cache_read_input_tokens,
                later.cache_read_input_tokens,
            ),
            (&mut self.output_tokens, later.output_tokens),
        ];
        for (kept, later) in pairs {
            // Some servers repeat a number as 0.
            *kept = (*kept).max(later);
        }
    }

    /// The same in our own words; none = the server said nothing.
    pub(super) fn tokens(&self) -> Option<TokenUsage> {
        if self.input_tokens.is_none() && self.output_tokens.is_none() {
            return None;
        }
        let read = self.cache_read_input_tokens.unwrap_or_default();
        let written = self.cache_creation_input_tokens.unwrap_or_default();
        let fresh = self.input_tokens.unwrap_or_default();
        Some(TokenUsage {
            input_tokens: fresh.saturating_add(read).saturating_add(written),
            cached_tokens: read,
            cache_write_tokens: written,
            cache_write_long_tokens: 0,
            output_tokens: self.output_tokens.unwrap_or_default(),
            // The vendor counts thinking as output and does not tell them apart.
            reasoning_tokens: 0,
            is_estimated: false,
        })
    }
}
