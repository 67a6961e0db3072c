//! The wire forms of the Messages API: requests borrow from the entries, events from the stream's text.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::contents::Encoded;
use crate::stream::text::{Text, or_default};

/// A request.
#[derive(Debug, Serialize)]
pub(super) struct Body<'a> {
    pub(super) model: &'a str,
    pub(super) max_tokens: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tools: Vec<ToolEntry<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_choice: Option<ToolChoice>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) system: Vec<Block<'a>>,
    pub(super) messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) context_management: Option<ContextManagement>,
    pub(super) stream: bool,
}

/// Edits that the vendor makes to the messages before the model reads them.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct ContextManagement {
    edits: [Edit; 1],
}

#[derive(Debug, Clone, Copy, Serialize)]
struct Edit {
    #[serde(rename = "type")]
    kind: &'static str,
    trigger: Trigger,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct Trigger {
    #[serde(rename = "type")]
    kind: &'static str,
    value: u64,
}

impl ContextManagement {
    /// Compacts the messages from the given number of input tokens on.
    pub(super) fn compact(tokens: u64) -> Self {
        let trigger = Trigger {
            kind: "input_tokens",
            value: tokens,
        };
        Self {
            edits: [Edit {
                kind: "compact_20260112",
                trigger,
            }],
        }
    }
}

/// The `thinking` parameter: how much the model is told to think.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Thinking {
    /// As much as the effort says.
    Adaptive {
        /// The form in which thoughts are shown; newer models omit thoughts if it is absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        display: Option<&'static str>,
    },
    Enabled {
        budget_tokens: u32,
    },
    Disabled,
    BetweenTools,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct OutputConfig {
    pub(super) effort: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct ToolChoice {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
}

/// A tool of the request, or the vendor's tool search.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum ToolEntry<'a> {
    Tool(ToolForm<'a>),
    Search(SearchForm),
}

impl ToolEntry<'_> {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Tool(form) => &form.name,
            Self::Search(form) => form.name,
        }
    }
}

/// The tool search that the vendor runs.
#[derive(Debug, Serialize)]
pub(super) struct SearchForm {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cache_control: Option<CacheControl>,
}

impl SearchForm {
    /// The name that the vendor prescribes.
    pub(super) const NAME: &'static str = "tool_search_tool_bm25";

    /// The variant that searches by natural language.
    pub(super) fn bm25() -> Self {
        Self {
            kind: "tool_search_tool_bm25_20251119",
            name: Self::NAME,
            cache_control: None,
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct ToolForm<'a> {
    pub(super) name: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) description: &'a str,
    pub(super) input_schema: Cow<'a, Value>,
    /// True if the model sees the tool only after a search. Such a tool must have no `cache_control`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) defer_loading: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cache_control: Option<CacheControl>,
}

/// Marks the end of a prefix that the vendor should cache.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct CacheControl {
    #[serde(rename = "type")]
    kind: &'static str,
    /// The lifetime of the cache entry; absent = the vendor's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

impl CacheControl {
    pub(super) fn here(ttl: Option<&'static str>) -> Self {
        Self {
            kind: "ephemeral",
            ttl,
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Message<'a> {
    pub(super) role: Role,
    pub(super) content: Vec<Block<'a>>,
}

impl Message<'_> {
    /// Returns true if the message holds results of calls.
    pub(super) fn has_results(&self) -> bool {
        let mut blocks = self.content.iter();
        blocks.any(|block| matches!(block, Block::Own(OwnBlock::ToolResult { .. })))
    }

    /// Returns true if the message starts with a thought, not counting compaction blocks.
    pub(super) fn begins_with_thought(&self) -> bool {
        let is_compaction =
            |block: &&Block<'_>| matches!(block, Block::Native(it) if it["type"] == "compaction");
        let mut said = self.content.iter().skip_while(is_compaction);
        let Some(Block::Native(block)) = said.next() else {
            return false;
        };
        block["type"] == "thinking" || block["type"] == "redacted_thinking"
    }
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
    /// A block as the vendor sent it.
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

/// The content of a tool result; absent if it is blank, because the vendor refuses blank texts.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum ResultContent<'a> {
    Text(Cow<'a, str>),
    Blocks(Vec<Block<'a>>),
}

/// The content of a picture or document, embedded as base64.
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

/// An event of a stream, or a complete message, whose `type` is `message`. The fields of an event are parsed
/// only if its kind is known, so an unknown event may hold anything.
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

/// The body of `message_start`, or a complete answer.
#[derive(Debug, Deserialize)]
pub(super) struct MessageForm<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) content: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Text<'a>,
    #[serde(borrow, default)]
    pub(super) stop_details: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
}

/// The start of a block, or a complete block.
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

/// A further piece of a block, or the end of the message.
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
    #[serde(borrow, default)]
    pub(super) stop_details: Option<&'a RawValue>,
}

/// The vendor's explanation of a refusal.
#[derive(Debug, Default, Deserialize)]
pub(super) struct StopDetails<'a> {
    #[serde(borrow, default)]
    pub(super) category: Text<'a>,
    #[serde(borrow, default)]
    pub(super) explanation: Text<'a>,
}
