//! The rows of sessions, projected from their journals: for lists, never for decisions.

use serde::{Deserialize, Serialize};

use super::super::Error;
use super::super::db::{Db, Statement, args};
use super::session_marks::{Marks, tag_pattern};
use super::usage::UsageRows;
use super::{session_id, tenant_id, user_id};
use crate::domain::{ForkOrigin, SessionId, SessionKey, TenantId, Timestamp, UserId};

/// The most rows of one page.
pub(super) const MAX_ROWS: usize = 200;
/// What the cursor begins with among pinned sessions.
const PINNED: &str = "p";

/// Longer than a fork takes from its attachments to its session.
const FORKING_MS: i64 = 3_600_000;

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionState {
    /// Nothing.
    Idle,
    /// A turn runs.
    Running,
    /// A person has to decide.
    Waiting,
    /// The last turn ended with an error.
    Failed,
}

impl SessionState {
    /// The name in the database and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Failed => "failed",
        }
    }

    /// Reads the name back.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "idle" => Some(Self::Idle),
            "running" => Some(Self::Running),
            "waiting" => Some(Self::Waiting),
            "failed" => Some(Self::Failed),
            _ => None,
        }
    }
}

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

/// A session as lists show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRow {
    pub key: SessionKey,
    pub owner: UserId,
    /// What it is about.
    pub title: String,
    /// What it is doing.
    pub state: SessionState,
    /// Calls that wait for a person.
    pub waiting: u64,
    pub created_at: Timestamp,
    /// When something was last said or done.
    pub updated_at: Timestamp,
    /// The journal version that this row reflects.
    pub version: u64,
    /// Where it was forked from, if it was.
    #[serde(default)]
    pub forked_from: Option<ForkOrigin>,
    /// Not of the journal: [`Sessions::project`] leaves them as they are.
    #[serde(default)]
    pub marks: Marks,
}

/// A session's row, with what the commits used that it is newer by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectedRow {
    pub row: SessionRow,
    /// What the commits after `used_from` used, up to the row's version.
    pub used: UsageRows,
    /// The version before the first of them; none = not all commits that led to this row are in it.
    pub used_from: Option<u64>,
}

impl From<SessionRow> for ProjectedRow {
    fn from(row: SessionRow) -> Self {
        Self {
            row,
            used: UsageRows::default(),
            used_from: None,
        }
    }
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
        let statements = rows.iter().flat_map(|projected| {
            let used = projected.used.statements(&projected.row.key);
            used.into_iter().chain([upsert(projected)])
        });
        self.db.execute_all(statements.collect()).await?;
        Ok(())
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
        // A fork that was cut off left these, before its session was there.
        let orphaned = "DELETE FROM attachments WHERE tenant = $1 AND created_at < $2 AND NOT EXISTS \
                        (SELECT 1 FROM sessions WHERE sessions.tenant = attachments.tenant \
                        AND sessions.id = attachments.session)";
        let before = jiff::Timestamp::now().as_millisecond() - FORKING_MS;
        let orphaned = Statement::new(orphaned, args![key.tenant.as_str(), before]);
        let rest = [texts, attached].map(|sql| Statement::new(sql, whom()));
        let rest = rest.into_iter().chain([orphaned]);
        self.db.execute_all(rest.collect()).await?;
        // All that no session of the tenant holds, so that what an earlier deletion left goes too.
        let unheld = "DELETE FROM blobs WHERE tenant = $1 AND NOT EXISTS (SELECT 1 FROM attachments \
                      WHERE attachments.tenant = blobs.tenant AND attachments.blob = blobs.id)";
        self.db.execute(unheld, args![key.tenant.as_str()]).await?;
        Ok(changed > 0)
    }
}

fn upsert(ProjectedRow { row, used_from, .. }: &ProjectedRow) -> Statement {
    let version = i64::try_from(row.version).unwrap_or(i64::MAX);
    let origin = row.forked_from.as_ref();
    // Above every version: nothing reaches it.
    let used_from = used_from.map_or(i64::MAX, |from| i64::try_from(from).unwrap_or(i64::MAX));
    Statement::new(
        "INSERT INTO sessions (tenant, id, owner, title, state, waiting, created_at, \
         updated_at, version, usage_version, parent, parent_seq, root) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, CASE WHEN $10 = 0 THEN $9 ELSE 0 END, \
         $11, $12, $13) \
         ON CONFLICT (tenant, id) DO UPDATE SET title = excluded.title, \
         state = excluded.state, waiting = excluded.waiting, \
         updated_at = excluded.updated_at, version = excluded.version, \
         usage_version = CASE WHEN sessions.usage_version >= $10 AND \
         sessions.usage_version < excluded.version THEN excluded.version \
         ELSE sessions.usage_version END \
         WHERE excluded.version > sessions.version",
        args![
            row.key.tenant.as_str(),
            row.key.session.as_str(),
            row.owner.as_str(),
            row.title.as_str(),
            row.state.as_str(),
            i64::try_from(row.waiting).unwrap_or(i64::MAX),
            row.created_at.0,
            row.updated_at.0,
            version,
            used_from,
            origin.map(|origin| origin.session.as_str()),
            origin.map(|origin| i64::try_from(origin.seq).unwrap_or(i64::MAX)),
            origin.map(|origin| origin.root.as_str())
        ],
    )
}

#[derive(sqlx::FromRow)]
pub(super) struct Row {
    tenant: String,
    id: String,
    owner: String,
    title: String,
    state: String,
    waiting: i64,
    created_at: i64,
    updated_at: i64,
    version: i64,
    parent: Option<String>,
    parent_seq: Option<i64>,
    root: Option<String>,
    pinned: bool,
    archived: bool,
    tags: String,
    marked: i64,
    delete_at: Option<i64>,
}

impl Row {
    pub(super) fn into_row(self) -> Result<SessionRow, Error> {
        let forked_from = match (self.parent, self.parent_seq, self.root) {
            (Some(session), Some(seq), Some(root)) => Some(ForkOrigin {
                session: session_id(session)?,
                seq: u64::try_from(seq).unwrap_or(0),
                root: session_id(root)?,
            }),
            _ => None,
        };
        Ok(SessionRow {
            key: SessionKey {
                tenant: tenant_id(self.tenant)?,
                session: session_id(self.id)?,
            },
            owner: user_id(self.owner)?,
            title: self.title,
            state: SessionState::parse(&self.state)
                .ok_or_else(|| Error::corrupt("session state", self.state))?,
            waiting: u64::try_from(self.waiting).unwrap_or(0),
            created_at: Timestamp(self.created_at),
            updated_at: Timestamp(self.updated_at),
            version: u64::try_from(self.version).unwrap_or(0),
            forked_from,
            marks: Marks {
                is_pinned: self.pinned,
                is_archived: self.archived,
                tags: self
                    .tags
                    .lines()
                    .map(str::to_owned)
                    .filter(|tag| !tag.is_empty())
                    .collect(),
                changes: u64::try_from(self.marked).unwrap_or(0),
                delete_at: self.delete_at.map(Timestamp),
            },
        })
    }
}
