//! Defines a session's row as lists show it, and maps it to the database.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Marks;
use crate::Error;
use crate::db::{Statement, args};
use crate::records::usage::UsageRows;
use crate::records::{from_json, request_id, session_id, tenant_id, user_id};
use sepal_core::domain::{ForkOrigin, ModelRequestId, Role, SessionKey, Timestamp, UserId};

/// The state of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionState {
    /// Nothing runs or waits.
    Idle,
    /// A turn runs.
    Running,
    /// A call waits for a person's decision.
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

    /// Parses the name.
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

/// The calls of one model request, some of which wait for a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingBatch {
    /// The model request that contains the calls; it identifies the batch in its session.
    pub request: ModelRequestId,
    /// The names of the tools that wait, each once, in the order of their calls.
    pub tools: Vec<String>,
    /// The time at which the first of the calls is rejected unless someone decides; `None` = they wait
    /// without limit.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
}

/// Numbers of calls that wait for the approval of people other than the session's owner: how many a person
/// with each role may decide. A higher role may decide everything that a lower one may.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedRoles {
    #[serde(default)]
    pub approvers: u64,
    pub members: u64,
    pub admins: u64,
    pub owners: u64,
}

impl AskedRoles {
    /// Counts a call that people with at least the role `lowest` may decide.
    pub fn count(&mut self, lowest: Role) {
        self.approvers += u64::from(lowest <= Role::Approver);
        self.members += u64::from(lowest <= Role::Member);
        self.admins += u64::from(lowest <= Role::Admin);
        self.owners += u64::from(lowest <= Role::Owner);
    }

    /// The number of calls that a person with this role may decide.
    pub fn of(self, role: Role) -> u64 {
        match role {
            Role::Viewer => 0,
            Role::Approver => self.approvers,
            Role::Member => self.members,
            Role::Admin => self.admins,
            Role::Owner => self.owners,
        }
    }
}

/// A session as lists show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRow {
    pub key: SessionKey,
    pub owner: UserId,
    /// The title.
    pub title: String,
    /// The state.
    pub state: SessionState,
    /// The number of calls that wait for a person.
    pub waiting: u64,
    /// The number of these calls that people other than the session's owner may decide.
    #[serde(default)]
    pub asks: AskedRoles,
    /// The time since which the oldest of these calls waits; `None` if no call waits, or if an earlier
    /// release wrote the row.
    #[serde(default)]
    pub waiting_since: Option<Timestamp>,
    /// The batch of these calls; `None` if no call waits, or if an earlier release wrote the row.
    #[serde(default)]
    pub batch: Option<Box<WaitingBatch>>,
    /// The time at which a person last decided a call.
    #[serde(default)]
    pub decided_at: Option<Timestamp>,
    pub created_at: Timestamp,
    /// The time at which something was last said or done.
    pub updated_at: Timestamp,
    /// The journal version that this row reflects.
    pub version: u64,
    /// The place from which the session was forked, if it is a fork.
    #[serde(default)]
    pub forked_from: Option<ForkOrigin>,
    /// The marks, which do not come from the journal: [`Sessions::project`](super::Sessions::project) does
    /// not change them.
    #[serde(default)]
    pub marks: Marks,
}

/// A session's row, with the usage of the commits since an earlier row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectedRow {
    pub row: SessionRow,
    /// The usage of the commits after `used_from`, up to the row's version.
    pub used: UsageRows,
    /// The version before the first of these commits; `None` if some commits that led to this row are
    /// missing in `used`.
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

/// Stores the row if it is newer than the stored one.
pub(super) fn upsert(ProjectedRow { row, used_from, .. }: &ProjectedRow) -> Statement {
    let version = i64::try_from(row.version).unwrap_or(i64::MAX);
    let origin = row.forked_from.as_ref();
    let batch = row.batch.as_ref();
    let tools = batch.map(|batch| json!(batch.tools).to_string());
    // Without `used_from`, this is above every version, so `usage_version` does not advance.
    let used_from = used_from.map_or(i64::MAX, |from| i64::try_from(from).unwrap_or(i64::MAX));
    Statement::new(
        "INSERT INTO sessions (tenant, id, owner, title, state, waiting, created_at, \
         updated_at, version, usage_version, parent, parent_seq, root, waiting_since, decided_at, \
         batch_turn, batch_iteration, batch_tools, asks_members, asks_admins, asks_owners, \
         expires_at, asks_approvers) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, CASE WHEN $10 = 0 THEN $9 ELSE 0 END, \
         $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23) \
         ON CONFLICT (tenant, id) DO UPDATE SET title = excluded.title, \
         state = excluded.state, waiting = excluded.waiting, \
         updated_at = excluded.updated_at, version = excluded.version, \
         waiting_since = excluded.waiting_since, asks_members = excluded.asks_members, \
         asks_admins = excluded.asks_admins, asks_owners = excluded.asks_owners, \
         asks_approvers = excluded.asks_approvers, \
         batch_turn = excluded.batch_turn, batch_iteration = excluded.batch_iteration, \
         batch_tools = excluded.batch_tools, expires_at = excluded.expires_at, \
         decided_at = COALESCE(excluded.decided_at, sessions.decided_at), \
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
            origin.map(|origin| origin.root.as_str()),
            row.waiting_since.map(|since| since.0),
            row.decided_at.map(|at| at.0),
            batch.map(|batch| i64::try_from(batch.request.turn.0).unwrap_or(i64::MAX)),
            batch.map(|batch| i64::from(batch.request.iteration.0)),
            tools.as_deref(),
            count(row.asks.members),
            count(row.asks.admins),
            count(row.asks.owners),
            batch.and_then(|batch| batch.expires_at).map(|at| at.0),
            count(row.asks.approvers)
        ],
    )
}

fn count(calls: u64) -> i64 {
    i64::try_from(calls).unwrap_or(i64::MAX)
}

#[derive(sqlx_macros::FromRow)]
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
    waiting_since: Option<i64>,
    decided_at: Option<i64>,
    batch_turn: Option<i64>,
    batch_iteration: Option<i64>,
    batch_tools: Option<String>,
    asks_approvers: i64,
    asks_members: i64,
    asks_admins: i64,
    asks_owners: i64,
    expires_at: Option<i64>,
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
        let batch = match (self.batch_turn, self.batch_iteration, self.batch_tools) {
            (Some(turn), Some(iteration), Some(tools)) => Some(Box::new(WaitingBatch {
                request: request_id(turn, iteration),
                tools: from_json("tools of a batch", &tools)?,
                expires_at: self.expires_at.map(Timestamp),
            })),
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
            asks: AskedRoles {
                approvers: u64::try_from(self.asks_approvers).unwrap_or(0),
                members: u64::try_from(self.asks_members).unwrap_or(0),
                admins: u64::try_from(self.asks_admins).unwrap_or(0),
                owners: u64::try_from(self.asks_owners).unwrap_or(0),
            },
            waiting_since: self.waiting_since.map(Timestamp),
            batch,
            decided_at: self.decided_at.map(Timestamp),
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
