//! The outbox of what people and programs are told outside of the page: which batches wait is read off
//! the list of sessions, each of them is told to each target once, and whoever tries holds a lease.
//!
//! Nothing is written when a session begins to wait: the list says that it waits, and goes on saying so
//! after any crash, until somebody has looked.

mod row;

use std::time::Duration;

use self::row::{BatchRow, Row};
use crate::domain::{ModelRequestId, SessionKey, TenantId, Timestamp, UserId, WebhookId};
use crate::store::Error;
use crate::store::db::{Arg, Db, Statement, args};

/// Rows that one step takes up.
const PAGE: i64 = 200;

/// How long a row is kept after it is done, unless its batch still waits: seven days.
const KEEP_MS: i64 = 7 * 86_400_000;

/// What is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotificationEvent {
    /// A batch began to wait.
    Waiting,
    /// It waits no longer.
    Decided,
}

impl NotificationEvent {
    /// The name in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Decided => "decided",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        match text {
            "waiting" => Some(Self::Waiting),
            "decided" => Some(Self::Decided),
            _ => None,
        }
    }
}

/// Who is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotificationTarget {
    Webhook(WebhookId),
    /// A person, by mail.
    Mail(UserId),
}

impl NotificationTarget {
    fn as_str(&self) -> &str {
        match self {
            Self::Webhook(id) => id.as_str(),
            Self::Mail(id) => id.as_str(),
        }
    }
}

/// What is told once: that event of that batch to that target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotificationKey {
    pub session: SessionKey,
    /// The batch in its session.
    pub request: ModelRequestId,
    pub event: NotificationEvent,
    pub target: NotificationTarget,
}

/// What has to be told now, by whoever claimed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueNotification {
    pub key: NotificationKey,
    /// Whose session it is.
    pub owner: UserId,
    /// What the session is about; may be empty.
    pub title: String,
    /// The names of the tools.
    pub tools: Vec<String>,
    /// Calls that waited when it was noticed.
    pub calls: u64,
    pub waiting_since: Timestamp,
    /// When the first of them is rejected unless somebody decides; none = they wait until then.
    pub expires_at: Option<Timestamp>,
    /// When what it tells happened.
    pub at: Timestamp,
    /// The attempt that was claimed, from 1: only its holder may say how it went.
    pub attempt: u32,
}

/// How an attempt went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tried {
    /// It is told, or will never be.
    Done,
    /// It is tried again then.
    Again(Timestamp),
}

/// The outbox.
pub struct Notifications<'s> {
    db: &'s Db,
}

/// A batch that waits and is not in the outbox.
const NEW_FOR_WEBHOOKS: &str = "SELECT s.tenant, w.id AS target, FALSE AS is_mail, s.id AS session, s.owner, s.title, \
     s.batch_turn AS turn, s.batch_iteration AS iteration, s.batch_tools AS tools, \
     s.waiting AS calls, s.waiting_since, s.expires_at \
     FROM webhooks w JOIN sessions s ON s.tenant = w.tenant AND s.waiting > 0 \
     WHERE w.disabled_at IS NULL AND s.batch_turn IS NOT NULL AND s.delete_at IS NULL \
     AND s.waiting_since >= w.created_at AND NOT EXISTS (SELECT 1 FROM notifications n \
     WHERE n.tenant = s.tenant AND n.target = w.id AND n.event = 'waiting' \
     AND n.session = s.id AND n.turn = s.batch_turn AND n.iteration = s.batch_iteration) \
     LIMIT $1";
const NEW_FOR_MAIL: &str = "SELECT s.tenant, u.id AS target, TRUE AS is_mail, s.id AS session, s.owner, s.title, \
     s.batch_turn AS turn, s.batch_iteration AS iteration, s.batch_tools AS tools, \
     s.waiting AS calls, s.waiting_since, s.expires_at \
     FROM users u JOIN sessions s ON s.tenant = u.tenant AND s.owner = u.id AND s.waiting > 0 \
     WHERE u.mail_since IS NOT NULL AND u.email IS NOT NULL AND NOT u.is_disabled \
     AND s.batch_turn IS NOT NULL AND s.delete_at IS NULL \
     AND s.waiting_since >= u.mail_since AND NOT EXISTS (SELECT 1 FROM notifications n \
     WHERE n.tenant = s.tenant AND n.target = u.id AND n.event = 'waiting' \
     AND n.session = s.id AND n.turn = s.batch_turn AND n.iteration = s.batch_iteration) \
     LIMIT $1";
/// The same in others' sessions, of the calls that the person may decide: nothing else of them is told.
const NEW_FOR_OTHERS: &str = "SELECT s.tenant, u.id AS target, TRUE AS is_mail, s.id AS session, s.owner, '' AS title, \
     s.batch_turn AS turn, s.batch_iteration AS iteration, '[]' AS tools, \
     CASE u.role WHEN 'member' THEN s.asks_members WHEN 'admin' THEN s.asks_admins \
     WHEN 'owner' THEN s.asks_owners ELSE 0 END AS calls, s.waiting_since \
     FROM users u JOIN sessions s ON s.tenant = u.tenant AND s.owner <> u.id AND s.asks_owners > 0 \
     WHERE u.mail_since IS NOT NULL AND u.email IS NOT NULL AND NOT u.is_disabled \
     AND CASE u.role WHEN 'member' THEN s.asks_members WHEN 'admin' THEN s.asks_admins \
     WHEN 'owner' THEN s.asks_owners ELSE 0 END > 0 \
     AND s.batch_turn IS NOT NULL AND s.delete_at IS NULL \
     AND s.waiting_since >= u.mail_since AND NOT EXISTS (SELECT 1 FROM notifications n \
     WHERE n.tenant = s.tenant AND n.target = u.id AND n.event = 'waiting' \
     AND n.session = s.id AND n.turn = s.batch_turn AND n.iteration = s.batch_iteration) \
     LIMIT $1";
const INSERT: &str = "INSERT INTO notifications (tenant, target, event, session, turn, iteration, is_mail, owner, \
     title, tools, calls, waiting_since, at, due_at, expires_at) \
     VALUES ($1, $2, 'waiting', $3, $4, $5, $6, $7, $8, $9, $10, $11, $11, $12, $13) \
     ON CONFLICT (tenant, target, event, session, turn, iteration) DO NOTHING";
/// Batches of the outbox that the list no longer shows as waiting.
const NO_LONGER: &str = "SELECT n.tenant, n.target, n.is_mail, n.session, n.owner, n.title, n.turn, n.iteration, \
     n.tools, n.calls, n.waiting_since, n.expires_at FROM notifications n \
     WHERE n.event = 'waiting' AND n.decided_at IS NULL AND NOT EXISTS (SELECT 1 FROM sessions s \
     WHERE s.tenant = n.tenant AND s.id = n.session AND s.waiting > 0 \
     AND s.batch_turn = n.turn AND s.batch_iteration = n.iteration AND s.delete_at IS NULL) \
     LIMIT $1";
/// The next of each target: one at a time, so that a slow one keeps nobody else waiting.
const DUE: &str = "SELECT n.* FROM notifications n \
     WHERE n.done_at IS NULL AND n.due_at <= $1 AND n.lease_until <= $1 AND NOT EXISTS \
     (SELECT 1 FROM notifications o WHERE o.tenant = n.tenant AND o.target = n.target \
     AND o.done_at IS NULL AND (o.due_at, o.session, o.turn, o.iteration, o.event) \
     < (n.due_at, n.session, n.turn, n.iteration, n.event)) \
     ORDER BY n.due_at LIMIT $2";

impl<'s> Notifications<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// Takes up what the list of sessions shows now: batches that began to wait since anybody looked,
    /// and those that wait no longer. A batch that came and went in between is told to nobody.
    /// People are mailed `mail_after` a batch began to wait; none = nobody is.
    pub async fn take_up(&self, now: Timestamp, mail_after: Option<Duration>) -> Result<(), Error> {
        let mut new: Vec<BatchRow> = self.db.fetch_all(NEW_FOR_WEBHOOKS, args![PAGE]).await?;
        if mail_after.is_some() {
            let mails: Vec<BatchRow> = self.db.fetch_all(NEW_FOR_MAIL, args![PAGE]).await?;
            new.extend(mails);
            let others: Vec<BatchRow> = self.db.fetch_all(NEW_FOR_OTHERS, args![PAGE]).await?;
            new.extend(others);
        }
        let mail_after = mail_after.map_or(0, ms);
        let statements: Vec<Statement> = new
            .iter()
            .map(|row| Statement::new(INSERT, row.to_args(mail_after)))
            .collect();
        if !statements.is_empty() {
            self.db.execute_all(statements).await?;
        }
        let past: Vec<BatchRow> = self.db.fetch_all(NO_LONGER, args![PAGE]).await?;
        let statements: Vec<Statement> = past.iter().flat_map(|row| row.close(now)).collect();
        if !statements.is_empty() {
            self.db.execute_all(statements).await?;
        }
        Ok(())
    }

    /// Claims what is due, one for each target and at most `limit`: until `lease` is over nobody else
    /// tries it.
    pub async fn claim(
        &self,
        now: Timestamp,
        lease: Duration,
        limit: usize,
    ) -> Result<Vec<DueNotification>, Error> {
        let limit = i64::try_from(limit).unwrap_or(PAGE);
        let rows: Vec<Row> = self.db.fetch_all(DUE, args![now.0, limit]).await?;
        let mut claimed = Vec::new();
        for row in rows {
            let sql = "UPDATE notifications SET lease_until = $8, attempts = attempts + 1 \
                       WHERE tenant = $1 AND target = $2 AND event = $3 AND session = $4 \
                       AND turn = $5 AND iteration = $6 AND attempts = $7 \
                       AND lease_until <= $9 AND done_at IS NULL";
            let mut values = row.key();
            values.extend(args![row.attempts, now.0.saturating_add(ms(lease)), now.0]);
            // Nothing changes where another gateway was quicker.
            if self.db.execute(sql, values).await? == 1 {
                claimed.push(row.into_due()?);
            }
        }
        Ok(claimed)
    }

    /// Keeps how an attempt went. False where its lease was over and somebody else tried meanwhile.
    pub async fn finish(
        &self,
        due: &DueNotification,
        tried: Tried,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let sql = "UPDATE notifications SET done_at = $8, due_at = COALESCE($9, due_at), \
                   lease_until = 0 WHERE tenant = $1 AND target = $2 AND event = $3 \
                   AND session = $4 AND turn = $5 AND iteration = $6 AND attempts = $7";
        let (done_at, due_at) = match tried {
            Tried::Done => (Some(now.0), None),
            Tried::Again(at) => (None, Some(at.0)),
        };
        let key = &due.key;
        let values = args![
            key.session.tenant.as_str(),
            key.target.as_str(),
            key.event.as_str(),
            key.session.session.as_str(),
            i64::try_from(key.request.turn.0).unwrap_or(i64::MAX),
            i64::from(key.request.iteration.0),
            i64::from(due.attempt),
            Arg::Int(done_at),
            Arg::Int(due_at)
        ];
        Ok(self.db.execute(sql, values).await? == 1)
    }

    /// When the next attempt is due; none = nothing has to be told.
    pub async fn next_due(&self) -> Result<Option<Timestamp>, Error> {
        let sql = "SELECT CASE WHEN lease_until > due_at THEN lease_until ELSE due_at END \
                   FROM notifications WHERE done_at IS NULL ORDER BY 1 LIMIT 1";
        let row: Option<(i64,)> = self.db.fetch_optional(sql, args![]).await?;
        Ok(row.map(|(at,)| Timestamp(at)))
    }

    /// Ends every lease: for the only gateway, before it begins. What the process before it was trying
    /// is tried again at once.
    pub async fn release(&self) -> Result<(), Error> {
        let sql =
            "UPDATE notifications SET lease_until = 0 WHERE done_at IS NULL AND lease_until > 0";
        self.db.execute(sql, args![]).await?;
        Ok(())
    }

    /// How many mails a person was sent since then.
    pub async fn mails_since(
        &self,
        (tenant, person): (&TenantId, &UserId),
        since: Timestamp,
    ) -> Result<u64, Error> {
        let sql = "SELECT COUNT(*) FROM notifications WHERE tenant = $1 AND target = $2 AND is_mail \
                   AND attempts > 0 AND done_at > $3";
        let values = args![tenant.as_str(), person.as_str(), since.0];
        let row: Option<(i64,)> = self.db.fetch_optional(sql, values).await?;
        Ok(row.map_or(0, |(count,)| u64::try_from(count).unwrap_or(0)))
    }

    /// Forgets what was done a week ago, of batches that wait no longer.
    pub async fn prune(&self, now: Timestamp) -> Result<(), Error> {
        let sql = "DELETE FROM notifications WHERE done_at < $1 \
                   AND (decided_at IS NOT NULL OR event <> 'waiting')";
        let before = now.0.saturating_sub(KEEP_MS);
        self.db.execute(sql, args![before]).await?;
        Ok(())
    }
}

fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
