//! Maps the rows of the outbox, and the rows of the session list that are added to it.

use super::{DueNotification, NotificationEvent, NotificationKey, NotificationTarget};
use crate::Error;
use crate::db::{Arg, Statement, args};
use crate::records::{from_json, request_id, session_id, tenant_id, user_id};
use sepal_core::domain::{SessionKey, Timestamp, WebhookId};

/// A batch with one of its targets.
#[derive(sqlx_macros::FromRow)]
pub(super) struct BatchRow {
    tenant: String,
    target: String,
    is_mail: bool,
    session: String,
    owner: String,
    title: String,
    turn: i64,
    iteration: i64,
    tools: String,
    calls: i64,
    waiting_since: i64,
    expires_at: Option<i64>,
}

impl BatchRow {
    pub(super) fn to_args(&self, mail_after: i64) -> Vec<Arg> {
        let delay = if self.is_mail { mail_after } else { 0 };
        args![
            self.tenant.as_str(),
            self.target.as_str(),
            self.session.as_str(),
            self.turn,
            self.iteration,
            self.is_mail,
            self.owner.as_str(),
            self.title.as_str(),
            self.tools.as_str(),
            self.calls,
            self.waiting_since,
            self.waiting_since.saturating_add(delay),
            Arg::Int(self.expires_at)
        ]
    }

    /// Records that the batch no longer waits. Queues a notification for a webhook that wants one, and
    /// cancels a mail that was not sent yet: without an attempt under way, none of its attempts counts.
    pub(super) fn close(&self, now: Timestamp) -> [Statement; 2] {
        let key = || {
            args![
                self.tenant.as_str(),
                self.target.as_str(),
                self.session.as_str(),
                self.turn,
                self.iteration,
                now.0
            ]
        };
        let tell = "INSERT INTO notifications (tenant, target, event, session, turn, iteration, \
                    is_mail, owner, title, tools, calls, waiting_since, at, due_at) \
                    SELECT n.tenant, n.target, 'decided', n.session, n.turn, n.iteration, FALSE, \
                    n.owner, n.title, n.tools, n.calls, n.waiting_since, $6, $6 \
                    FROM notifications n JOIN webhooks w ON w.tenant = n.tenant AND w.id = n.target \
                    WHERE n.tenant = $1 AND n.target = $2 AND n.event = 'waiting' AND n.session = $3 \
                    AND n.turn = $4 AND n.iteration = $5 AND n.decided_at IS NULL \
                    AND w.tells_decided AND w.disabled_at IS NULL \
                    ON CONFLICT (tenant, target, event, session, turn, iteration) DO NOTHING";
        let note = "UPDATE notifications SET decided_at = $6, \
                    attempts = CASE WHEN is_mail AND done_at IS NULL AND lease_until <= $6 \
                    THEN 0 ELSE attempts END, \
                    done_at = CASE WHEN is_mail THEN COALESCE(done_at, $6) ELSE done_at END \
                    WHERE tenant = $1 AND target = $2 AND event = 'waiting' AND session = $3 \
                    AND turn = $4 AND iteration = $5 AND decided_at IS NULL";
        [Statement::new(tell, key()), Statement::new(note, key())]
    }
}

#[derive(sqlx_macros::FromRow)]
pub(super) struct Row {
    tenant: String,
    target: String,
    event: String,
    session: String,
    turn: i64,
    iteration: i64,
    is_mail: bool,
    owner: String,
    title: String,
    tools: String,
    calls: i64,
    waiting_since: i64,
    expires_at: Option<i64>,
    at: i64,
    pub(super) attempts: i64,
}

impl Row {
    /// The first six arguments of a statement about this row.
    pub(super) fn key(&self) -> Vec<Arg> {
        args![
            self.tenant.as_str(),
            self.target.as_str(),
            self.event.as_str(),
            self.session.as_str(),
            self.turn,
            self.iteration
        ]
    }

    /// Converts the row to a notification that was just claimed.
    pub(super) fn into_due(self) -> Result<DueNotification, Error> {
        let target = if self.is_mail {
            NotificationTarget::Mail(user_id(self.target)?)
        } else {
            let id = WebhookId::parse(&self.target);
            let id = id.ok_or_else(|| Error::corrupt("webhook id", self.target))?;
            NotificationTarget::Webhook(id)
        };
        let event = NotificationEvent::parse(&self.event);
        Ok(DueNotification {
            key: NotificationKey {
                session: SessionKey {
                    tenant: tenant_id(self.tenant)?,
                    session: session_id(self.session)?,
                },
                request: request_id(self.turn, self.iteration),
                event: event.ok_or_else(|| Error::corrupt("event", self.event))?,
                target,
            },
            owner: user_id(self.owner)?,
            title: self.title,
            tools: from_json("tools of a batch", &self.tools)?,
            calls: u64::try_from(self.calls).unwrap_or(0),
            waiting_since: Timestamp(self.waiting_since),
            expires_at: self.expires_at.map(Timestamp),
            at: Timestamp(self.at),
            attempt: u32::try_from(self.attempts.saturating_add(1)).unwrap_or(u32::MAX),
        })
    }
}
