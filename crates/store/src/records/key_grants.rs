//! Stores what an API key may do, as texts.

use std::collections::BTreeSet;
use std::sync::Arc;

use sepal_core::domain::{KeyGrant, KeyScopes, SessionId};

/// What a key may do, as the database has it; null = no limit.
#[derive(sqlx_macros::FromRow)]
pub(super) struct StoredGrant {
    pub(super) scopes: Option<String>,
    pub(super) sessions: Option<String>,
    pub(super) servers: Option<String>,
}

impl StoredGrant {
    pub(super) fn of(grant: &KeyGrant) -> Self {
        let sessions = grant.sessions.as_ref();
        let ids = |ids: &BTreeSet<SessionId>| {
            let ids: Vec<&str> = ids.iter().map(SessionId::as_str).collect();
            ids.join(" ")
        };
        let names = |names: &Arc<BTreeSet<String>>| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            names.join(" ")
        };
        Self {
            scopes: (!grant.scopes.is_all()).then(|| grant.scopes.to_text()),
            sessions: sessions.map(ids),
            servers: grant.servers.as_ref().map(names),
        }
    }

    pub(super) fn new(
        scopes: Option<String>,
        sessions: Option<String>,
        servers: Option<String>,
    ) -> Self {
        Self {
            scopes,
            sessions,
            servers,
        }
    }

    /// What cannot be read allows nothing.
    pub(super) fn into_grant(self) -> KeyGrant {
        let words = |text: String| -> Vec<String> {
            text.split_whitespace().map(ToOwned::to_owned).collect()
        };
        let sessions = self.sessions.map(words);
        let servers = self.servers.map(words);
        KeyGrant {
            scopes: match self.scopes {
                Some(text) => KeyScopes::from_text(&text),
                None => KeyScopes::all(),
            },
            sessions: sessions
                .map(|ids| ids.iter().filter_map(|id| SessionId::parse(id)).collect()),
            servers: servers.map(|names| Arc::new(names.into_iter().collect())),
        }
    }
}
