//! Sessions (`/api/sessions`). Reading and telling goes through `agent::Sessions`, lists through
//! the records.

pub(super) mod attachments;
pub(super) mod bulk;
pub(super) mod commands;
pub(super) mod events;
pub(super) mod list;
pub(super) mod one;
pub(super) mod search;
mod tag;

use crate::domain::{Caller, SessionId, SessionKey};

/// The address of a session as this caller means it: always in their own tenant.
fn key_of(caller: &Caller, session: SessionId) -> SessionKey {
    SessionKey {
        tenant: caller.tenant.id.clone(),
        session,
    }
}
