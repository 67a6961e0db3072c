//! Stores the rows of the session list, projected from the journals. They are used for lists, never for
//! decisions.

mod marking;
mod marks;
mod row;
mod waiting;

pub use marks::{MAX_TAGS, Marks, MarksChange};
pub use row::{AskedRoles, ProjectedRow, SessionRow, SessionState, WaitingBatch};
pub use waiting::{DecidableSessions, WaitingCursor, WaitingSessionsPage, WaitingTotals};

use std::collections::BTreeSet;

use self::marks::tag_pattern;
use self::row::{Row, upsert};
use crate::Error;
use crate::audit::{Act, ActName};
use crate::db::{Db, PerRow, Statement, args};
use crate::records::attachments::UNHELD_BLOBS;
use crate::records::{checkpoints, session_id, usage};
use sepal_core::domain::{SessionId, SessionKey, TenantId, Timestamp, UserId};

/// The most rows of one page.
pub(super) const MAX_ROWS: usize = 200;
/// The prefix of a cursor that points to a pinned session.
const PINNED: &str = "p";

/// An upper bound for the time from a fork's first attachment to the row of its session.
const FORKING_MS: i64 = 3_600_000;

/// Selects sessions of a person.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// Only sessions in this state.
    pub state: Option<SessionState>,
    /// True for archived sessions only, false for sessions that are not archived.
    pub is_archived: bool,
    /// Only sessions with this tag.
    pub tag: Option<String>,
    /// Only sessions of these.
    pub within: Option<BTreeSet<SessionId>>,
}

/// Makes the value for a condition `($1 = '' OR $1 LIKE '%,' || id || ',%')`, which selects these sessions; `None` =
/// all.
fn within_text(within: Option<&BTreeSet<SessionId>>) -> String {
    let ids = within.map(|ids| ids.iter().map(SessionId::as_str).collect::<Vec<_>>());
    // Not empty, even if no session is selected.
    ids.map(|ids| format!(",{},", ids.join(",")))
        .unwrap_or_default()
}

/// The end of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    is_pinned: bool,
    updated_at: i64,
    id: SessionId,
}

impl Cursor {
    /// The cursor's text for clients, who send it back for the next page.
    pub fn to_wire(&self) -> String {
        let pinned = if self.is_pinned { PINNED } else { "" };
        format!("{pinned}{}.{}", self.updated_at, self.id)
    }

    /// Parses the text from [`Self::to_wire`].
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
    /// The start of the next page, if there is one.
    pub next: Option<Cursor>,
}

/// Access to the rows of the session list.
pub struct Sessions<'s> {
    pub(super) db: &'s Db,
}

impl<'s> Sessions<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// Stores rows with their usage in one transaction. A row older than the stored one changes nothing. The
    /// usage is complete up to the row's version only if it continues the stored usage without a gap.
    pub async fn project(&self, rows: &[ProjectedRow]) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let used = rows.iter().map(|row| (&row.row.key, &row.used));
        let mut statements = usage::keep(&used.collect::<Vec<_>>());
        statements.extend(rows.iter().map(upsert));
        self.db.execute_in_turn(statements).await
    }

    /// The most recently changed sessions of a tenant, or of one person, newest first.
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

    /// The stored rows of these sessions, in no particular order.
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
                   AND (u.is_disabled OR u.role IN ('viewer', 'approver') OR t.suspended_at IS NOT NULL)";
        let rows: Vec<Row> = self.db.fetch_all(sql, args![busy[0], busy[1]]).await?;
        rows.into_iter()
            .map(|row| row.into_row().map(|row| row.key))
            .collect()
    }

    /// Every session of a tenant, or of one of its people, with its owner.
    pub async fn of_tenant(
        &self,
        tenant: &TenantId,
        owner: Option<&UserId>,
    ) -> Result<Vec<(SessionKey, UserId)>, Error> {
        let sql =
            "SELECT * FROM sessions WHERE tenant = $1 AND ($2 = '' OR owner = $2) ORDER BY id";
        let values = args![tenant.as_str(), owner.map_or("", UserId::as_str)];
        let rows: Vec<Row> = self.db.fetch_all(sql, values).await?;
        rows.into_iter()
            .map(|row| row.into_row().map(|row| (row.key, row.owner)))
            .collect()
    }

    /// A page of sessions in which nothing runs or waits and nothing was said or done since `before`, of every
    /// tenant that is not being deleted or imported. It starts after `last`, in the order of keys.
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
                 (tenant, id) > ($4, $5) AND NOT EXISTS (SELECT 1 FROM tenants \
                 WHERE tenants.id = sessions.tenant AND tenants.delete_at IS NOT NULL) \
                 ORDER BY tenant, id LIMIT $6",
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

    /// The sessions of a person: pinned ones first, then by last change, newest first.
    pub async fn list(
        &self,
        tenant: &TenantId,
        owner: &UserId,
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
                 ($6 = '' OR state = $6) AND ($9 = '' OR tags LIKE $9 ESCAPE '\\') AND \
                 ($10 = '' OR $10 LIKE '%,' || id || ',%') \
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
                    tag.as_str(),
                    within_text(filter.within.as_ref()).as_str()
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

    /// The sessions of a person in the order of their ids, from the one after `after` on, without those that were
    /// given up.
    pub async fn of_owner(
        &self,
        tenant: &TenantId,
        owner: &UserId,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<SessionId>, Error> {
        let ids: Vec<(String,)> = self
            .db
            .fetch_all(
                "SELECT id FROM sessions WHERE tenant = $1 AND owner = $2 AND id > $3 \
                 AND delete_at IS NULL ORDER BY id LIMIT $4",
                args![
                    tenant.as_str(),
                    owner.as_str(),
                    after.map_or("", SessionId::as_str),
                    i64::try_from(limit).unwrap_or(i64::MAX)
                ],
            )
            .await?;
        ids.into_iter().map(|(id,)| session_id(id)).collect()
    }

    /// The sessions of a person in one family of forks, oldest first: the root, if it still exists, and all
    /// direct and indirect forks of it. Only the newest 200 are returned.
    pub async fn family(
        &self,
        tenant: &TenantId,
        owner: &UserId,
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

    /// Deletes the row of a session, and all records that belong to it, in one transaction. Returns true if
    /// the row existed. The caller removes the journal from the live store.
    pub async fn delete(&self, key: &SessionKey) -> Result<bool, Error> {
        let sql = "DELETE FROM sessions WHERE tenant = $1 AND id = $2";
        let row = args![key.tenant.as_str(), key.session.as_str()];
        let rest = belongings(key);
        // The row is deleted first, because nothing is added to the other tables without it.
        let act = Act::new(
            ActName::SessionDeleted,
            &key.tenant,
            "session",
            key.session.as_str(),
        );
        let mut all = vec![Statement::required(sql, row).recorded(act)];
        all.extend(rest.iter().cloned());
        let existed = self.db.execute_all(all).await?.is_some();
        if !existed {
            // Another gateway may have written records without the row.
            self.db.execute_all(rest).await?;
        }
        self.db
            .execute(UNHELD_BLOBS, args![key.tenant.as_str()])
            .await?;
        Ok(existed)
    }
}

/// Deletes the records that belong to a session.
fn belongings(key: &SessionKey) -> Vec<Statement> {
    let whom = || args![key.tenant.as_str(), key.session.as_str()];
    let texts = "DELETE FROM texts WHERE tenant = $1 AND session = $2";
    let attached = "DELETE FROM attachments WHERE tenant = $1 AND session = $2";
    let shared = "DELETE FROM shared_sessions WHERE tenant = $1 AND session = $2";
    let told = "DELETE FROM notifications WHERE tenant = $1 AND session = $2";
    let limits = "DELETE FROM budgets WHERE tenant = $1 AND level IN ('own', 'session') \
                  AND subject = $2";
    let copied = "DELETE FROM session_transfers WHERE tenant = $1 AND session = $2";
    let sealed = "DELETE FROM audit_sessions WHERE tenant = $1 AND session = $2";
    let versions = "DELETE FROM record_versions WHERE scope = $1 AND record = 'marks/' || $2";
    let own = [
        texts, attached, shared, told, limits, copied, sealed, versions,
    ];
    // They go with the session, whose deletion is the act.
    let own = own.map(|sql| Statement::new(sql, whom()).upkeep());
    // Attachments of an interrupted fork, whose session was never stored.
    let orphaned = "DELETE FROM attachments WHERE tenant = $1 AND created_at < $2 AND NOT EXISTS \
                    (SELECT 1 FROM sessions WHERE sessions.tenant = attachments.tenant \
                    AND sessions.id = attachments.session)";
    let before = jiff::Timestamp::now().as_millisecond() - FORKING_MS;
    let orphaned = Statement::new(orphaned, args![key.tenant.as_str(), before]);
    let history = checkpoints::forget(key, before);
    own.into_iter().chain([orphaned]).chain(history).collect()
}
