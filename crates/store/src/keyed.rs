//! Requests that a client may send again with a key of its own.

use sepal_core::domain::{TenantId, UserId};

/// A request with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyedRequest {
    pub tenant: TenantId,
    pub owner: UserId,
    /// The key that the client chose.
    pub key: String,
    /// SHA-256 of method, address and body.
    pub fingerprint: String,
    /// Names this attempt.
    pub runner: String,
}
