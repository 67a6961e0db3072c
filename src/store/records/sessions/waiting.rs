//! Sessions in which calls wait for a decision, and how many there are.

use super::row::Row;
use super::{MAX_ROWS, SessionRow, Sessions};
use crate::domain::{Role, SessionId, SessionKey, TenantId, Timestamp, UserId};
use crate::store::Error;
use crate::store::db::args;
use crate::store::records::{session_id, tenant_id};

/// The sessions in which somebody may decide calls: their own, and those of their tenant in which calls
/// wait for a yes of their role. Only the place that knows who may decide what makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecidableSessions {
    pub tenant: TenantId,
    pub person: UserId,
    pub role: Role,
}

impl DecidableSessions {
    /// The column that counts the calls of others' sessions; none = there are none for that role.
    fn asks(&self) -> &'static str {
        match self.role {
            Role::Viewer => "0",
            Role::Member => "asks_members",
            Role::Admin => "asks_admins",
            Role::Owner => "asks_owners",
        }
    }

    /// Those that wait; `$1` is the tenant and `$2` the person.
    fn waiting(&self) -> String {
        let asks = self.asks();
        format!(
            "tenant = $1 AND delete_at IS NULL AND ((owner = $2 AND waiting > 0) OR \
             (asks_owners > 0 AND {asks} > 0 AND owner <> $2))"
        )
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
        // A row of an earlier release does not say since when: its last change is what there is.
        let sql = format!(
            "SELECT * FROM sessions WHERE {} AND ($3 = '' OR id = $3) AND \
             (COALESCE(waiting_since, updated_at), id) > ($4, $5) \
             ORDER BY COALESCE(waiting_since, updated_at), id LIMIT $6",
            of.waiting()
        );
        let rows: Vec<Row> = self
            .db
            .fetch_all(
                sql,
                args![
                    of.tenant.as_str(),
                    of.person.as_str(),
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
        let whose = || args![of.tenant.as_str(), of.person.as_str()];
        let waiting = format!(
            "SELECT COUNT(*), CAST(COALESCE(SUM(CASE WHEN owner = $2 THEN waiting ELSE {} END), 0) \
             AS BIGINT) FROM sessions WHERE {}",
            of.asks(),
            of.waiting()
        );
        let counted: Vec<(i64, i64)> = self.db.fetch_all(waiting, whose()).await?;
        let decided = "SELECT MAX(decided_at) FROM sessions \
                       WHERE tenant = $1 AND owner = $2 AND decided_at IS NOT NULL";
        let decided: Option<(Option<i64>,)> = self.db.fetch_optional(decided, whose()).await?;
        let (sessions, calls) = counted.into_iter().next().unwrap_or_default();
        Ok(WaitingTotals {
            calls: u64::try_from(calls).unwrap_or(0),
            sessions: u64::try_from(sessions).unwrap_or(0),
            decided_at: decided.and_then(|(at,)| at).map(Timestamp),
        })
    }
}
