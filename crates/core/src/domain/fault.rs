//! Defines the four kinds of fault (S0.46), which determine status code, retry, log level and client text.

use serde::{Deserialize, Serialize};

/// The party that has to act on a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The caller sent or configured something invalid; repeating it does not help.
    Validation,
    /// Network, rate limit or an unavailable store: the same request may succeed later.
    Transient,
    /// A foreign server or tool refused or failed.
    External,
    /// Our own code failed; details go to the log only.
    Internal,
}

impl Fault {
    /// The `category` of an error on the wire (docs/errors.md).
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Validation => "validation",
            Self::Transient => "transient",
            Self::External => "external",
            Self::Internal => "internal",
        }
    }
}
