//! Sessions (`/api/sessions`). Reading and telling goes through `agent::Sessions`, lists through
//! the records.

pub(super) mod commands;
pub(super) mod events;
pub(super) mod list;
pub(super) mod one;

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::{Caller, SessionId, SessionKey};
use crate::store::records::SessionRow;

/// A session as lists show it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SessionItem {
    /// Its id.
    id: String,
    /// What it is about; `null` until somebody or the first answer names it.
    title: Option<String>,
    /// When it began (RFC 3339).
    created_at: String,
    /// When something was last said or done.
    updated_at: String,
    /// `idle`, `running`, `waiting` or `failed`.
    state: &'static str,
    /// Calls that wait for a person.
    waiting: u64,
}

impl SessionItem {
    fn of(row: SessionRow) -> Self {
        Self {
            id: row.key.session.to_string(),
            title: Some(row.title).filter(|title| !title.is_empty()),
            created_at: row.created_at.to_rfc3339(),
            updated_at: row.updated_at.to_rfc3339(),
            state: row.state.as_str(),
            waiting: row.waiting,
        }
    }
}

/// The address of a session as this caller means it: always in their own tenant.
fn key_of(caller: &Caller, session: SessionId) -> SessionKey {
    SessionKey {
        tenant: caller.tenant.id.clone(),
        session,
    }
}
