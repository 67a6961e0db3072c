//! A completion that a server asks the session's model for while a call of it runs
//! (`sampling/createMessage`).

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::domain::{Actor, Code, Digest, TurnId};
use crate::session::model::{ModelChoice, Spent};

/// What a server wants a model to be asked, and how far that is. People see all of it: what they
/// allow is what is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// The server's system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The conversation, the newest last.
    pub messages: Vec<SamplingMessage>,
    /// Tokens of the longest answer.
    pub max_tokens: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The answer ends before the first of these texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Which model is asked; no other stands in for it.
    pub model: ModelChoice,
    /// What counts as used should the gateway end while the model is asked.
    pub at_least: Spent,
    pub stage: SamplingStage,
}

/// One message of the conversation that a server hands over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SamplingMessage {
    pub role: SamplingRole,
    pub text: String,
}

/// Who says a message of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SamplingRole {
    User,
    Assistant,
}

/// How far a request for a completion is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum SamplingStage {
    /// Waits for the person.
    Requested,
    /// The model is asked.
    Asking {
        /// Who let it be asked.
        by: Actor,
        /// Whether they want to read the answer before the server gets it.
        has_review: bool,
        /// The turn that pays.
        turn: TurnId,
    },
    /// The model has answered, and the person looks at that before the server gets it.
    Answered {
        completion: Completion,
        /// Hash of request and answer: what a yes is about.
        digest: Digest,
    },
    /// There is no answer.
    Failed { problem: SamplingProblem },
}

/// What the model answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    pub text: String,
    /// The model's name at its provider.
    pub model: String,
    /// Why it stopped, in the words of MCP (`endTurn`, `stopSequence`, `maxTokens`).
    pub stop_reason: String,
}

/// Why there is no answer. The server hears the code alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SamplingProblem {
    pub code: Code,
    /// For people.
    pub text: String,
}

/// What a person says beside yes or no.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SamplingReply {
    /// What they were shown.
    pub digest: Option<Digest>,
    /// Whether the answer goes to the server without being looked at.
    pub skips_review: bool,
}

impl Sampling {
    /// Hash of all that is asked.
    pub fn digest(&self) -> Digest {
        Digest::of_json(&json!({
            "system": self.system, "messages": self.messages, "maxTokens": self.max_tokens,
            "temperature": self.temperature, "stop": self.stop, "model": self.model,
        }))
    }

    /// Hash of what waits for a yes; none while nothing does.
    pub fn shown(&self) -> Option<Digest> {
        match &self.stage {
            SamplingStage::Requested => Some(self.digest()),
            SamplingStage::Answered { digest, .. } => Some(digest.clone()),
            SamplingStage::Asking { .. } | SamplingStage::Failed { .. } => None,
        }
    }

    /// Hash of an answer to this.
    pub fn digest_of(&self, completion: &Completion) -> Digest {
        Digest::of_json(&json!({ "asked": self.digest(), "answer": completion }))
    }

    /// Whether it waits for the person, and not for the model.
    pub fn awaits_person(&self) -> bool {
        self.shown().is_some()
    }
}

impl Completion {
    /// As the server reads it: a result of `sampling/createMessage`.
    pub fn as_result(&self) -> Value {
        json!({
            "role": "assistant", "content": { "type": "text", "text": self.text },
            "model": self.model, "stopReason": self.stop_reason,
        })
    }
}
