//! The error of a change that was not made.

use sepal_core::session::Refusal;
use sepal_store as store;

/// The reason a provider was not changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The new values are invalid.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] store::Error),
}
