//! The list of a person's sessions, and what sessions used, as their rows say.

use super::Sessions;
use super::refusal::not_found;
use crate::agent::usage::{UsageAccess, UsageGroups, UsageReport, UsageRequest};
use crate::domain::{Caller, SessionKey};
use crate::session::Refusal;
use crate::store;
use crate::store::records::{Cursor, SessionRow, SessionState, SessionsPage, UsageFilter};

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

    /// Sums of what was used; everything that was acknowledged is in them.
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
        let records = &self.0.factory.place.records;
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
}
