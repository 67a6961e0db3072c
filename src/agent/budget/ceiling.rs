//! Limits the length of an answer to what a budget covers.

use super::words::{covers, limited};
use crate::domain::BudgetStanding;
use crate::session::Refusal;

/// The longest answer that a budget covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::agent) struct Ceiling {
    /// The length in tokens, including hidden reasoning.
    pub(in crate::agent) tokens: u32,
    /// The budget before the request.
    pub(super) standing: BudgetStanding,
}

impl Ceiling {
    /// The notice for people when the request is sent.
    pub(in crate::agent) fn words(&self) -> String {
        covers(&self.standing, self.tokens)
    }

    /// The refusal that explains why the answer ended there.
    pub(in crate::agent) fn refusal(&self) -> Refusal {
        limited(&self.standing, self.tokens)
    }
}
