//! What was said: the units from which a model request is built.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::CallId;

/// One call as the model asked for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelCall {
    /// Our id, shown everywhere (C8).
    pub id: CallId,
    /// The provider's own id, used only in requests to that provider.
    pub provider_id: String,
    /// The tool's name as the model was told it.
    pub name: String,
    /// The arguments as the model wrote them.
    pub args: Value,
}

/// Blocks that only one provider family understands (reasoning signatures, cache markers).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Native {
    /// The family they may be sent back to.
    pub family: String,
    /// The blocks, untouched.
    pub blocks: Value,
}

/// One entry of the working context, in the order in which the model reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Entry {
    /// A person's message.
    User {
        /// `seq` of the event that said it.
        seq: u64,
        /// The text.
        text: String,
    },
    /// The model's message, with the calls it asked for.
    Assistant {
        /// The text; empty when it only called tools.
        text: String,
        /// The calls, in order.
        calls: Vec<ModelCall>,
        /// Provider-native blocks, if any.
        native: Option<Native>,
    },
    /// The result that pairs a call.
    ToolResult {
        /// Our id of the call.
        call_id: CallId,
        /// The provider's id of the call.
        provider_id: String,
        /// The tool's name.
        name: String,
        /// What the model reads.
        text: String,
        /// Whether the call failed, was refused, or its fate is unknown.
        is_error: bool,
    },
    /// A remark of the system to the model, for example how an unknown call was settled.
    Note {
        /// The remark.
        text: String,
    },
}
