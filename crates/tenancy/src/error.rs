//! Defines the errors of authentication and administration.

use std::time::Duration;

use sepal_core::domain::{Code, Fault};
use sepal_store as store;

use super::identity::NotLetIn;

/// A refusal, or an error of the store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Unknown name, wrong password or disabled user, which the error does not distinguish.
    #[error("name or password is wrong")]
    WrongPassword,
    /// A passkey that nobody here has, or an answer that does not fit.
    #[error("the passkey was not accepted: try again, or sign in another way")]
    WrongPasskey,
    /// A sign-in, key, link or ticket that never existed, is used up, revoked or expired.
    #[error("it is not valid, or not any more")]
    NotValid,
    /// Too many attempts; the time until the next one is allowed.
    #[error("too many attempts, try again in {} s", .0.as_secs().saturating_add(1))]
    TooManyAttempts(Duration),
    /// A field is invalid.
    #[error("`{field}` {reason}")]
    Invalid {
        field: &'static str,
        /// The problem.
        reason: &'static str,
    },
    /// There is no such thing in this tenant.
    #[error("there is no such {0}")]
    NotFound(&'static str),
    /// The rules for accounts of an OpenID provider keep this one out.
    #[error(transparent)]
    NotLetIn(#[from] NotLetIn),
    /// A rule forbids this.
    #[error("{0}")]
    Refused(&'static str),
    /// Hashing failed.
    #[error("a password could not be hashed")]
    Hashing,
    /// The store's own error.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Error {
    /// The code for clients.
    pub fn code(&self) -> Code {
        match self {
            Self::WrongPassword | Self::WrongPasskey | Self::NotValid => Code::Unauthorized,
            Self::TooManyAttempts(_) => Code::TooManyRequests,
            Self::Invalid { .. } => Code::InvalidArguments,
            Self::NotFound(_) => Code::NotFound,
            Self::Refused(_) | Self::NotLetIn(_) => Code::NotAllowed,
            Self::Hashing => Code::Internal,
            Self::Store(error) => error.code(),
        }
    }

    /// The party that has to act.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Store(error) => error.fault(),
            Self::WrongPassword
            | Self::WrongPasskey
            | Self::NotValid
            | Self::TooManyAttempts(_)
            | Self::Invalid { .. }
            | Self::NotFound(_)
            | Self::Refused(_)
            | Self::NotLetIn(_)
            | Self::Hashing => self.code().fault(),
        }
    }
}
