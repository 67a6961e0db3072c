//! Models a fresh gesture: a person's recent proof of presence, bound to the calls that it approves.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{CallId, Digest, SessionId};

/// The means by which a person proved their presence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GestureMeans {
    /// A passkey, whose authenticator verified the person (WebAuthn).
    Passkey,
    /// The password of the person.
    Password,
    /// A new sign-in at the OpenID provider of the person's account.
    Provider,
}

impl GestureMeans {
    /// The name on the wire and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passkey => "passkey",
            Self::Password => "password",
            Self::Provider => "provider",
        }
    }

    /// Parses the form that [`Self::as_str`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "passkey" => Some(Self::Passkey),
            "password" => Some(Self::Password),
            "provider" => Some(Self::Provider),
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
    /// Hash of the person's edited arguments, if they edited the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<Digest>,
}

/// A gesture that the door has already consumed. It covers exactly the calls that it was made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gesture {
    pub means: GestureMeans,
    /// The calls, all of one session.
    pub calls: Vec<GestureCall>,
}

impl Gesture {
    /// Returns true if the gesture covers this call as it would run, with these edited arguments if there
    /// are any.
    pub fn covers(&self, call: &CallId, digest: &Digest, edited: Option<&Value>) -> bool {
        let edited = edited.map(Digest::of_json);
        let same = |one: &&GestureCall| one.call == *call;
        let mut calls = self.calls.iter().filter(same);
        calls.any(|one| one.digest == *digest && one.edited == edited)
    }
}
