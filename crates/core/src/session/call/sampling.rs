//! Models completions that a server requests from the session's model during one of its calls
//! (`sampling/createMessage`).

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::domain::{Actor, Code, Digest, TurnId};
use crate::session::model::{AttemptUsage, ModelChoice};

/// A completion that a server requests, and its progress. People see all of the request: exactly what they
/// allow is sent to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// The server's system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The conversation, oldest message first.
    pub messages: Vec<SamplingMessage>,
    /// Maximum tokens of the answer.
    pub max_tokens: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The answer ends before the first of these texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// The model to ask; no fallback replaces it.
    pub model: ModelChoice,
    /// The usage to count if the gateway ends while the model is asked.
    pub at_least: AttemptUsage,
    pub stage: SamplingStage,
}

/// One message of the server's conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SamplingMessage {
    pub role: SamplingRole,
    pub text: String,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SamplingRole {
    User,
    Assistant,
}

/// The progress of a completion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum SamplingStage {
    /// Waits for the person.
    Requested,
    /// The model is asked.
    Asking {
        /// The person who allowed the request.
        by: Actor,
        /// True if that person wants to read the answer before the server gets it.
        has_review: bool,
        /// The turn that pays.
        turn: TurnId,
    },
    /// The model has answered, and the person reviews the answer before the server gets it.
    Answered {
        completion: Completion,
        /// Hash of request and answer, which an approval covers.
        digest: Digest,
    },
    /// The completion failed.
    Failed { problem: SamplingProblem },
}

/// The model's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    pub text: String,
    /// The model's name at its provider.
    pub model: String,
    /// The stop reason, as named in MCP (`endTurn`, `stopSequence`, `maxTokens`).
    pub stop_reason: String,
}

/// The error of a failed completion. The server only gets the code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SamplingProblem {
    pub code: Code,
    /// The error text for people.
    pub text: String,
}

/// The parts of a person's reply to a completion beyond accept or decline.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SamplingReply {
    /// The digest that the person was shown.
    pub digest: Option<Digest>,
    /// True if the answer goes to the server without a review.
    pub skips_review: bool,
}

impl Sampling {
    /// Hash of the whole request.
    pub fn digest(&self) -> Digest {
        Digest::of_json(&json!({
            "system": self.system, "messages": self.messages, "maxTokens": self.max_tokens,
            "temperature": self.temperature, "stop": self.stop, "model": self.model,
        }))
    }

    /// Hash of what waits for the person's approval; `None` if nothing waits.
    pub fn shown(&self) -> Option<Digest> {
        match &self.stage {
            SamplingStage::Requested => Some(self.digest()),
            SamplingStage::Answered { digest, .. } => Some(digest.clone()),
            SamplingStage::Asking { .. } | SamplingStage::Failed { .. } => None,
        }
    }

    /// Hash of this request with that answer.
    pub fn digest_of(&self, completion: &Completion) -> Digest {
        Digest::of_json(&json!({ "asked": self.digest(), "answer": completion }))
    }

    /// Returns true if the completion waits for the person, not for the model.
    pub fn awaits_person(&self) -> bool {
        self.shown().is_some()
    }
}

impl Completion {
    /// The answer as a result of `sampling/createMessage`.
    pub fn as_result(&self) -> Value {
        json!({
            "role": "assistant", "content": { "type": "text", "text": self.text },
            "model": self.model, "stopReason": self.stop_reason,
        })
    }
}
