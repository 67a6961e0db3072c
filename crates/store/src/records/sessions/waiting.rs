//! Lists and counts sessions in which calls wait for a decision.

use std::collections::BTreeSet;

use super::row::Row;
use super::{MAX_ROWS, SessionRow, Sessions, within_text};
use crate::Error;
use crate::db::args;
use crate::records::{session_id, tenant_id};
use sepal_core::domain::{Role, SessionId, SessionKey, TenantId, Timestamp, UserId};

/// Selects the sessions in which a person may decide calls: their own, and those of their tenant in which
/// calls wait for the approval of their role. Only code that knows who may decide may construct one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecidableSessions {
    pub tenant: TenantId,
    pub person: UserId,
    pub role: Role,
    /// Only sessions of these.
    pub within: Option<BTreeSet<SessionId>>,
}

impl DecidableSessions {
    /// The column that counts the calls in sessions of others that this role may decide; `0` if it may
    /// decide none.
    fn asks(&self) -> &'static str {
        match self.role {
            Role::Viewer => "0",
            Role::Approver => "asks_approvers",
            Role::Member => "asks_members",
            Role::Admin => "asks_admins",
            Role::Owner => "asks_owners",
        }
    }

    /// The SQL condition for these sessions; `$1` is the tenant, `$2` the person, and `$3` the sessions to which
    /// they are limited.
    fn waiting(&self) -> String {
        let asks = self.asks();
        format!(
            "tenant = $1 AND delete_at IS NULL AND ((owner = $2 AND waiting > 0) OR \
             (asks_owners > 0 AND {asks} > 0 AND owner <> $2)) AND \
             ($3 = '' OR $3 LIKE '%,' || id || ',%')"
        )
    }
}

/// The end of a page of waiting sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingCursor {
    since: i64,
    id: SessionId,
}

impl WaitingCursor {
    /// The cursor's text for clients, who send it back for the next page.
    pub fn to_wire(&self) -> String {
        format!("{}.{}", self.since, self.id)
    }

    /// Parses the text from [`Self::to_wire`].
    pub fn parse(text: &str) -> Option<Self> {
        let (since, id) = text.split_once('.')?;
        Some(Self {
            since: since.parse().ok()?,
            id: SessionId::parse(id)?,
        })
    }
}

/// A page of waiting sessions, longest wait first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingSessionsPage {
    pub rows: Vec<SessionRow>,
    /// The start of the next page, if there is one.
    pub next: Option<WaitingCursor>,
}

/// Totals over waiting sessions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WaitingTotals {
    /// The number of calls that wait for a decision.
    pub calls: u64,
    /// The number of sessions with such calls.
    pub sessions: u64,
    /// The time at which a person last decided a call in one of the person's own sessions; `None` = never,
    /// or before this was recorded.
    pub decided_at: Option<Timestamp>,
}

impl Sessions<'_> {
    /// The waiting sessions, oldest first. With `session`, only that session, if it waits.
    pub async fn waiting(
        &self,
        of: &DecidableSessions,
        session: Option<&SessionId>,
        after: Option<&WaitingCursor>,
        limit: usize,
    ) -> Result<WaitingSessionsPage, Error> {
        let limit = limit.clamp(1, MAX_ROWS);
        // A row of an earlier release has no `waiting_since`, so the time of its last change is used.
        let sql = format!(
            "SELECT * FROM sessions WHERE {} AND ($4 = '' OR id = $4) AND \
             (COALESCE(waiting_since, updated_at), id) > ($5, $6) \
             ORDER BY COALESCE(waiting_since, updated_at), id LIMIT $7",
            of.waiting()
        );
        let rows: Vec<Row> = self
            .db
            .fetch_all(
                sql,
                args![
                    of.tenant.as_str(),
                    of.person.as_str(),
                    within_text(of.within.as_ref()).as_str(),
                    session.map_or("", SessionId::as_str),
                    after.map_or(i64::MIN, |cursor| cursor.since),
                    after.map_or("", |cursor| cursor.id.as_str()),
                    i64::try_from(limit + 1).unwrap_or(i64::MAX)
                ],
            )
            .await?;
        let rows = rows.into_iter().map(Row::into_row);
        let mut rows = rows.collect::<Result<Vec<_>, _>>()?;
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| has_more).map(|last| WaitingCursor {
            since: last.waiting_since.unwrap_or(last.updated_at).0,
            id: last.key.session.clone(),
        });
        Ok(WaitingSessionsPage { rows, next })
    }

    /// Sessions with calls that have expired by `now`, longest overdue first; at most 200.
    pub async fn overdue(&self, now: Timestamp) -> Result<Vec<SessionKey>, Error> {
        let rows: Vec<(String, String)> = self
            .db
            .fetch_all(
                "SELECT tenant, id FROM sessions WHERE expires_at <= $1 AND delete_at IS NULL \
                 ORDER BY expires_at LIMIT $2",
                args![now.0, i64::try_from(MAX_ROWS).unwrap_or(i64::MAX)],
            )
            .await?;
        let keys = rows.into_iter().map(|(tenant, session)| {
            Ok(SessionKey {
                tenant: tenant_id(tenant)?,
                session: session_id(session)?,
            })
        });
        keys.collect()
    }

    /// The time at which the next waiting call of any session expires; `None` if no call expires.
    pub async fn next_expiry(&self) -> Result<Option<Timestamp>, Error> {
        let sql = "SELECT MIN(expires_at) FROM sessions \
                   WHERE expires_at IS NOT NULL AND delete_at IS NULL";
        let row: Option<(Option<i64>,)> = self.db.fetch_optional(sql, args![]).await?;
        Ok(row.and_then(|(at,)| at).map(Timestamp))
    }

    /// The totals over waiting sessions, and the time of the last decision.
    pub async fn waiting_totals(&self, of: &DecidableSessions) -> Result<WaitingTotals, Error> {
        let whose = || args![of.tenant.as_str(), of.person.as_str()];
        let waiting = format!(
            "SELECT COUNT(*), CAST(COALESCE(SUM(CASE WHEN owner = $2 THEN waiting ELSE {} END), 0) \
             AS BIGINT) FROM sessions WHERE {}",
            of.asks(),
            of.waiting()
        );
        let mut counting = whose();
        counting.extend(args![within_text(of.within.as_ref()).as_str()]);
        let counted: Vec<(i64, i64)> = self.db.fetch_all(waiting, counting).await?;
        let decided = "SELECT MAX(decided_at) FROM sessions \
                       WHERE tenant = $1 AND owner = $2 AND decided_at IS NOT NULL";
        let decided: Option<(Option<i64>,)> = self.db.fetch_optional(decided, whose()).await?;
        let (sessions, calls) = counted.into_iter().next().unwrap_or_default();
        Ok(WaitingTotals {
            calls: u64::try_from(calls).unwrap_or(0),
            sessions: u64::try_from(sessions).unwrap_or(0),
            // The last decision may be one in another session.
            decided_at: decided
                .filter(|_| of.within.is_none())
                .and_then(|(at,)| at)
                .map(Timestamp),
        })
    }
}
