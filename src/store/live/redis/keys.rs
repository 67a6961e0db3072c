//! The names of a session's keys. The braces are real: Redis hashes what stands between them, so
//! all keys of one session lie in one slot and one atomic step may touch them.

use crate::domain::{GatewayId, SessionId, SessionKey, TenantId};

/// Every unfinished session, for the whole installation: the one key in a slot of its own.
pub(super) const ACTIVE: &str = "mcp:active";

/// Sorted set: the gateways, and when each gave its last heartbeat.
pub(super) const GATEWAYS: &str = "mcp:gateways";
/// Hash: what all gateways must have in common.
pub(super) const INSTALLATION: &str = "mcp:installation";
/// Channel that all gateways hear.
pub(super) const EVERYBODY: &str = "mcp:gateways";

/// Channel that one gateway hears.
pub(super) fn gateway(id: &GatewayId) -> String {
    format!("mcp:gateway:{id}")
}

/// The session that a channel is about.
pub(super) fn parse_wake(channel: &str) -> Option<SessionKey> {
    parse_member(channel.strip_prefix("mcp:wake:{")?.strip_suffix('}')?)
}

/// What a session is kept under.
pub(super) struct Keys {
    /// Stream, one entry per commit.
    pub(super) journal: String,
    pub(super) conversation: String,
    /// Hash, what is known of the sandbox and who runs the effects.
    pub(super) session: String,
    /// Channel, told after an append.
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

/// The stream of a session's commits.
pub(super) fn journal(key: &SessionKey) -> String {
    in_slot("journal", &key.to_string())
}

/// The session that a member of [`ACTIVE`] names.
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
    use crate::domain::{SessionId, SessionKey, TenantId};

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
