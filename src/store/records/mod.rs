//! What is known beside the journals: who may enter, and the lists of sessions. Every query
//! carries the tenant, except those that find somebody by the hash of a secret.

mod admission;
mod api_keys;
mod links;
mod sessions;
mod tenants;
mod users;
mod web_sessions;

pub use admission::{Admission, SecretHash};
pub use api_keys::{ApiKey, ApiKeys, NewApiKey};
pub use links::{LinkTarget, Links};
pub use sessions::{Cursor, SessionRow, SessionState, Sessions, SessionsPage};
pub use tenants::Tenants;
pub use users::{FirstOwner, NewUser, UserRecord, Users};
pub use web_sessions::{NewWebSession, WebSessions};

use super::Error;
use super::db::Db;
use crate::domain::{TenantId, UserId};

/// The records, by noun.
#[derive(Debug, Clone)]
pub struct Records {
    db: Db,
}

/// Declares one accessor for each noun.
macro_rules! nouns {
    ($($(#[$doc:meta])* $name:ident: $noun:ident),* $(,)?) => {
        $($(#[$doc])* pub fn $name(&self) -> $noun<'_> { $noun::new(&self.db) })*
    };
}

impl Records {
    pub(super) fn new(db: Db) -> Self {
        Self { db }
    }

    nouns! {
        /// Isolation boundaries.
        tenants: Tenants,
        /// People and services.
        users: Users,
        /// Keys of programs.
        api_keys: ApiKeys,
        /// Browsers that are signed in.
        web_sessions: WebSessions,
        /// Secrets that open once.
        links: Links,
        /// The lists of sessions.
        sessions: Sessions,
    }
}

fn tenant_id(text: String) -> Result<TenantId, Error> {
    TenantId::parse(&text).ok_or_else(|| Error::corrupt("tenant id", text))
}

fn user_id(text: String) -> Result<UserId, Error> {
    UserId::parse(&text).ok_or_else(|| Error::corrupt("user id", text))
}
