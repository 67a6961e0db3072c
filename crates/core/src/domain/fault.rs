//! The four kinds of fault (S0.46). Status code, retry, log level and client text follow from them.

use serde::{Deserialize, Serialize};

/// Who has to act on a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The caller sent or configured something that cannot be right; repeating it does not help.
    Validation,
    /// Network, rate limit, a store that is away: the same thing may work later.
    Transient,
    /// Somebody else's server or tool refused or broke.
    External,
    /// Our own plumbing broke; details go to the log only.
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
