//! Defines the kinds of contexts, by which filters and the assembler treat them (S4.10).

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The kind of a [`Context`](super::Context): one of the standard ones, or any other name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ContextKind {
    /// Part of the system prompt. The model reads it as the operator's own words, so no text of a tenant, a
    /// tool or the network may have this kind.
    System,
    /// A message of a person.
    User,
    /// A message of the model.
    Assistant,
    /// A call that the model asked for.
    ToolCall,
    /// The result of a call.
    ToolResult,
    /// The model's reasoning; sent back only to the vendor that it comes from (S4.9).
    Thinking,
    /// Any other kind; the model reads it as material, in a frame that names it.
    Custom(Arc<str>),
}

impl ContextKind {
    /// The name in metadata and filters.
    pub fn as_str(&self) -> &str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::ToolCall => "tool_call",
            Self::ToolResult => "tool_result",
            Self::Thinking => "thinking",
            Self::Custom(name) => name,
        }
    }
}

impl From<&str> for ContextKind {
    fn from(name: &str) -> Self {
        match name {
            "system" => Self::System,
            "user" => Self::User,
            "assistant" => Self::Assistant,
            "tool_call" => Self::ToolCall,
            "tool_result" => Self::ToolResult,
            "thinking" => Self::Thinking,
            other => Self::Custom(other.into()),
        }
    }
}

impl FromStr for ContextKind {
    type Err = Infallible;

    fn from_str(name: &str) -> Result<Self, Infallible> {
        Ok(name.into())
    }
}

impl fmt::Display for ContextKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for ContextKind {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ContextKind {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        Ok(name.as_str().into())
    }
}
