//! Why somebody may not enter or do something.

use std::time::Duration;

use crate::domain::{Code, Fault};
use crate::store;

/// A refusal, or a store that is away.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Unknown name, wrong password or disabled user: nobody is told which.
    #[error("name or password is wrong")]
    WrongPassword,
    /// A sign-in, key, link or ticket that never was, is used up, revoked or too old.
    #[error("it is not valid, or not any more")]
    NotValid,
    /// Too many attempts; the time after which one more is fine.
    #[error("too many attempts, try again in {} s", .0.as_secs().saturating_add(1))]
    TooManyAttempts(Duration),
    /// A field that cannot be accepted.
    #[error("`{field}` {reason}")]
    Invalid {
        field: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// No such thing in this tenant.
    #[error("there is no such {0}")]
    NotFound(&'static str),
    /// Something that a rule forbids.
    #[error("{0}")]
    Refused(&'static str),
    /// Hashing broke.
    #[error("a password could not be hashed")]
    Hashing,
    /// The store's own error.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Error {
    /// What a client is told.
    pub fn code(&self) -> Code {
        match self {
            Self::WrongPassword | Self::NotValid => Code::Unauthorized,
            Self::TooManyAttempts(_) => Code::TooManyRequests,
            Self::Invalid { .. } => Code::InvalidArguments,
            Self::NotFound(_) => Code::NotFound,
            Self::Refused(_) => Code::NotAllowed,
            Self::Hashing => Code::Internal,
            Self::Store(error) => error.code(),
        }
    }

    /// Who has to act.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Store(error) => error.fault(),
            Self::WrongPassword
            | Self::NotValid
            | Self::TooManyAttempts(_)
            | Self::Invalid { .. }
            | Self::NotFound(_)
            | Self::Refused(_)
            | Self::Hashing => self.code().fault(),
        }
    }
}
