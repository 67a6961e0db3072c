//! What can go wrong with a model request, as situations. No text here ever holds the key.

use std::fmt;
use std::time::Duration;

use super::breaker::Outage;
use sepal_core::domain::{Code, Fault};

/// A failed model request.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no key that could work (S2.22, D13).
    #[error("provider `{provider}` has {key}")]
    Key {
        /// The provider's configured name.
        provider: String,
        /// What stands in the key's place.
        key: KeyFault,
    },
    /// The settings cannot work.
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
        /// Its own words, bounded.
        said: String,
        /// When it wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// The request does not fit the model's window (D2).
    #[error("the request does not fit the model's window: {said}")]
    Overflow {
        /// The provider's configured name.
        provider: String,
        /// Its own words, bounded.
        said: String,
    },
    /// The provider will not do it.
    #[error("provider `{provider}` {refusal}: {said}")]
    Rejected {
        /// The provider's configured name.
        provider: String,
        refusal: Refusal,
        /// Its own words, bounded.
        said: String,
    },
    /// The provider cannot be reached or is broken.
    #[error("provider `{provider}` is unavailable: {said}")]
    Unavailable {
        /// The provider's configured name.
        provider: String,
        /// Its own words, or where it was looked for.
        said: String,
        /// When it wants to be asked again.
        retry_after: Option<Duration>,
        /// The network's side of it.
        #[source]
        source: Option<reqwest::Error>,
    },
    /// The provider said nothing for as long as one waits.
    #[error("provider `{provider}` is unavailable: {said}")]
    TimedOut {
        /// The provider's configured name.
        provider: String,
        /// What did not come.
        said: String,
    },
    /// The provider failed so often that it is not asked for a while.
    #[error("provider `{provider}` {outage}")]
    Out {
        /// The provider's configured name.
        provider: String,
        outage: Box<Outage>,
    },
    /// The answer stopped in the middle.
    #[error("provider `{provider}` cut the answer")]
    Cut {
        /// The provider's configured name.
        provider: String,
        /// The network's side of it.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The answer is not what this kind of provider says.
    #[error("provider `{provider}` sent what is no answer: {problem}")]
    BadAnswer {
        /// The provider's configured name.
        provider: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// What stands where a key is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyFault {
    /// Nothing.
    Missing,
    /// The placeholder of the example files.
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

/// What a provider refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The key, or what it may do.
    Key,
    /// The address or the model: there is no such thing.
    Address,
    /// The account: it has no credit left.
    Quota,
    /// The request itself.
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
    /// Who has to act; retrying follows from it (`retry.rs`).
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

    /// The code that clients match on.
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

    /// Whether another provider, or another key, may do what this one could not: it is out, or it is
    /// out of credit.
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

    /// Whether the provider found the request itself wrong.
    pub fn is_refused_request(&self) -> bool {
        self.refused_request().is_some()
    }

    /// What the provider said of a request that it does not take as it is.
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

    /// When the provider wants to be asked again, if it said so.
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

    /// The provider's own words, or what it did instead of saying any.
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
