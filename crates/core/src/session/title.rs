//! Records the source of a session's title and the progress of title generation.

use serde::{Deserialize, Serialize};

use crate::domain::TurnId;

/// The source of a session's title.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TitleSource {
    /// The first words of the first message.
    FirstWords,
    Model,
    Person,
}

/// The progress of title generation. A model is asked for a title once per session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Titling {
    /// No model has been asked.
    #[default]
    Unasked,
    /// A model was asked after this turn was answered.
    Asked(TurnId),
    /// The model has answered or failed.
    Over,
}

impl Titling {
    /// The turn whose answer triggered the running title request.
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
