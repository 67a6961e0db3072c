//! Lists and searches a person's sessions, and sums their usage, from the rows of the session list.

use std::sync::Arc;

use super::refusal::not_found;
use super::{Sessions, may_act, removal};
use crate::agent::feed::list_update::ListUpdate;
use crate::agent::journal::Journal;
use crate::agent::row_error::RowError;
use crate::agent::search::finding::{self, FoundPage};
use crate::agent::usage::{UsageAccess, UsageGroups, UsageReport, UsageRequest};
use crate::domain::{Caller, SearchQuery, SessionKey, Timestamp, UserId};
use crate::servers::Servers;
use crate::session::Refusal;
use crate::store;
use crate::store::records::{
    Cursor, ListFilter, MarksChange, Records, SessionRow, SessionsPage, UsageFilter,
};

impl Sessions {
    pub(in crate::agent) fn servers(&self) -> &Servers {
        &self.0.factory.parts.servers
    }

    pub(in crate::agent) fn records(&self) -> &Records {
        self.0.records()
    }

    pub(in crate::agent) fn journal(&self, key: &SessionKey) -> Journal {
        Journal::new(Arc::clone(&self.0.store), key.clone())
    }

    /// Lists the caller's sessions: pinned ones first, then by last change, newest first. Includes everything
    /// acknowledged so far.
    pub async fn list(
        &self,
        caller: &Caller,
        filter: &ListFilter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<SessionsPage, store::Error> {
        self.listed().await;
        let (tenant, owner) = (&caller.tenant.id, &caller.user.id);
        let filter = ListFilter {
            within: caller.confined_sessions().cloned(),
            ..filter.clone()
        };
        let rows = self.0.factory.parts.place.records.sessions();
        rows.list(tenant, owner, &filter, after, limit).await
    }

    /// Returns the session's row on its owner's list; `None` if it is not written yet. To anybody else the
    /// session does not exist.
    pub async fn row(
        &self,
        key: &SessionKey,
        caller: &Caller,
    ) -> Result<Option<SessionRow>, RowError> {
        let row = self
            .0
            .factory
            .parts
            .place
            .records
            .sessions()
            .find(key)
            .await?;
        let is_anothers = |row: &SessionRow| row.owner != caller.user.id;
        let is_hidden = |row: &SessionRow| is_anothers(row) || row.marks.delete_at.is_some();
        let may_exist = key.tenant == caller.tenant.id && caller.reaches(&key.session);
        if !may_exist || row.as_ref().is_some_and(is_hidden) {
            return Err(not_found().into());
        }
        Ok(row)
    }

    /// Sums the usage, including everything acknowledged so far.
    pub async fn usage(
        &self,
        access: &UsageAccess,
        request: &UsageRequest,
    ) -> Result<UsageReport, store::Error> {
        self.listed().await;
        let filter = UsageFilter {
            tenant: access.tenant.clone(),
            owner: access.owner.clone(),
            reader: access.reader.clone(),
            from: request.from,
            to: request.to,
            provider: request.provider.clone(),
            model: request.model.clone(),
            session: request.session.clone(),
        };
        let records = &self.0.factory.parts.place.records;
        let usage = records.usage();
        let totals = usage.total_of_requests(&filter).await?;
        let (by, sorted) = (request.by, (request.sorting, request.direction));
        let page = (request.offset, request.limit.saturating_add(1));
        let (groups, has_more) = if by.is_of_calls() {
            let mut groups = usage.of_calls(&filter, by, sorted, page).await?;
            let has_more = groups.len() > request.limit;
            groups.truncate(request.limit);
            (UsageGroups::Calls(groups), has_more)
        } else {
            let mut groups = usage.of_requests(&filter, by, sorted, page).await?;
            let has_more = groups.len() > request.limit;
            groups.truncate(request.limit);
            (UsageGroups::Requests(groups), has_more)
        };
        Ok(UsageReport {
            totals,
            groups,
            has_more,
        })
    }

    /// Changes the caller's marks of a session. Once this returns, the list shows the change.
    pub async fn mark(
        &self,
        key: &SessionKey,
        caller: &Caller,
        change: &MarksChange,
    ) -> Result<SessionRow, RowError> {
        let owner = self.own(key, caller).await?;
        let changed = self.0.records().sessions().mark(key, owner, change).await?;
        let row = changed.ok_or_else(not_found)?;
        self.0.lists.publish(vec![ListUpdate::Changed(row.clone())]);
        Ok(row)
    }

    /// Removes a session of the caller from every list, and deletes it at the returned time unless they
    /// restore it.
    pub async fn give_up(&self, key: &SessionKey, caller: &Caller) -> Result<Timestamp, RowError> {
        self.own(key, caller).await?;
        let given_up = removal::give_up(&self.0, key, caller).await?;
        Ok(given_up.ok_or_else(not_found)?)
    }

    /// Restores a session that the caller gave up.
    pub async fn take_back(&self, key: &SessionKey, caller: &Caller) -> Result<(), RowError> {
        self.own(key, caller).await?;
        let is_back = removal::take_back(&self.0, key, caller).await?;
        Ok(is_back.then_some(()).ok_or_else(not_found)?)
    }

    /// Returns the caller's id, if they may change their list. Waits until the list is up to date.
    async fn own<'c>(&self, key: &SessionKey, caller: &'c Caller) -> Result<&'c UserId, Refusal> {
        may_act(caller)?;
        if key.tenant != caller.tenant.id || !caller.reaches(&key.session) {
            return Err(not_found());
        }
        self.listed().await;
        Ok(&caller.user.id)
    }

    /// Searches the texts of all the caller's sessions, newest first, below the given hit. The first page
    /// includes changes acknowledged just now, unless there are many.
    pub async fn search(
        &self,
        caller: &Caller,
        query: &SearchQuery,
        below: Option<i64>,
    ) -> Result<FoundPage, store::Error> {
        if below.is_none() {
            self.listed().await;
            let whose = (&caller.tenant.id, &caller.user.id);
            self.0.indexing.index_of(whose).await?;
        }

        finding::find(
            &self.0.store,
            &self.0.factory.parts.place.records,
            caller,
            query,
            below,
        )
        .await
    }

    /// Returns the `seq` of events in one session that match, oldest first, including everything acknowledged
    /// so far.
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
        let texts = self.0.factory.parts.place.records.texts();
        let whose = (key, &caller.user.id);
        Ok(texts.find_in(whose, query, limit).await?)
    }
}
