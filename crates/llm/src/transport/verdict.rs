//! What a provider's refusal means, once its words are read: the same for every wire form. Pure.

use std::time::Duration;

use reqwest::StatusCode;

use super::endpoint::Origin;
use crate::{Error, Refusal};

/// What a refusal means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Too much in too short a time.
    Limited,
    /// The provider's own trouble, which passes.
    Broken,
    /// The request does not fit the window.
    Overflow,
    /// It will not do it.
    Refused(Refusal),
}

impl Verdict {
    /// What a status means where nothing better is known.
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

    /// The error, in the provider's own words.
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

    /// The verdict that an error tells, as one word for tables.
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
