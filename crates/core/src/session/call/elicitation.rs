//! Models the questions that a server asks the person during one of its calls.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::sampling::{Sampling, SamplingReply};
use crate::domain::{Actor, CallId, ElicitationId, Timestamp};

/// A form that a server wants filled in, a page that it wants opened, or a completion that it wants from a
/// model. It ends with its call at the latest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Elicitation {
    pub id: ElicitationId,
    /// The running call.
    pub call: CallId,
    pub server: String,
    /// The server's message to the person.
    pub message: String,
    /// JSON Schema of an object with flat fields; null if this is not a form.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub schema: Value,
    /// The names of the fields in the server's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
    /// The page to open; `None` if this is not a page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// True if the person opened the page.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_opened: bool,
    pub asked_at: Timestamp,
    /// The answer; `None` = still waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<ElicitationAnswer>,
    /// The completion that the server requests; `None` = only the person is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Box<Sampling>>,
}

impl Elicitation {
    /// Returns true if the server has no answer yet.
    pub fn is_open(&self) -> bool {
        self.answer.is_none()
    }

    /// Returns true if the elicitation waits for the person.
    pub fn awaits_person(&self) -> bool {
        let sampling = self.sampling.as_ref();
        self.is_open() && sampling.is_none_or(|sampling| sampling.awaits_person())
    }
}

/// The action of an answer, as named in MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ElicitationAction {
    /// The person filled it in.
    Accept,
    /// The person declined.
    Decline,
    /// The elicitation was closed without a choice.
    Cancel,
}

/// An answer to the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ElicitationAnswer {
    pub action: ElicitationAction,
    /// The values of the fields, or the model's answer; only with [`ElicitationAction::Accept`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
}

/// The reason an elicitation was closed without an answer, or its page without a person's confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ElicitationEnd {
    /// Its call has ended.
    CallEnded,
    /// Its call or the turn has to stop.
    Stopped,
    /// The server withdrew it.
    Withdrawn,
    /// The server reported that the person is done at its page.
    Completed,
    /// The requested completion failed.
    Failed,
}

/// A person's answer to an elicitation.
#[derive(Debug, Clone, PartialEq)]
pub struct ElicitationReply {
    pub id: ElicitationId,
    pub answer: ElicitationAnswer,
    pub by: Actor,
    /// The validation error of the values, found by the shell.
    pub invalid: Option<String>,
    /// The part of the reply that concerns a completion.
    pub sampling: SamplingReply,
}

/// Time of the oldest elicitation that waits for the person; `None` = none waits.
pub fn elicitations_wait_since<'e>(
    asked: impl IntoIterator<Item = &'e Arc<Elicitation>>,
) -> Option<Timestamp> {
    let open = asked.into_iter().filter(|asked| asked.awaits_person());
    open.map(|asked| asked.asked_at).min()
}
