//! Sessions in which calls wait for a decision, and how many there are.

use super::row::Row;
use super::{MAX_ROWS, SessionRow, Sessions};
use crate::domain::{SessionId, SessionKey, TenantId, Timestamp, UserId};
use crate::store::Error;
use crate::store::db::args;
use crate::store::records::{session_id, tenant_id};

/// The sessions in which somebody may decide calls: those of one person. Only the place that knows who
/// may decide what makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecidableSessions {
    pub tenant: TenantId,
    pub owner: UserId,
}

impl DecidableSessions {
    /// Whether a session of that owner is one of them.
    pub fn contains(&self, key: &SessionKey, owner: &UserId) -> bool {
        self.tenant == key.tenant && self.owner == *owner
    }
}

/// Where a page of sessions that wait ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingCursor {
    since: i64,
    id: SessionId,
}

impl WaitingCursor {
    /// The cursor as clients send it back.
    pub fn to_wire(&self) -> String {
        format!("{}.{}", self.since, self.id)
    }

    /// Reads what [`Self::to_wire`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let (since, id) = text.split_once('.')?;
        Some(Self {
            since: since.parse().ok()?,
            id: SessionId::parse(id)?,
        })
    }
}

/// A page of sessions that wait, the one that has waited longest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingSessionsPage {
    pub rows: Vec<SessionRow>,
    /// Where the next page begins, if there is more.
    pub next: Option<WaitingCursor>,
}

/// How much waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WaitingTotals {
    /// Calls that wait for a decision.
    pub calls: u64,
    /// Sessions that they are in.
    pub sessions: u64,
    /// When a person last decided a call of any of these sessions; none = never, or before this was
    /// kept.
    pub decided_at: Option<Timestamp>,
}

impl Sessions<'_> {
    /// Those that wait, oldest first; with `session` that one alone, if it waits.
    pub async fn waiting(
        &self,
        of: &DecidableSessions,
        session: Option<&SessionId>,
        after: Option<&WaitingCursor>,
        limit: usize,
    ) -> Result<WaitingSessionsPage, Error> {
        let limit = limit.clamp(1, MAX_ROWS);
        let rows: Vec<Row> = self
            .db
            .fetch_all(
                // A row of an earlier release does not say since when: its last change is what there is.
                "SELECT * FROM sessions WHERE tenant = $1 AND owner = $2 AND waiting > 0 AND \
                 delete_at IS NULL AND ($3 = '' OR id = $3) AND \
                 (COALESCE(waiting_since, updated_at), id) > ($4, $5) \
                 ORDER BY COALESCE(waiting_since, updated_at), id LIMIT $6",
                args![
                    of.tenant.as_str(),
                    of.owner.as_str(),
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

    /// Sessions in which calls have waited for too long by then, those that are longest overdue first.
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

    /// When the next call of any session expires that waits; none = none does.
    pub async fn next_expiry(&self) -> Result<Option<Timestamp>, Error> {
        let sql = "SELECT MIN(expires_at) FROM sessions \
                   WHERE expires_at IS NOT NULL AND delete_at IS NULL";
        let row: Option<(Option<i64>,)> = self.db.fetch_optional(sql, args![]).await?;
        Ok(row.and_then(|(at,)| at).map(Timestamp))
    }

    /// How much waits, and when something was last decided.
    pub async fn waiting_totals(&self, of: &DecidableSessions) -> Result<WaitingTotals, Error> {
        let whose = || args![of.tenant.as_str(), of.owner.as_str()];
        let waiting = "SELECT COUNT(*), CAST(COALESCE(SUM(waiting), 0) AS BIGINT) FROM sessions \
                       WHERE tenant = $1 AND owner = $2 AND waiting > 0 AND delete_at IS NULL";
        let counted: Option<(i64, i64)> = self.db.fetch_optional(waiting, whose()).await?;
        let decided = "SELECT MAX(decided_at) FROM sessions \
                       WHERE tenant = $1 AND owner = $2 AND decided_at IS NOT NULL";
        let decided: Option<(Option<i64>,)> = self.db.fetch_optional(decided, whose()).await?;
        let (sessions, calls) = counted.unwrap_or_default();
        Ok(WaitingTotals {
            calls: u64::try_from(calls).unwrap_or(0),
            sessions: u64::try_from(sessions).unwrap_or(0),
            decided_at: decided.and_then(|(at,)| at).map(Timestamp),
        })
    }
}
