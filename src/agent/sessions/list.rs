//! The list of a person's sessions, as its rows say.

use super::Sessions;
use super::refusal::not_found;
use crate::agent::search::finding::{self, FoundPage};
use crate::domain::{Caller, SearchQuery, SessionKey};
use crate::session::Refusal;
use crate::store;
use crate::store::records::{Cursor, ListFilter, SessionRow, SessionsPage};

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
    /// The caller's sessions, pinned ones first, then by their last change, newest first: what was
    /// acknowledged is in it.
    pub async fn list(
        &self,
        caller: &Caller,
        filter: &ListFilter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<SessionsPage, store::Error> {
        self.listed().await;
        let whose = (&caller.tenant.id, &caller.user.id);
        let rows = self.0.factory.place.records.sessions();
        rows.list(whose, filter, after, limit).await
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
        let is_hidden = |row: &SessionRow| is_anothers(row) || row.marks.delete_at.is_some();
        if key.tenant != caller.tenant.id || row.as_ref().is_some_and(is_hidden) {
            return Err(not_found().into());
        }
        Ok(row)
    }

    /// Looks for words in everything that the caller's sessions have, newest first, below that hit.
    pub async fn search(
        &self,
        caller: &Caller,
        query: &SearchQuery,
        below: Option<i64>,
    ) -> Result<FoundPage, store::Error> {
        let stores = (&self.0.store, &self.0.factory.place.records);
        finding::find(stores, caller, query, below).await
    }

    /// The events of one session that have what is looked for, oldest first: what was acknowledged is
    /// among them.
    pub async fn search_in(
        &self,
        key: &SessionKey,
        caller: &Caller,
        query: &SearchQuery,
        limit: usize,
    ) -> Result<Vec<u64>, RowError> {
        self.admit(key, caller).await?;
        self.listed().await;
        self.0.indexing.index(key).await?;
        let texts = self.0.factory.place.records.texts();
        let whose = (key, &caller.user.id);
        Ok(texts.find_in(whose, query, limit).await?)
    }
}
