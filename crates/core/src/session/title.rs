//! Who gave a session its title, and how far a model is with one.

use serde::{Deserialize, Serialize};

use crate::domain::TurnId;

/// Who gave a session its title.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TitleSource {
    /// Nobody: it is the first words of the first message.
    FirstWords,
    Model,
    Person,
}

/// How far a model is with the title of a session. It is asked once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Titling {
    /// Nobody has asked it.
    #[default]
    Unasked,
    /// It is asked since that turn was answered.
    Asked(TurnId),
    /// It has answered, or cannot.
    Over,
}

impl Titling {
    /// The turn whose answer it is asked after.
    pub fn turn(self) -> Option<TurnId> {
        match self {
            Self::Asked(turn) => Some(turn),
            Self::Unasked | Self::Over => None,
        }
    }

    pub(super) fn is_unasked(&self) -> bool {
        *self == Self::Unasked
    }
}
