//! Classifies error responses in the same way for every wire form. Pure.

use std::time::Duration;

use reqwest::StatusCode;

use super::endpoint::Origin;
use crate::{Error, Refusal};

/// The class of an error response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Too many requests or tokens in too short a time.
    Limited,
    /// A transient fault of the provider.
    Broken,
    /// The request exceeds the context window.
    Overflow,
    /// The provider refuses the request.
    Refused(Refusal),
}

impl Verdict {
    /// The class of a status, if nothing more specific is known.
    pub(crate) fn of_status(status: StatusCode) -> Self {
        match status {
            StatusCode::TOO_MANY_REQUESTS => Self::Limited,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Self::Refused(Refusal::Key),
            StatusCode::NOT_FOUND => Self::Refused(Refusal::Address),
            StatusCode::PAYMENT_REQUIRED => Self::Refused(Refusal::Quota),
            StatusCode::PAYLOAD_TOO_LARGE => Self::Overflow,
            StatusCode::REQUEST_TIMEOUT | StatusCode::CONFLICT | StatusCode::TOO_EARLY => {
                Self::Broken
            }
            status if status.is_server_error() => Self::Broken,
            _ => Self::Refused(Refusal::Request),
        }
    }

    /// The error with the provider's message.
    pub(crate) fn into_error(
        self,
        origin: Origin<'_>,
        said: String,
        retry_after: Option<Duration>,
    ) -> Error {
        let provider = origin.provider.to_owned();
        match self {
            Self::Limited => Error::RateLimited {
                provider,
                said,
                retry_after,
            },
            Self::Broken => Error::Unavailable {
                provider,
                said,
                retry_after,
                source: None,
            },
            Self::Overflow => Error::Overflow { provider, said },
            Self::Refused(refusal) => Error::Rejected {
                provider,
                refusal,
                said,
            },
        }
    }

    /// The class of an error as one word, for test tables.
    #[cfg(test)]
    pub(crate) fn word(error: &Error) -> &'static str {
        match error {
            Error::RateLimited { .. } => "limited",
            Error::Overflow { .. } => "overflow",
            Error::Unavailable { .. } | Error::TimedOut { .. } => "unavailable",
            Error::Rejected { refusal, .. } => match refusal {
                Refusal::Key => "key",
                Refusal::Address => "address",
                Refusal::Quota => "quota",
                Refusal::Request => "request",
            },
            Error::Key { .. }
            | Error::Misconfigured { .. }
            | Error::Out { .. }
            | Error::Cut { .. }
            | Error::BadAnswer { .. } => "other",
        }
    }
}
