//! Identifies the payer of a model request.

use sepal_core::domain::{ModelRequestId, SessionKey, Timestamp, UserId};
use sepal_core::session::AssistantBudget;

/// The session, person and model request for which budgets are charged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payer {
    pub key: SessionKey,
    /// The owner of the session.
    pub owner: UserId,
    /// The request; `None` for a caller that only reads the standings.
    pub request: Option<ModelRequestId>,
    /// The time at which the session began. Spending of an earlier, deleted session with the same id is not
    /// counted.
    pub session_since: Timestamp,
    /// The time at which the turn began.
    pub turn_since: Timestamp,
    /// The budget that the session's assistant gives it.
    pub assistant: Option<AssistantBudget>,
}

impl Payer {
    /// A payer without a model request, for reading the standings.
    pub fn reader(key: &SessionKey, owner: &UserId, session_since: Timestamp) -> Self {
        Self {
            key: key.clone(),
            owner: owner.clone(),
            request: None,
            session_since,
            turn_since: session_since,
            assistant: None,
        }
    }

    pub(super) fn turn(&self) -> i64 {
        self.request.map_or(-1, |request| {
            i64::try_from(request.turn.0).unwrap_or(i64::MAX)
        })
    }

    pub(super) fn iteration(&self) -> i64 {
        self.request
            .map_or(-1, |request| i64::from(request.iteration.0))
    }
}
