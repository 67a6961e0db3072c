//! A fresh gesture: a person showed, just now, that it is they who decide, and about what.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{CallId, Digest, SessionId};

/// By what a person showed that they are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GestureMeans {
    /// A passkey, whose authenticator verified the person (WebAuthn).
    Passkey,
    /// The password of the person.
    Password,
}

impl GestureMeans {
    /// Its name on the wire and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passkey => "passkey",
            Self::Password => "password",
        }
    }

    /// Reads [`Self::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "passkey" => Some(Self::Passkey),
            "password" => Some(Self::Password),
            _ => None,
        }
    }
}

/// A call that a gesture approves, as it was shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GestureCall {
    pub session: SessionId,
    pub call: CallId,
    /// The digest of the card.
    pub digest: Digest,
    /// Hash of the arguments that the person wrote in the place of those on the card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<Digest>,
}

/// A gesture that was used up at the door. It counts for exactly what it was given for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gesture {
    pub means: GestureMeans,
    /// Calls of one session.
    pub calls: Vec<GestureCall>,
}

impl Gesture {
    /// Whether it approves this call, as it would run, with these changed arguments if there are any.
    pub fn covers(&self, call: &CallId, digest: &Digest, edited: Option<&Value>) -> bool {
        let edited = edited.map(Digest::of_json);
        let same = |one: &&GestureCall| one.call == *call;
        let mut calls = self.calls.iter().filter(same);
        calls.any(|one| one.digest == *digest && one.edited == edited)
    }
}
