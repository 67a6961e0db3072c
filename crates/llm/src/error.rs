//! The errors of model requests. No error text ever contains the API key.

use std::fmt;
use std::time::Duration;

use super::breaker::Outage;
use sepal_core::domain::{Code, Fault};

/// A failed model request.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API key is missing or a placeholder (S2.22, D13).
    #[error("provider `{provider}` has {key}")]
    Key {
        /// The provider's configured name.
        provider: String,
        /// The reason why there is no usable key.
        key: KeyFault,
    },
    /// The settings are invalid.
    #[error("provider `{provider}` is misconfigured: {problem}")]
    Misconfigured {
        /// The provider's configured name.
        provider: String,
        problem: String,
    },
    /// Too many requests or tokens in too short a time.
    #[error("provider `{provider}` limits the rate: {said}")]
    RateLimited {
        /// The provider's configured name.
        provider: String,
        /// The provider's error message, truncated.
        said: String,
        /// The pause that the provider asked for.
        retry_after: Option<Duration>,
    },
    /// The request exceeds the model's context window (D2).
    #[error("the request does not fit the model's window: {said}")]
    Overflow {
        /// The provider's configured name.
        provider: String,
        /// The provider's error message, truncated.
        said: String,
    },
    /// The provider refused the request.
    #[error("provider `{provider}` {refusal}: {said}")]
    Rejected {
        /// The provider's configured name.
        provider: String,
        refusal: Refusal,
        /// The provider's error message, truncated.
        said: String,
    },
    /// The provider cannot be reached or is broken.
    #[error("provider `{provider}` is unavailable: {said}")]
    Unavailable {
        /// The provider's configured name.
        provider: String,
        /// The provider's error message, or the address that could not be reached.
        said: String,
        /// The pause that the provider asked for.
        retry_after: Option<Duration>,
        /// The network error.
        #[source]
        source: Option<reqwest::Error>,
    },
    /// The provider did not respond in time.
    #[error("provider `{provider}` is unavailable: {said}")]
    TimedOut {
        /// The provider's configured name.
        provider: String,
        /// The response that was missing.
        said: String,
    },
    /// The provider failed so often that its circuit breaker is open.
    #[error("provider `{provider}` {outage}")]
    Out {
        /// The provider's configured name.
        provider: String,
        outage: Box<Outage>,
    },
    /// The answer broke off.
    #[error("provider `{provider}` cut the answer")]
    Cut {
        /// The provider's configured name.
        provider: String,
        /// The network error.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The response is invalid for this kind of provider.
    #[error("provider `{provider}` sent what is no answer: {problem}")]
    BadAnswer {
        /// The provider's configured name.
        provider: String,
        /// The reason why it is invalid.
        problem: String,
    },
}

/// The reason why a key is unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyFault {
    /// No key is set.
    Missing,
    /// The key is the placeholder of the example files.
    Placeholder,
}

impl fmt::Display for KeyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "no API key",
            Self::Placeholder => "only the placeholder `dummy-api-key` of the example files",
        })
    }
}

/// The reason why a provider refused a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The key is invalid or lacks permission.
    Key,
    /// The address or the model does not exist.
    Address,
    /// The account has no credit left.
    Quota,
    /// The request itself is invalid.
    Request,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key => "refused the key",
            Self::Address => "has no such model or address",
            Self::Quota => "refused for want of credit",
            Self::Request => "refused the request",
        })
    }
}

impl Error {
    /// The party that has to act; the retry policy follows from it (`retry.rs`).
    pub fn fault(&self) -> Fault {
        match self {
            Self::Key { .. } | Self::Misconfigured { .. } | Self::Overflow { .. } => {
                Fault::Validation
            }
            Self::RateLimited { .. }
            | Self::Unavailable { .. }
            | Self::TimedOut { .. }
            | Self::Out { .. }
            | Self::Cut { .. } => Fault::Transient,
            Self::Rejected { .. } | Self::BadAnswer { .. } => Fault::External,
        }
    }

    /// The error code that clients match on.
    pub fn code(&self) -> Code {
        match self {
            Self::Key { .. } => Code::MissingApiKey,
            Self::Misconfigured { .. } => Code::InvalidArguments,
            Self::RateLimited { .. } => Code::ProviderRateLimited,
            Self::Overflow { .. } => Code::ContextOverflow,
            Self::Rejected { .. } | Self::BadAnswer { .. } => Code::ProviderRejected,
            Self::Unavailable { .. }
            | Self::TimedOut { .. }
            | Self::Out { .. }
            | Self::Cut { .. } => Code::ProviderUnavailable,
        }
    }

    /// Returns true if another provider or key may succeed: this one is unavailable or out of credit.
    pub fn may_be_elsewhere(&self) -> bool {
        let is_out_of_credit = matches!(
            self,
            Self::Rejected {
                refusal: Refusal::Quota,
                ..
            }
        );
        is_out_of_credit || self.fault() == Fault::Transient
    }

    /// Returns true if the provider refused the request itself as invalid.
    pub fn is_refused_request(&self) -> bool {
        self.refused_request().is_some()
    }

    /// The provider's error message if it refused the request itself as invalid.
    pub(super) fn refused_request(&self) -> Option<&str> {
        if let Self::Rejected {
            refusal: Refusal::Request,
            said,
            ..
        } = self
        {
            return Some(said);
        }
        None
    }

    /// The pause that the provider asked for, if any.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Unavailable { retry_after, .. } => {
                *retry_after
            }
            Self::Key { .. }
            | Self::Misconfigured { .. }
            | Self::Overflow { .. }
            | Self::Rejected { .. }
            | Self::TimedOut { .. }
            | Self::Out { .. }
            | Self::Cut { .. }
            | Self::BadAnswer { .. } => None,
        }
    }

    /// The provider's error message, or a description of the failure.
    pub(crate) fn said(&self) -> &str {
        match self {
            Self::RateLimited { said, .. }
            | Self::Overflow { said, .. }
            | Self::Rejected { said, .. }
            | Self::Unavailable { said, .. }
            | Self::TimedOut { said, .. } => said,
            Self::Out { outage, .. } => &outage.said,
            Self::Cut { .. } => "it cut the answer",
            Self::Misconfigured { problem, .. } | Self::BadAnswer { problem, .. } => problem,
            Self::Key { .. } => "there is no key",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Error, KeyFault, Refusal};

    /// Asserts S0.46, S1.15.
    #[test]
    fn the_fault_of_an_error_is_that_of_its_code() {
        let (provider, said) = (String::new, String::new);
        let all = [
            Error::Key {
                provider: provider(),
                key: KeyFault::Placeholder,
            },
            Error::Misconfigured {
                provider: provider(),
                problem: said(),
            },
            Error::RateLimited {
                provider: provider(),
                said: said(),
                retry_after: None,
            },
            Error::Overflow {
                provider: provider(),
                said: said(),
            },
            Error::Rejected {
                provider: provider(),
                refusal: Refusal::Key,
                said: said(),
            },
            Error::Unavailable {
                provider: provider(),
                said: said(),
                retry_after: None,
                source: None,
            },
            Error::TimedOut {
                provider: provider(),
                said: said(),
            },
            Error::Out {
                provider: provider(),
                outage: Box::default(),
            },
            Error::Cut {
                provider: provider(),
                source: None,
            },
            Error::BadAnswer {
                provider: provider(),
                problem: said(),
            },
        ];
        for error in all {
            assert_eq!(error.fault(), error.code().fault(), "{error}");
        }
    }
}
