//! Says why a session or an assistant of a list is not returned.

use crate::session::Refusal;
use crate::store;

/// The reason a row of a list is not returned or changed.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    /// The caller has no such row, or may not do this.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] store::Error),
}
