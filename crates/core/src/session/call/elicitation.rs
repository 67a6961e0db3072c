//! What a server asks the person while a call of it runs.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::sampling::{Sampling, SamplingReply};
use crate::domain::{Actor, CallId, ElicitationId, Timestamp};

/// A form that a server wants to have filled in, a page that it wants opened, or a completion that it
/// wants of a model. It ends with its call at
/// the latest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Elicitation {
    pub id: ElicitationId,
    /// The call that runs meanwhile.
    pub call: CallId,
    pub server: String,
    /// The server's words, for the person.
    pub message: String,
    /// JSON Schema of an object with flat fields; null of anything else.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub schema: Value,
    /// The names of the fields in the server's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
    /// The page to open; none of anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Whether the person went to the page.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_opened: bool,
    pub asked_at: Timestamp,
    /// What was answered; none = it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<ElicitationAnswer>,
    /// What a model is to be asked; none = only the person is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Box<Sampling>>,
}

impl Elicitation {
    /// Whether its server has no answer yet.
    pub fn is_open(&self) -> bool {
        self.answer.is_none()
    }

    /// Whether it waits for the person.
    pub fn awaits_person(&self) -> bool {
        let sampling = self.sampling.as_ref();
        self.is_open() && sampling.is_none_or(|sampling| sampling.awaits_person())
    }
}

/// What becomes of a form, in the words of MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ElicitationAction {
    /// The person filled it in.
    Accept,
    /// The person does not want to say it.
    Decline,
    /// Nobody chose: it was closed.
    Cancel,
}

/// An answer as the server gets it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ElicitationAnswer {
    pub action: ElicitationAction,
    /// The values of the fields, or what the model said, with [`ElicitationAction::Accept`] alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
}

/// Why a form was closed that nobody answered, or a page that nobody said to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ElicitationEnd {
    /// Its call has ended.
    CallEnded,
    /// Its call, or the turn, is to stop.
    Stopped,
    /// The server does not want to know any more.
    Withdrawn,
    /// The server says that all is done at its page.
    Completed,
    /// The model that was to be asked gave no answer.
    Failed,
}

/// A person's answer to a form.
#[derive(Debug, Clone, PartialEq)]
pub struct ElicitationReply {
    pub id: ElicitationId,
    pub answer: ElicitationAnswer,
    pub by: Actor,
    /// What is wrong with the values, as the shell found it.
    pub invalid: Option<String>,
    /// What else it says of a completion.
    pub sampling: SamplingReply,
}

/// When the oldest of the forms that wait was asked; none = none waits.
pub fn elicitations_wait_since<'e>(
    asked: impl IntoIterator<Item = &'e Arc<Elicitation>>,
) -> Option<Timestamp> {
    let open = asked.into_iter().filter(|asked| asked.awaits_person());
    open.map(|asked| asked.asked_at).min()
}
