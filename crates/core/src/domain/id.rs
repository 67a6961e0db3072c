//! Defines identifiers as newtypes, so that ids of different kinds cannot be mixed up.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Declares a string newtype with a fixed prefix and a constructor from 128 random bits. Clones share the
/// text, because thousands of sockets and every event hold ids.
macro_rules! prefixed_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The prefix of every id of this kind.
            pub const PREFIX: &'static str = $prefix;

            /// Builds an id from random bits of the caller; this layer has no randomness.
            pub fn from_bits(bits: u128) -> Self {
                Self(format!("{}{bits:032x}", $prefix).into())
            }

            /// Parses the exact form that [`Self::from_bits`] writes.
            pub fn parse(text: &str) -> Option<Self> {
                let bits = text.strip_prefix($prefix)?;
                let is_hex = bits.len() == 32
                    && bits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
                is_hex.then(|| Self(text.into()))
            }

            /// The id as text, on the wire and in the store.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

prefixed_id!(
    /// A tenant, an isolation boundary.
    TenantId, "ten_"
);
prefixed_id!(
    /// A person or a service of one tenant.
    UserId, "usr_"
);
prefixed_id!(
    /// One conversation.
    SessionId, "ses_"
);
prefixed_id!(
    /// The sandbox of a session, with its workspace.
    SandboxId, "sbx_"
);
prefixed_id!(
    /// One elicitation: a question of a server during one of its calls.
    ElicitationId, "elc_"
);
prefixed_id!(
    /// One API key (not its secret).
    ApiKeyId, "key_"
);
prefixed_id!(
    /// One appended commit; read back after a time-out to learn whether the append succeeded.
    CommitId, "com_"
);
prefixed_id!(
    /// One life of a session's journal; if it differs, a client's `seq` is void.
    JournalId, "jrn_"
);
prefixed_id!(
    /// One share of a session (not its secret).
    SharedSessionId, "shr_"
);
prefixed_id!(
    /// A webhook that a tenant wants called when calls wait.
    WebhookId, "whk_"
);
prefixed_id!(
    /// A skill of a tenant or of one of its users; all versions share the id.
    SkillId, "skl_"
);
prefixed_id!(
    /// An assistant of a tenant; all versions share the id.
    AssistantId, "ast_"
);
prefixed_id!(
    /// One request or command, for logs and error texts.
    RequestId, "req_"
);

/// Declares a string newtype whose text comes from elsewhere.
macro_rules! named_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The id as text, on the wire and in the store.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

named_id!(
    /// One gateway process, from its start to its end; a restart makes a new id.
    GatewayId
);
named_id!(
    /// The engine that keeps the workspaces of sandboxes: a container engine, or a machine's own folder.
    EngineId
);

/// The number of a turn, from 1, unique in its session.
#[derive(
    Debug, Default, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct TurnId(pub u64);

impl fmt::Display for TurnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of an iteration of a turn, from 1: one model request and the calls of its answer.
#[derive(
    Debug, Default, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Iteration(pub u32);

impl fmt::Display for Iteration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The id of one model request. Later requests compare greater.
#[derive(
    Debug, Default, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct ModelRequestId {
    pub turn: TurnId,
    /// The request's number in the turn.
    pub iteration: Iteration,
}

impl ModelRequestId {
    /// The first request of the next turn, after `turns` turns.
    pub fn first_after(turns: u64) -> Self {
        Self {
            turn: TurnId(turns.saturating_add(1)),
            iteration: Iteration(1),
        }
    }

    /// The next request of the same turn.
    #[must_use]
    pub fn next(self) -> Self {
        Self {
            iteration: Iteration(self.iteration.0.saturating_add(1)),
            ..self
        }
    }
}

impl SessionId {
    /// Derives an id deterministically from words; other words give another id.
    pub fn derived(words: &[&str]) -> Self {
        let mut hash = Sha256::new();
        for word in words {
            hash.update(word.len().to_be_bytes());
            hash.update(word.as_bytes());
        }
        let hash = hash.finalize();
        let bits = hash.iter().take(16);
        Self::from_bits(bits.fold(0_u128, |bits, byte| (bits << 8) | u128::from(*byte)))
    }
}

/// The address of a session; every stored object of the session is found by both parts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SessionKey {
    /// The tenant that owns the session.
    pub tenant: TenantId,
    pub session: SessionId,
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.tenant, self.session)
    }
}

/// `call_<unix ms>_<index>` (S2.31), never repeated in a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(Arc<str>);

impl CallId {
    /// The id of the call at `index` of a batch with the timestamp `unix_ms`.
    pub fn new(unix_ms: i64, index: usize) -> Self {
        Self(format!("call_{unix_ms}_{index}").into())
    }

    /// Accepts any text from a client; an unknown id is answered with `no_such_call` (S2.43).
    pub fn from_wire(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The id as text on the wire.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{CallId, SessionId};

    #[test]
    fn an_id_survives_the_wire_and_a_forged_one_does_not() {
        let id = SessionId::from_bits(0xfeed);
        assert_eq!(SessionId::parse(id.as_str()), Some(id));
        for forged in [
            "ses_",
            "ses_FEED",
            "usr_00000000000000000000000000000000",
            "",
            "ses_../x",
        ] {
            assert_eq!(SessionId::parse(forged), None, "{forged}");
        }
    }

    /// Asserts S2.31.
    #[test]
    fn a_call_id_has_the_form_of_the_contract() {
        assert_eq!(
            CallId::new(1_700_000_000_000, 2).as_str(),
            "call_1700000000000_2"
        );
    }
}
