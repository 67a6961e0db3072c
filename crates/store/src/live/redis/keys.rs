//! Builds the names of Redis keys and channels. Redis hashes only the part between the braces, so all keys
//! of one session are in one slot and one atomic step may use them.

use sepal_core::domain::{GatewayId, SessionId, SessionKey, TenantId};

/// The sorted set of all unfinished sessions of the installation, which is in a slot of its own.
pub(super) const ACTIVE: &str = "mcp:active";

/// Sorted set: the gateways, with the time of each one's last heartbeat.
pub(super) const GATEWAYS: &str = "mcp:gateways";
/// Hash: the names that all gateways must have in common.
pub(super) const INSTALLATION: &str = "mcp:installation";
/// The channel to which all gateways subscribe.
pub(super) const EVERYBODY: &str = "mcp:gateways";

/// The channel to which one gateway subscribes.
pub(super) fn gateway(id: &GatewayId) -> String {
    format!("mcp:gateway:{id}")
}

/// The session of a wake channel; `None` for other channels.
pub(super) fn parse_wake(channel: &str) -> Option<SessionKey> {
    parse_member(channel.strip_prefix("mcp:wake:{")?.strip_suffix('}')?)
}

/// The keys of one session.
pub(super) struct Keys {
    /// Stream with one entry per commit.
    pub(super) journal: String,
    pub(super) conversation: String,
    /// Hash with the sandbox and the gateway that runs the effects.
    pub(super) session: String,
    /// Channel on which an append is announced.
    pub(super) wake: String,
}

impl Keys {
    pub(super) fn of(key: &SessionKey) -> Self {
        let tag = key.to_string();
        Self {
            journal: in_slot("journal", &tag),
            conversation: in_slot("conversation", &tag),
            session: in_slot("session", &tag),
            wake: in_slot("wake", &tag),
        }
    }
}

/// The key of a session's journal.
pub(super) fn journal(key: &SessionKey) -> String {
    in_slot("journal", &key.to_string())
}

/// Parses a member of [`ACTIVE`].
pub(super) fn parse_member(member: &str) -> Option<SessionKey> {
    let (tenant, session) = member.split_once('.')?;
    Some(SessionKey {
        tenant: TenantId::parse(tenant)?,
        session: SessionId::parse(session)?,
    })
}

fn in_slot(kind: &str, tag: &str) -> String {
    ["mcp:", kind, ":{", tag, "}"].concat()
}

#[cfg(test)]
mod tests {
    use super::{Keys, parse_member, parse_wake};
    use sepal_core::domain::{SessionId, SessionKey, TenantId};

    #[test]
    fn all_keys_of_a_session_share_one_hash_tag_with_real_braces() {
        let key = SessionKey {
            tenant: TenantId::from_bits(1),
            session: SessionId::from_bits(2),
        };
        let keys = Keys::of(&key);
        let tag = format!("{{{key}}}");
        assert_eq!(keys.journal, format!("mcp:journal:{tag}"));
        assert_eq!(keys.conversation, format!("mcp:conversation:{tag}"));
        assert_eq!(keys.session, format!("mcp:session:{tag}"));
        assert_eq!(keys.wake, format!("mcp:wake:{tag}"));
        assert_eq!(parse_wake(&keys.wake), Some(key.clone()));
        assert_eq!(parse_member(&key.to_string()), Some(key));
        assert_eq!(parse_member("somebody else's"), None);
    }
}
