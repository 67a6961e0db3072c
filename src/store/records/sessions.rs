//! The rows of sessions, projected from their journals: for lists, never for decisions.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::super::Error;
use super::super::db::{Db, Statement, args};
use super::{tenant_id, user_id};
use crate::domain::{SessionId, SessionKey, TenantId, Timestamp, UserId};

/// The most rows of one page.
const MAX_ROWS: usize = 200;
/// What the cursor begins with among pinned sessions.
const PINNED: &str = "p";
/// How often a change of marks is tried that others get in the way of.
const TRIES: usize = 4;

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

/// What a person keeps about a session of theirs, beside what stands in its journal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    /// Before all that are not.
    pub is_pinned: bool,
    /// Off the list, and found all the same.
    pub is_archived: bool,
    /// Words of the person's own, sorted.
    pub tags: BTreeSet<String>,
    /// How often the three above were changed.
    pub changes: u64,
    /// When the session is deleted, if it was given up.
    pub delete_at: Option<Timestamp>,
}

/// What to change of the marks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MarksChange {
    pub is_pinned: Option<bool>,
    pub is_archived: Option<bool>,
    /// All tags anew.
    pub tags: Option<BTreeSet<String>>,
    pub add_tags: BTreeSet<String>,
    pub remove_tags: BTreeSet<String>,
}

impl MarksChange {
    fn apply(&self, marks: &Marks) -> Marks {
        let mut tags = self.tags.clone().unwrap_or_else(|| marks.tags.clone());
        tags.extend(self.add_tags.iter().cloned());
        tags.retain(|tag| !self.remove_tags.contains(tag));
        Marks {
            is_pinned: self.is_pinned.unwrap_or(marks.is_pinned),
            is_archived: self.is_archived.unwrap_or(marks.is_archived),
            tags,
            ..marks.clone()
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
    /// Not of the journal: [`Sessions::project`] leaves them as they are.
    #[serde(default)]
    pub marks: Marks,
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
    db: &'s Db,
}

impl<'s> Sessions<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// Keeps rows in one transaction; one that is older than what is kept changes nothing.
    pub async fn project(&self, rows: &[SessionRow]) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let upsert = |row: &SessionRow| {
            Statement::new(
                "INSERT INTO sessions (tenant, id, owner, title, state, waiting, created_at, \
                 updated_at, version) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
                 ON CONFLICT (tenant, id) DO UPDATE SET title = excluded.title, \
                 state = excluded.state, waiting = excluded.waiting, \
                 updated_at = excluded.updated_at, version = excluded.version \
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
                    i64::try_from(row.version).unwrap_or(i64::MAX)
                ],
            )
        };
        self.db
            .execute_all(rows.iter().map(upsert).collect())
            .await?;
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

    /// Changes what a person keeps about a session of theirs. `None` if they have no such session.
    pub async fn mark(
        &self,
        key: &SessionKey,
        owner: &UserId,
        change: &MarksChange,
    ) -> Result<Option<SessionRow>, Error> {
        for _ in 0..TRIES {
            let row = self.find(key).await?;
            let is_own = |row: &SessionRow| row.owner == *owner && row.marks.delete_at.is_none();
            let Some(mut row) = row.filter(is_own) else {
                return Ok(None);
            };
            let marks = change.apply(&row.marks);
            if marks == row.marks {
                return Ok(Some(row));
            }
            let changed = self
                .db
                .execute(
                    "UPDATE sessions SET pinned = $3, archived = $4, tags = $5, \
                     marked = marked + 1 WHERE tenant = $1 AND id = $2 AND marked = $6",
                    args![
                        key.tenant.as_str(),
                        key.session.as_str(),
                        marks.is_pinned,
                        marks.is_archived,
                        tags_column(&marks.tags).as_str(),
                        i64::try_from(row.marks.changes).unwrap_or(i64::MAX)
                    ],
                )
                .await?;
            if changed > 0 {
                row.marks = Marks {
                    changes: row.marks.changes + 1,
                    ..marks
                };
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// Gives a session of that person up: it is on no list any more, and deleted at `delete_at`.
    /// Whether there was one.
    pub async fn give_up(
        &self,
        key: &SessionKey,
        owner: &UserId,
        delete_at: Timestamp,
    ) -> Result<bool, Error> {
        let changed = self.db.execute(
            "UPDATE sessions SET delete_at = $4, marked = marked + 1 \
             WHERE tenant = $1 AND id = $2 AND owner = $3 AND delete_at IS NULL",
            args![
                key.tenant.as_str(),
                key.session.as_str(),
                owner.as_str(),
                delete_at.0
            ],
        );
        Ok(changed.await? > 0)
    }

    /// Takes back that a session was given up, while its time has not come. Whether it was.
    pub async fn take_back(
        &self,
        key: &SessionKey,
        owner: &UserId,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let changed = self.db.execute(
            "UPDATE sessions SET delete_at = NULL, marked = marked + 1 \
             WHERE tenant = $1 AND id = $2 AND owner = $3 AND delete_at > $4",
            args![
                key.tenant.as_str(),
                key.session.as_str(),
                owner.as_str(),
                now.0
            ],
        );
        Ok(changed.await? > 0)
    }

    /// Every session that was given up, and whose it was; what is deleted next first.
    pub async fn given_up(&self) -> Result<Vec<SessionRow>, Error> {
        let sql = "SELECT * FROM sessions WHERE delete_at IS NOT NULL ORDER BY delete_at LIMIT $1";
        let limit = i64::try_from(MAX_ROWS).unwrap_or(i64::MAX);
        let rows: Vec<Row> = self.db.fetch_all(sql, args![limit]).await?;
        rows.into_iter().map(Row::into_row).collect()
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
        let rest = [texts, attached].map(|sql| Statement::new(sql, whom()));
        self.db.execute_all(rest.into()).await?;
        // All that no session of the tenant holds, so that what an earlier deletion left goes too.
        let unheld = "DELETE FROM blobs WHERE tenant = $1 AND NOT EXISTS (SELECT 1 FROM attachments \
                      WHERE attachments.tenant = blobs.tenant AND attachments.blob = blobs.id)";
        self.db.execute(unheld, args![key.tenant.as_str()]).await?;
        Ok(changed > 0)
    }
}

#[derive(sqlx::FromRow)]
struct Row {
    tenant: String,
    id: String,
    owner: String,
    title: String,
    state: String,
    waiting: i64,
    created_at: i64,
    updated_at: i64,
    version: i64,
    pinned: bool,
    archived: bool,
    tags: String,
    marked: i64,
    delete_at: Option<i64>,
}

impl Row {
    fn into_row(self) -> Result<SessionRow, Error> {
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

/// Each tag between line breaks; none has one in it.
fn tags_column(tags: &BTreeSet<String>) -> String {
    let lines = tags.iter().map(|tag| format!("{tag}\n"));
    match lines.collect::<String>() {
        lines if lines.is_empty() => lines,
        lines => format!("\n{lines}"),
    }
}

/// What finds one tag among those of a session.
fn tag_pattern(tag: &str) -> String {
    let mut escaped = String::with_capacity(tag.len());
    for char in tag.chars() {
        if matches!(char, '%' | '_' | '\\') {
            escaped.push('\\');
        }
        escaped.push(char);
    }
    format!("%\n{escaped}\n%")
}

pub(super) fn session_id(text: String) -> Result<SessionId, Error> {
    SessionId::parse(&text).ok_or_else(|| Error::corrupt("session id", text))
}
