//! Defines notices independently of any wire form.

use crate::domain::{SessionKey, Timestamp};
use crate::store::records::NotificationEvent;

/// A notice about a batch. It contains no arguments, and no text of the conversation except the session's
/// title.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchNotice {
    pub event: NotificationEvent,
    /// The time of the event.
    pub at: Timestamp,
    pub session: SessionKey,
    /// The session's title; `None` until somebody or the first answer sets it, or if titles are not sent.
    pub title: Option<String>,
    /// The names of the waiting tools, each once, at most 20.
    pub tools: Vec<String>,
    /// The number of waiting calls.
    pub calls: u64,
    pub waiting_since: Timestamp,
    /// The time at which the first waiting call is rejected without a decision; `None` = never.
    pub expires_at: Option<Timestamp>,
    /// The name of the session's owner.
    pub person: String,
    /// True if the recipient is not the owner, but may decide in the session and sees nothing else of it.
    pub is_for_others: bool,
}

/// A mail for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailText {
    pub subject: String,
    pub body: String,
}

/// Renders notices for the wire. Implemented by the doors, which are above this layer.
pub trait NotificationForms: Send + Sync {
    /// Renders the body of a webhook message. The same notice always gives the same body.
    fn webhook(&self, notice: &BatchNotice) -> String;

    /// Renders the body of a test message to a webhook.
    fn webhook_trial(&self, at: Timestamp) -> String;

    /// Renders a mail.
    fn mail(&self, notice: &BatchNotice) -> MailText;
}
