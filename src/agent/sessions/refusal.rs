//! Defines the refusals for sessions that cannot be opened.

use tokio::sync::mpsc;

use crate::agent::journal::JournalError;
use crate::agent::mailbox::{Message, damaged, store_away};
use crate::domain::{Code, SessionKey};
use crate::session::Refusal;

/// Refuses all messages to a session that cannot be opened.
pub(super) async fn refuse_all(mut messages: mpsc::Receiver<Message>, refusal: &Refusal) {
    messages.close();
    while let Some(message) = messages.recv().await {
        message.refuse(refusal);
    }
}

pub(super) fn unreadable(key: &SessionKey, error: &JournalError) -> Refusal {
    if error.is_damage() {
        tracing::error!(session.id = %key.session, tenant.id = %key.tenant, ?error,
            "The session cannot be opened: what is stored of it is damaged");
        damaged()
    } else {
        tracing::warn!(session.id = %key.session, ?error, "The store is away");
        store_away()
    }
}

pub(super) fn not_found() -> Refusal {
    Refusal::new(Code::SessionNotFound, "there is no such session")
}
