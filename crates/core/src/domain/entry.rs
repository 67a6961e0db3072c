//! Defines the entries of the working context from which model requests are built.

use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Attachment, CallId, Encoding, Memo, Timestamp, Weights};

/// One call as the model requested it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelCall {
    /// Our own id, shown everywhere (D8).
    pub id: CallId,
    /// The provider's own id, used only in requests to that provider.
    pub provider_id: String,
    /// The tool's name as the model knows it.
    pub name: String,
    /// The arguments as the model wrote them.
    pub args: Value,
}

/// Blocks that only one provider family understands (reasoning signatures, cache markers).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Native {
    /// The provider family that the blocks may be sent back to.
    pub family: String,
    pub blocks: Value,
    /// True if the vendor compacted its input: one of the blocks replaces everything before the message
    /// that the blocks belong to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compacts: bool,
}

/// One entry of the working context, in the order in which the model reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Entry {
    /// A person's message.
    User {
        /// `seq` of the message's event.
        seq: u64,
        text: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
    /// The model's message, with the calls that it requested.
    Assistant {
        /// The text; empty if the model only requested calls.
        text: String,
        /// The calls, in order.
        calls: Vec<ModelCall>,
        /// Provider-native blocks, if any.
        native: Option<Native>,
    },
    /// The result of a call.
    ToolResult {
        /// Our own id of the call.
        call_id: CallId,
        /// The provider's id of the call.
        provider_id: String,
        name: String,
        /// The text for the model.
        text: String,
        /// True if the call failed, was rejected, or its outcome is unknown.
        is_error: bool,
        /// Pictures that the tool returned.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
    /// A note of the system to the model, for example about a settled call.
    Note { text: String },
}

impl Entry {
    /// Returns true if a vendor's compaction in this entry replaces all earlier entries for providers of
    /// that family.
    pub fn compacts(&self, family: &str) -> bool {
        let Self::Assistant { native, .. } = self else {
            return false;
        };
        let native = native.as_ref();
        native.is_some_and(|native| native.compacts && native.family == family)
    }

    /// A plain message: a person's for the role `user`, the model's for `assistant`, otherwise a note
    /// (S4.20).
    pub fn message(role: &str, text: impl Into<String>) -> Self {
        let text = text.into();
        match role {
            "user" => Self::User {
                seq: 0,
                text,
                attachments: Vec::new(),
            },
            "assistant" => Self::Assistant {
                text,
                calls: Vec::new(),
                native: None,
            },
            _ => Self::Note { text },
        }
    }
}

/// The event that an entry comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// `seq` of the shown event behind the entry, or of the last shown event before a hidden one.
    pub seq: u64,
    /// Number among the entries of that event, from 1; 0 = the only one.
    #[serde(default, skip_serializing_if = "is_only")]
    pub nth: u32,
    /// Time of the decision.
    pub at: Timestamp,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands out references"
)]
fn is_only(nth: &u32) -> bool {
    *nth == 0
}

/// An entry with its stamp and its cached token counts, because every request and every usage figure counts
/// all entries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CountedEntry {
    #[serde(flatten)]
    entry: Entry,
    /// `None` = no event: the entry replaces others, or comes from a snapshot of an early release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stamp: Option<Stamp>,
    #[serde(skip)]
    weights: Weights,
    /// Tokens of the native blocks, which have one count for all encodings.
    #[serde(skip)]
    native: Memo<u64>,
}

impl CountedEntry {
    /// An entry without a stamp, ready to be shared.
    pub fn new(entry: Entry) -> Arc<Self> {
        Self::stamped(entry, None)
    }

    /// An entry with a stamp, ready to be shared.
    pub fn stamped(entry: Entry, stamp: Option<Stamp>) -> Arc<Self> {
        Arc::new(Self {
            entry,
            stamp,
            weights: Weights::default(),
            native: Memo::default(),
        })
    }

    /// Another form of this entry with the same stamp.
    pub fn reworded(&self, entry: Entry) -> Arc<Self> {
        Self::stamped(entry, self.stamp)
    }

    /// The event that the entry comes from.
    pub fn stamp(&self) -> Option<Stamp> {
        self.stamp
    }

    /// The token count in this encoding, computed by `count` on first use.
    pub fn weight(&self, encoding: Encoding, count: impl FnOnce(&Entry) -> u64) -> u64 {
        self.weights.get(encoding, || count(&self.entry))
    }

    /// The token count of the native blocks, computed by `count` on first use.
    pub fn native_weight(&self, count: impl FnOnce(&Entry) -> u64) -> u64 {
        *self.native.get(|| count(&self.entry))
    }

    /// Returns true if the tokens were already counted in this encoding.
    pub fn is_weighed(&self, encoding: Encoding) -> bool {
        self.weights.has(encoding)
    }

    /// Mutable access; drops the cached counts.
    pub fn entry_mut(&mut self) -> &mut Entry {
        self.weights = Weights::default();
        self.native = Memo::default();
        &mut self.entry
    }
}

impl Deref for CountedEntry {
    type Target = Entry;

    fn deref(&self) -> &Entry {
        &self.entry
    }
}
