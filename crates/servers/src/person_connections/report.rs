//! Reports the state of a person's connection to a server.

use sepal_core::domain::Timestamp;
use sepal_mcp::authorization::Challenge;
use sepal_store::records::GrantRow;

/// The state of a person's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionState {
    /// The person is connected.
    Connected,
    /// The server requires the person to connect, or to allow more.
    Needed,
    /// The person is not connected, and no call of theirs required it.
    Absent,
}

impl ConnectionState {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Needed => "needed",
            Self::Absent => "absent",
        }
    }
}

/// A person's connection to a server.
#[derive(Debug, Clone)]
pub struct ConnectionReport {
    pub server: String,
    pub state: ConnectionState,
    /// When the person connected.
    pub connected_at: Option<Timestamp>,
    /// When the server began to require the person.
    pub needed_since: Option<Timestamp>,
    /// The scopes that the person allowed.
    pub scopes: Vec<String>,
    /// The further scopes that the server requires, if it names them.
    pub wants: Vec<String>,
}

impl ConnectionReport {
    pub(crate) fn new(server: &str, row: Option<&GrantRow>) -> Self {
        let state = match row {
            Some(row) if row.needed_since.is_some() => ConnectionState::Needed,
            Some(row) if row.sealed.is_some() => ConnectionState::Connected,
            Some(_) | None => ConnectionState::Absent,
        };
        let is_connected = row.is_some_and(|row| row.sealed.is_some());
        let scopes = row.filter(|_| is_connected).map(|row| row.scopes.clone());
        let scopes = scopes.unwrap_or_default();
        let needed_since = row.and_then(|row| row.needed_since);
        let challenge = row.and_then(challenge).filter(|_| needed_since.is_some());
        let wanted = challenge.and_then(|it| it.scope).unwrap_or_default();
        let wants = wanted.split_whitespace().map(ToOwned::to_owned);
        Self {
            server: server.to_owned(),
            state,
            connected_at: row
                .and_then(|row| row.connected_at)
                .filter(|_| is_connected),
            needed_since,
            wants: wants.filter(|scope| !scopes.contains(scope)).collect(),
            scopes,
        }
    }
}

/// The server's latest challenge to the person.
pub(super) fn challenge(row: &GrantRow) -> Option<Challenge> {
    serde_json::from_str(row.challenge.as_deref()?).ok()
}
