//! Says what an API key may do, and with what: its scopes, and the sessions and MCP servers that it is limited to.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Caller, SessionId};

/// A kind of action that an API key may take. The role of the key's user decides what can be done at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyScope {
    /// See things.
    Read,
    /// Begin sessions, send messages, and change one's own sessions.
    Message,
    /// Approve, deny and edit calls, answer servers, and give rules of one's own.
    Decide,
    /// Change servers, providers, people, settings and everything else.
    Administer,
}

impl KeyScope {
    /// Every scope.
    pub const ALL: [Self; 4] = [Self::Read, Self::Message, Self::Decide, Self::Administer];

    /// The name on the wire and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Message => "message",
            Self::Decide => "decide",
            Self::Administer => "administer",
        }
    }

    /// Parses the form that [`Self::as_str`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text)
    }
}

/// A set of scopes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyScopes(BTreeSet<KeyScope>);

impl KeyScopes {
    /// Every scope.
    pub fn all() -> Self {
        KeyScope::ALL.into_iter().collect()
    }

    /// Returns true if the set has a scope. No scope includes another one.
    pub fn has(&self, scope: KeyScope) -> bool {
        self.0.contains(&scope)
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if there are all.
    pub fn is_all(&self) -> bool {
        self.0.len() == KeyScope::ALL.len()
    }

    /// The names.
    pub fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|scope| scope.as_str()).collect()
    }

    /// The names, separated by spaces, as the database has them.
    pub fn to_text(&self) -> String {
        self.names().join(" ")
    }

    /// Reads what [`Self::to_text`] writes. A name that this version does not know allows nothing.
    pub fn from_text(text: &str) -> Self {
        text.split_whitespace()
            .filter_map(KeyScope::parse)
            .collect()
    }
}

impl FromIterator<KeyScope> for KeyScopes {
    fn from_iter<T: IntoIterator<Item = KeyScope>>(scopes: T) -> Self {
        Self(scopes.into_iter().collect())
    }
}

/// The limits of an API key. A key allows at most what its user may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyGrant {
    pub scopes: KeyScopes,
    /// The only sessions that exist for the key; `None` = those of its user.
    pub sessions: Option<BTreeSet<SessionId>>,
    /// The only MCP servers whose tools sessions of the key may use; `None` = those of its user.
    pub servers: Option<Arc<BTreeSet<String>>>,
}

impl KeyGrant {
    /// A key that may whatever its user may.
    pub fn unlimited() -> Self {
        Self {
            scopes: KeyScopes::all(),
            sessions: None,
            servers: None,
        }
    }

    /// A key with these limits. Without scopes, it has all that its other limits allow: a key that is limited to some
    /// sessions or servers administers nothing.
    pub fn within(
        scopes: Option<KeyScopes>,
        sessions: Option<BTreeSet<SessionId>>,
        servers: Option<Arc<BTreeSet<String>>>,
    ) -> Self {
        let is_confined = sessions.is_some() || servers.is_some();
        let allowed = || {
            let all = KeyScope::ALL.into_iter();
            all.filter(|scope| !is_confined || *scope != KeyScope::Administer)
                .collect()
        };
        Self {
            scopes: scopes.unwrap_or_else(allowed),
            sessions,
            servers,
        }
    }

    /// Returns true if the key may whatever its user may.
    pub fn is_unlimited(&self) -> bool {
        self.scopes.is_all() && !self.is_confined()
    }

    /// Returns true if the key is limited to some sessions or servers.
    pub fn is_confined(&self) -> bool {
        self.sessions.is_some() || self.servers.is_some()
    }
}

impl Caller {
    /// Returns true if the caller's key has a scope. Callers without a key have all.
    pub fn has_scope(&self, scope: KeyScope) -> bool {
        let grant = self.grant.as_ref();
        grant.is_none_or(|grant| grant.scopes.has(scope))
    }

    /// Returns true if the session may exist for the caller's key.
    pub fn reaches(&self, session: &SessionId) -> bool {
        let within = self.confined_sessions();
        within.is_none_or(|within| within.contains(session))
    }

    /// The only sessions that exist for the caller's key; `None` = those of the user.
    pub fn confined_sessions(&self) -> Option<&BTreeSet<SessionId>> {
        self.grant.as_ref()?.sessions.as_ref()
    }

    /// The only MCP servers whose tools the sessions of the caller's key may use; `None` = those of the user.
    pub fn confined_servers(&self) -> Option<&Arc<BTreeSet<String>>> {
        self.grant.as_ref()?.servers.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::{KeyGrant, KeyScope, KeyScopes};

    #[test]
    fn scopes_are_stored_by_name_and_unknown_ones_allow_nothing() {
        for scope in KeyScope::ALL {
            assert_eq!(KeyScope::parse(scope.as_str()), Some(scope));
        }
        let some: KeyScopes = [KeyScope::Decide, KeyScope::Read].into_iter().collect();
        assert_eq!(some.to_text(), "read decide");
        assert_eq!(KeyScopes::from_text("read decide"), some);
        assert!(KeyScopes::from_text("own everything").is_empty());
        assert!(KeyScopes::all().is_all() && !some.is_all());
        assert!(some.has(KeyScope::Read) && !some.has(KeyScope::Message));
    }

    #[test]
    fn a_key_is_limited_by_scopes_sessions_or_servers() {
        let all = KeyGrant::unlimited();
        assert!(all.is_unlimited());
        let reads = KeyGrant {
            scopes: KeyScopes::from_text("read"),
            ..all.clone()
        };
        assert!(!reads.is_unlimited() && !reads.is_confined());
        let confined = KeyGrant {
            sessions: Some([].into()),
            ..all
        };
        assert!(!confined.is_unlimited() && confined.is_confined());
        let names = |sessions| KeyGrant::within(None, sessions, None).scopes.to_text();
        assert_eq!(names(None), "read message decide administer");
        assert_eq!(names(Some([].into())), "read message decide");
    }
}
