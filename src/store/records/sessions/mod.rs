//! The rows of sessions, projected from their journals: for lists, never for decisions.

mod marking;
mod marks;
mod row;
mod waiting;

pub use marks::{MAX_TAGS, Marks, MarksChange};
pub use row::{AskedRoles, ProjectedRow, SessionRow, SessionState, WaitingBatch};
pub use waiting::{DecidableSessions, WaitingCursor, WaitingSessionsPage, WaitingTotals};

use self::marks::tag_pattern;
use self::row::{Row, upsert};
use crate::domain::{SessionId, SessionKey, TenantId, Timestamp, UserId};
use crate::store::Error;
use crate::store::db::{Db, PerRow, Statement, args};
use crate::store::records::{checkpoints, usage};

/// The most rows of one page.
pub(super) const MAX_ROWS: usize = 200;
/// What the cursor begins with among pinned sessions.
const PINNED: &str = "p";

/// Longer than a fork takes from its attachments to its session.
const FORKING_MS: i64 = 3_600_000;

/// Which sessions of a person.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// Only those in that state.
    pub state: Option<SessionState>,
    /// Those that are archived, in place of those that are not.
    pub is_archived: bool,
    /// Only those with that tag.
    pub tag: Option<String>,
}

/// Where a page ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    is_pinned: bool,
    updated_at: i64,
    id: SessionId,
}

impl Cursor {
    /// The cursor as clients send it back.
    pub fn to_wire(&self) -> String {
        let pinned = if self.is_pinned { PINNED } else { "" };
        format!("{pinned}{}.{}", self.updated_at, self.id)
    }

    /// Reads what [`Self::to_wire`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let unpinned = text.strip_prefix(PINNED);
        let (updated_at, id) = unpinned.unwrap_or(text).split_once('.')?;
        Some(Self {
            is_pinned: unpinned.is_some(),
            updated_at: updated_at.parse().ok()?,
            id: SessionId::parse(id)?,
        })
    }
}

/// A page of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionsPage {
    pub rows: Vec<SessionRow>,
    /// Where the next page begins, if there is more.
    pub next: Option<Cursor>,
}

/// The sessions.
pub struct Sessions<'s> {
    pub(super) db: &'s Db,
}

impl<'s> Sessions<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// Keeps rows in one transaction, with what was used; a row that is older than what is kept
    /// changes nothing. What was used is complete up to the row's version only where nothing is missing
    /// in between.
    pub async fn project(&self, rows: &[ProjectedRow]) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let used = rows.iter().map(|row| (&row.row.key, &row.used));
        let mut statements = usage::keep(&used.collect::<Vec<_>>());
        statements.extend(rows.iter().map(upsert));
        self.db.execute_in_turn(statements).await
    }

    /// The sessions of a tenant, or of one person of it, that changed last, the newest first.
    pub async fn newest(
        &self,
        tenant: &TenantId,
        owner: Option<&UserId>,
        most: i64,
    ) -> Result<Vec<SessionRow>, Error> {
        let sql = "SELECT * FROM sessions WHERE tenant = $1 AND ($2 = '' OR owner = $2) \
                   AND delete_at IS NULL ORDER BY updated_at DESC, id LIMIT $3";
        let values = args![tenant.as_str(), owner.map_or("", UserId::as_str), most];
        let rows: Vec<Row> = self.db.fetch_all(sql, values).await?;
        rows.into_iter().map(Row::into_row).collect()
    }

    /// The row of one session.
    pub async fn find(&self, key: &SessionKey) -> Result<Option<SessionRow>, Error> {
        let row: Option<Row> = self
            .db
            .fetch_optional(
                "SELECT * FROM sessions WHERE tenant = $1 AND id = $2",
                args![key.tenant.as_str(), key.session.as_str()],
            )
            .await?;
        row.map(Row::into_row).transpose()
    }

    /// The rows of those sessions that are kept, in no order.
    pub async fn find_all<'k>(
        &self,
        keys: impl Iterator<Item = &'k SessionKey>,
    ) -> Result<Vec<SessionRow>, Error> {
        const FIND: PerRow = PerRow {
            before: "SELECT * FROM sessions WHERE ",
            row: "(tenant = ? AND id = ?)",
            between: " OR ",
            after: "",
        };
        let keys = keys.map(|key| args![key.tenant.as_str(), key.session.as_str()]);
        let mut found = Vec::new();
        for (sql, args) in FIND.queries(keys) {
            let rows: Vec<Row> = self.db.fetch_all(sql, args).await?;
            for row in rows {
                found.push(row.into_row()?);
            }
        }
        Ok(found)
    }

    /// Every session whose row says that something runs or waits in it.
    pub async fn busy(&self) -> Result<Vec<SessionKey>, Error> {
        let busy = [SessionState::Running, SessionState::Waiting].map(SessionState::as_str);
        let rows: Vec<Row> = self
            .db
            .fetch_all(
                "SELECT * FROM sessions WHERE state IN ($1, $2)",
                args![busy[0], busy[1]],
            )
            .await?;
        rows.into_iter()
            .map(|row| row.into_row().map(|row| row.key))
            .collect()
    }

    /// Busy sessions of people who may no longer act.
    pub async fn of_barred(&self) -> Result<Vec<SessionKey>, Error> {
        let busy = [SessionState::Running, SessionState::Waiting].map(SessionState::as_str);
        let sql = "SELECT s.* FROM sessions s JOIN users u ON u.tenant = s.tenant AND u.id = s.owner \
                   JOIN tenants t ON t.id = s.tenant WHERE s.state IN ($1, $2) \
                   AND (u.is_disabled OR u.role = 'viewer' OR t.suspended_at IS NOT NULL)";
        let rows: Vec<Row> = self.db.fetch_all(sql, args![busy[0], busy[1]]).await?;
        rows.into_iter()
            .map(|row| row.into_row().map(|row| row.key))
            .collect()
    }

    /// Every session of a tenant, and whose it is.
    pub async fn of_tenant(&self, tenant: &TenantId) -> Result<Vec<(SessionKey, UserId)>, Error> {
        let sql = "SELECT * FROM sessions WHERE tenant = $1 ORDER BY id";
        let rows: Vec<Row> = self.db.fetch_all(sql, args![tenant.as_str()]).await?;
        rows.into_iter()
            .map(|row| row.into_row().map(|row| (row.key, row.owner)))
            .collect()
    }

    /// A page of sessions in which nothing runs or waits, and nothing was said or done since `before`:
    /// of every tenant, those after `last` in the order of their keys.
    pub async fn at_rest(
        &self,
        before: Timestamp,
        last: Option<&SessionKey>,
    ) -> Result<Vec<SessionKey>, Error> {
        let rest = [SessionState::Idle, SessionState::Failed].map(SessionState::as_str);
        let rows: Vec<Row> = self
            .db
            .fetch_all(
                "SELECT * FROM sessions WHERE state IN ($1, $2) AND updated_at < $3 AND \
                 (tenant, id) > ($4, $5) ORDER BY tenant, id LIMIT $6",
                args![
                    rest[0],
                    rest[1],
                    before.0,
                    last.map_or("", |key| key.tenant.as_str()),
                    last.map_or("", |key| key.session.as_str()),
                    i64::try_from(MAX_ROWS).unwrap_or(i64::MAX)
                ],
            )
            .await?;
        rows.into_iter()
            .map(|row| row.into_row().map(|row| row.key))
            .collect()
    }

    /// The sessions of a person, pinned ones first, then newest first.
    pub async fn list(
        &self,
        (tenant, owner): (&TenantId, &UserId),
        filter: &ListFilter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<SessionsPage, Error> {
        let limit = limit.clamp(1, MAX_ROWS);
        let tag = filter.tag.as_deref().map(tag_pattern).unwrap_or_default();
        let rows: Vec<Row> = self
            .db
            .fetch_all(
                "SELECT * FROM sessions WHERE tenant = $1 AND owner = $2 AND archived = $7 AND \
                 (pinned, updated_at, id) < ($8, $3, $4) AND delete_at IS NULL AND \
                 ($6 = '' OR state = $6) AND ($9 = '' OR tags LIKE $9 ESCAPE '\\') \
                 ORDER BY pinned DESC, updated_at DESC, id DESC LIMIT $5",
                args![
                    tenant.as_str(),
                    owner.as_str(),
                    after.map_or(i64::MAX, |cursor| cursor.updated_at),
                    after.map_or("", |cursor| cursor.id.as_str()),
                    i64::try_from(limit + 1).unwrap_or(i64::MAX),
                    filter.state.map_or("", SessionState::as_str),
                    filter.is_archived,
                    after.is_none_or(|cursor| cursor.is_pinned),
                    tag.as_str()
                ],
            )
            .await?;
        let mut rows = rows
            .into_iter()
            .map(Row::into_row)
            .collect::<Result<Vec<_>, _>>()?;
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| has_more).map(|last| Cursor {
            is_pinned: last.marks.is_pinned,
            updated_at: last.updated_at.0,
            id: last.key.session.clone(),
        });
        Ok(SessionsPage { rows, next })
    }

    /// A person's sessions of one family of forks: the root, if it is still there, and what was forked
    /// from it or from one of those, the oldest first; only the newest 200 of them.
    pub async fn family(
        &self,
        (tenant, owner): (&TenantId, &UserId),
        root: &SessionId,
    ) -> Result<Vec<SessionRow>, Error> {
        let rows: Vec<Row> = self
            .db
            .fetch_all(
                "SELECT * FROM sessions WHERE tenant = $1 AND owner = $2 AND (root = $3 OR id = $3) \
                 AND delete_at IS NULL ORDER BY created_at DESC, id DESC LIMIT $4",
                args![
                    tenant.as_str(),
                    owner.as_str(),
                    root.as_str(),
                    i64::try_from(MAX_ROWS).unwrap_or(i64::MAX)
                ],
            )
            .await?;
        rows.into_iter().rev().map(Row::into_row).collect()
    }

    /// Forgets the row of a session and what is attached to it. The journal is the live store's.
    pub async fn delete(&self, key: &SessionKey) -> Result<bool, Error> {
        let whom = || args![key.tenant.as_str(), key.session.as_str()];
        let changed = self
            .db
            .execute("DELETE FROM sessions WHERE tenant = $1 AND id = $2", whom())
            .await?;
        // After the row, without which nothing is added to them.
        let texts = "DELETE FROM texts WHERE tenant = $1 AND session = $2";
        let attached = "DELETE FROM attachments WHERE tenant = $1 AND session = $2";
        let shared = "DELETE FROM shared_sessions WHERE tenant = $1 AND session = $2";
        // A fork that was cut off left these, before its session was there.
        let orphaned = "DELETE FROM attachments WHERE tenant = $1 AND created_at < $2 AND NOT EXISTS \
                        (SELECT 1 FROM sessions WHERE sessions.tenant = attachments.tenant \
                        AND sessions.id = attachments.session)";
        let before = jiff::Timestamp::now().as_millisecond() - FORKING_MS;
        let orphaned = Statement::new(orphaned, args![key.tenant.as_str(), before]);
        let told = "DELETE FROM notifications WHERE tenant = $1 AND session = $2";
        let limits = "DELETE FROM budgets WHERE tenant = $1 AND level IN ('own', 'session') \
                      AND subject = $2";
        let rest = [texts, attached, shared, told, limits].map(|sql| Statement::new(sql, whom()));
        let history = checkpoints::forget(key, before);
        let rest = rest.into_iter().chain([orphaned]).chain(history);
        self.db.execute_all(rest.collect()).await?;
        // All that no session of the tenant holds, so that what an earlier deletion left goes too.
        let unheld = "DELETE FROM blobs WHERE tenant = $1 AND NOT EXISTS (SELECT 1 FROM attachments \
                      WHERE attachments.tenant = blobs.tenant AND attachments.blob = blobs.id)";
        self.db.execute(unheld, args![key.tenant.as_str()]).await?;
        Ok(changed > 0)
    }
}
