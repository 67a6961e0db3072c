//! Who pays for which model request.

use crate::domain::{ModelRequestId, SessionKey, Timestamp, UserId};

/// Who pays for which model request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payer {
    pub key: SessionKey,
    /// Whose session it is.
    pub owner: UserId,
    /// The request; none = somebody only looks.
    pub request: Option<ModelRequestId>,
    /// When the session began: one of the same name, that was deleted, is not paid for again.
    pub session_since: Timestamp,
    /// When the turn began.
    pub turn_since: Timestamp,
}

impl Payer {
    /// Of nobody who asks a model.
    pub fn reader(key: &SessionKey, owner: &UserId, session_since: Timestamp) -> Self {
        Self {
            key: key.clone(),
            owner: owner.clone(),
            request: None,
            session_since,
            turn_since: session_since,
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
