//! What was said: the units from which a model request is built.

use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Attachment, CallId, Encoding, Memo, Timestamp, Weights};

/// One call as the model asked for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelCall {
    /// Our id, shown everywhere (D8).
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
    pub blocks: Value,
    /// Whether the vendor compacted what it was sent: one of the blocks stands for all that was said
    /// before the message that they belong to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compacts: bool,
}

/// One entry of the working context, in the order in which the model reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Entry {
    /// A person's message.
    User {
        /// `seq` of the event that said it.
        seq: u64,
        text: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
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
        name: String,
        /// What the model reads.
        text: String,
        /// Whether the call failed, was refused, or its fate is unknown.
        is_error: bool,
        /// Pictures that the tool returned.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
    /// A remark of the system to the model, for example how an unknown call was settled.
    Note { text: String },
}

impl Entry {
    /// Whether providers of that family compacted all that was said before it.
    pub fn compacts(&self, family: &str) -> bool {
        let Self::Assistant { native, .. } = self else {
            return false;
        };
        let native = native.as_ref();
        native.is_some_and(|native| native.compacts && native.family == family)
    }

    /// A message in words: of a person where the role is `user`, of the model where it is `assistant`,
    /// else a remark (S4.20).
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

/// Where an entry comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// `seq` of the shown event that made it, or of the last one before.
    pub seq: u64,
    /// Which of several that it made, from 1; 0 = the only one.
    #[serde(default, skip_serializing_if = "is_only")]
    pub nth: u32,
    /// When that was decided.
    pub at: Timestamp,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands out references"
)]
fn is_only(nth: &u32) -> bool {
    *nth == 0
}

/// An entry that remembers where it comes from and how many tokens it counts: every request and every
/// figure of what is used goes through all of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Weighed {
    #[serde(flatten)]
    entry: Entry,
    /// None = nobody says it: words that stand for something else, and snapshots of early releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stamp: Option<Stamp>,
    #[serde(skip)]
    weights: Weights,
    /// Of what only the vendor reads, which is no text and has one count.
    #[serde(skip)]
    native: Memo<u64>,
}

impl Weighed {
    /// To be shared.
    pub fn new(entry: Entry) -> Arc<Self> {
        Self::stamped(entry, None)
    }

    /// The same of an entry that comes from there.
    pub fn stamped(entry: Entry, stamp: Option<Stamp>) -> Arc<Self> {
        Arc::new(Self {
            entry,
            stamp,
            weights: Weights::default(),
            native: Memo::default(),
        })
    }

    /// Another form of this entry, which comes from where this one does.
    pub fn reworded(&self, entry: Entry) -> Arc<Self> {
        Self::stamped(entry, self.stamp)
    }

    /// Where it comes from.
    pub fn stamp(&self) -> Option<Stamp> {
        self.stamp
    }

    /// Its tokens by `count`, of which there is one for each encoding.
    pub fn weight(&self, encoding: Encoding, count: impl FnOnce(&Entry) -> u64) -> u64 {
        self.weights.get(encoding, || count(&self.entry))
    }

    /// The tokens of what only the vendor reads, by `count`.
    pub fn native_weight(&self, count: impl FnOnce(&Entry) -> u64) -> u64 {
        *self.native.get(|| count(&self.entry))
    }

    /// Whether its tokens were counted before.
    pub fn is_weighed(&self, encoding: Encoding) -> bool {
        self.weights.has(encoding)
    }

    /// To be changed.
    pub fn entry_mut(&mut self) -> &mut Entry {
        self.weights = Weights::default();
        self.native = Memo::default();
        &mut self.entry
    }
}

impl Deref for Weighed {
    type Target = Entry;

    fn deref(&self) -> &Entry {
        &self.entry
    }
}
