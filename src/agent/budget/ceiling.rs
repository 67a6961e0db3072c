//! An answer that is asked to be shorter, because a budget covers no more of it.

use super::words::{covers, limited};
use crate::domain::BudgetStanding;
use crate::session::Refusal;

/// The longest answer that a budget covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::agent) struct Ceiling {
    /// Tokens, hidden reasoning included.
    pub(in crate::agent) tokens: u32,
    /// The budget, as it stood before the request.
    pub(super) standing: BudgetStanding,
}

impl Ceiling {
    /// What people are told when the request is sent.
    pub(in crate::agent) fn words(&self) -> String {
        covers(&self.standing, self.tokens)
    }

    /// Why the answer ended there.
    pub(in crate::agent) fn refusal(&self) -> Refusal {
        limited(&self.standing, self.tokens)
    }
}
