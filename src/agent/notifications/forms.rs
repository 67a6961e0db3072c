//! What is told, before it has the form of any wire.

use crate::domain::{SessionKey, Timestamp};
use crate::store::records::NotificationEvent;

/// What happened to a batch. There are no arguments in it, and nothing that anybody said but the title
/// of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchNotice {
    pub event: NotificationEvent,
    /// When it happened.
    pub at: Timestamp,
    pub session: SessionKey,
    /// What the session is about; none until somebody or the first answer names it, or where titles are
    /// not told.
    pub title: Option<String>,
    /// The names of the tools that waited, each once, at most 20.
    pub tools: Vec<String>,
    /// Calls that waited.
    pub calls: u64,
    pub waiting_since: Timestamp,
    /// When the first of the calls that wait is rejected unless somebody decides; none = they wait until
    /// then.
    pub expires_at: Option<Timestamp>,
    /// The name of the person whose session it is.
    pub person: String,
    /// Whether somebody else is told, who may decide in it and sees nothing else of it.
    pub is_for_others: bool,
}

/// A text for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailText {
    pub subject: String,
    pub body: String,
}

/// How notices look on the wire. The doors know it, and are above this layer.
pub trait NotificationForms: Send + Sync {
    /// The body of a message to a webhook: the same for the same notice.
    fn webhook(&self, notice: &BatchNotice) -> String;

    /// The body of a message that only tries a webhook.
    fn webhook_trial(&self, at: Timestamp) -> String;

    /// A mail.
    fn mail(&self, notice: &BatchNotice) -> MailText;
}
