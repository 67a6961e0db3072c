//! Stores the outbox of notifications to people and programs. The list of sessions tells which batches wait;
//! each batch is announced to each target once, and a sender takes a lease on the notification that it
//! sends.
//!
//! Nothing is written when a session begins to wait. The list of sessions keeps showing the batch, even
//! after a crash, until [`Notifications::take_up`] has read it.

mod row;

use std::time::Duration;

use self::row::{BatchRow, Row};
use crate::Error;
use crate::db::{Arg, Db, Statement, args};
use sepal_core::domain::{ModelRequestId, SessionKey, TenantId, Timestamp, UserId, WebhookId};

/// The most rows that one step processes.
const PAGE: i64 = 200;

/// The time for which a finished row is kept, unless its batch still waits: seven days.
const KEEP_MS: i64 = 7 * 86_400_000;

/// The event that is announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotificationEvent {
    /// A batch began to wait.
    Waiting,
    /// The batch no longer waits.
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

/// The recipient of a notification.
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

/// Identifies a notification: one event of one batch for one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotificationKey {
    pub session: SessionKey,
    /// The id of the batch in its session.
    pub request: ModelRequestId,
    pub event: NotificationEvent,
    pub target: NotificationTarget,
}

/// A claimed notification that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueNotification {
    pub key: NotificationKey,
    /// The owner of the session.
    pub owner: UserId,
    /// The title of the session; may be empty.
    pub title: String,
    /// The names of the tools.
    pub tools: Vec<String>,
    /// The number of calls that waited when the batch was noticed.
    pub calls: u64,
    pub waiting_since: Timestamp,
    /// The time at which the first of the calls is rejected unless someone decides; `None` = they wait
    /// without limit.
    pub expires_at: Option<Timestamp>,
    /// The time of the event.
    pub at: Timestamp,
    /// The claimed attempt, from 1. Only the holder of this attempt may report its outcome.
    pub attempt: u32,
}

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The notification was sent.
    Done,
    /// The notification was not sent and will never be: its recipient does not want it, or every attempt
    /// failed.
    Dropped,
    /// The notification was not sent. It is to be tried again at this time, unless it is a mail whose batch
    /// no longer waits.
    Again(Timestamp),
}

/// Access to the outbox.
pub struct Notifications<'s> {
    db: &'s Db,
}

/// Batches that wait and are not in the outbox yet.
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
/// The same for sessions of others. It contains only the number of calls that the person may decide, and the
/// time at which the first call is rejected; it contains nothing else about the calls.
const NEW_FOR_OTHERS: &str = "SELECT s.tenant, u.id AS target, TRUE AS is_mail, s.id AS session, s.owner, '' AS title, \
     s.batch_turn AS turn, s.batch_iteration AS iteration, '[]' AS tools, \
     CASE u.role WHEN 'approver' THEN s.asks_approvers WHEN 'member' THEN s.asks_members WHEN 'admin' THEN s.asks_admins \
     WHEN 'owner' THEN s.asks_owners ELSE 0 END AS calls, s.waiting_since, s.expires_at \
     FROM users u JOIN sessions s ON s.tenant = u.tenant AND s.owner <> u.id AND s.asks_owners > 0 \
     WHERE u.mail_since IS NOT NULL AND u.email IS NOT NULL AND NOT u.is_disabled \
     AND CASE u.role WHEN 'approver' THEN s.asks_approvers WHEN 'member' THEN s.asks_members WHEN 'admin' THEN s.asks_admins \
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
/// Batches in the outbox that no longer wait, according to the list of sessions.
const NO_LONGER: &str = "SELECT n.tenant, n.target, n.is_mail, n.session, n.owner, n.title, n.turn, n.iteration, \
     n.tools, n.calls, n.waiting_since, n.expires_at FROM notifications n \
     WHERE n.event = 'waiting' AND n.decided_at IS NULL AND NOT EXISTS (SELECT 1 FROM sessions s \
     WHERE s.tenant = n.tenant AND s.id = n.session AND s.waiting > 0 \
     AND s.batch_turn = n.turn AND s.batch_iteration = n.iteration AND s.delete_at IS NULL) \
     LIMIT $1";
/// The next notification of each target. Only one per target is sent at a time, so a slow target delays no
/// other.
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

    /// Updates the outbox from the list of sessions: adds batches that began to wait, and closes those that
    /// no longer wait. A batch that began and ended between two calls is never announced. Mail is due
    /// `mail_after` the batch began to wait; `None` = no mail is sent.
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

    /// Claims notifications that are due: one for each target, and at most `limit`. No other gateway claims
    /// them before `lease` is over.
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
            // No row changes if another gateway claimed it first.
            if self.db.execute(sql, values).await? == 1 {
                claimed.push(row.into_due()?);
            }
        }
        Ok(claimed)
    }

    /// Records the outcome of an attempt. Returns false if its lease was over and another gateway has
    /// claimed the notification since.
    ///
    /// A finished row with no attempts was not sent: [`Self::mails_since`] does not count it.
    pub async fn finish(
        &self,
        due: &DueNotification,
        tried: AttemptOutcome,
        now: Timestamp,
    ) -> Result<bool, Error> {
        // A mail that was cancelled during the attempt is not tried again.
        let sql = "UPDATE notifications SET \
                   attempts = CASE WHEN $10 OR ($8 IS NULL AND is_mail AND decided_at IS NOT NULL) \
                   THEN 0 ELSE attempts END, \
                   done_at = COALESCE($8, CASE WHEN is_mail THEN decided_at ELSE NULL END), \
                   due_at = COALESCE($9, due_at), lease_until = 0 \
                   WHERE tenant = $1 AND target = $2 AND event = $3 \
                   AND session = $4 AND turn = $5 AND iteration = $6 AND attempts = $7";
        let (done_at, due_at) = match tried {
            AttemptOutcome::Done | AttemptOutcome::Dropped => (Some(now.0), None),
            AttemptOutcome::Again(at) => (None, Some(at.0)),
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
            Arg::Int(due_at),
            tried == AttemptOutcome::Dropped
        ];
        Ok(self.db.execute(sql, values).await? == 1)
    }

    /// The time of the next attempt; `None` if the outbox has nothing to send.
    pub async fn next_due(&self) -> Result<Option<Timestamp>, Error> {
        let sql = "SELECT CASE WHEN lease_until > due_at THEN lease_until ELSE due_at END \
                   FROM notifications WHERE done_at IS NULL ORDER BY 1 LIMIT 1";
        let row: Option<(i64,)> = self.db.fetch_optional(sql, args![]).await?;
        Ok(row.map(|(at,)| Timestamp(at)))
    }

    /// Ends every lease. Only for a single gateway before it starts, so that attempts of the previous
    /// process are repeated at once.
    pub async fn release(&self) -> Result<(), Error> {
        let sql =
            "UPDATE notifications SET lease_until = 0 WHERE done_at IS NULL AND lease_until > 0";
        self.db.execute(sql, args![]).await?;
        Ok(())
    }

    /// The number of mails that were sent to a person after `since`. A mail that was cancelled during an
    /// attempt counts as sent until the outcome of the attempt is recorded.
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

    /// Deletes rows that were finished more than a week ago and whose batches no longer wait.
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
