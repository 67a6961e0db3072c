//! The list of a person's sessions, as its rows say.

use super::Sessions;
use super::refusal::not_found;
use crate::domain::{Caller, SessionKey};
use crate::session::Refusal;
use crate::store;
use crate::store::records::{Cursor, SessionRow, SessionState, SessionsPage};

/// Why a row of the list of sessions is not told.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    /// There is none for this caller.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The list cannot be read.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Sessions {
    /// The caller's sessions by their last change, newest first: what was acknowledged is in it.
    pub async fn list(
        &self,
        caller: &Caller,
        is_in: Option<SessionState>,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<SessionsPage, store::Error> {
        self.listed().await;
        let whose = (&caller.tenant.id, &caller.user.id);
        let rows = self.0.factory.place.records.sessions();
        rows.list(whose, is_in, after, limit).await
    }

    /// The row of a session on its owner's list; `None` while it is on its way. To anybody else the
    /// session does not exist.
    pub async fn row(
        &self,
        key: &SessionKey,
        caller: &Caller,
    ) -> Result<Option<SessionRow>, RowError> {
        let row = self.0.factory.place.records.sessions().find(key).await?;
        let is_anothers = |row: &SessionRow| row.owner != caller.user.id;
        if key.tenant != caller.tenant.id || row.as_ref().is_some_and(is_anothers) {
            return Err(not_found().into());
        }
        Ok(row)
    }
}
