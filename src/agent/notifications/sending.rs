//! Sends a claimed notification to its webhook or person, and stores the result.

use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use sha2::{Digest as _, Sha256};
use url::Url;

use super::{BatchNotice, Notifications, signature};
use crate::domain::{TenantId, Timestamp, UserId, WebhookId};
use crate::net::{self, Mail, MailError};
use crate::store::clock::now;
use crate::store::records::{
    Attempt, AttemptOutcome, DueNotification, NotificationTarget, WebhookRow,
};
use crate::store::{Error, sealed};

/// The time limit for a webhook's answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The time limit of a mail relay for one mail.
const MAIL_TIMEOUT: Duration = Duration::from_secs(30);
/// The most mails to one person in an hour: people enter the address themselves, and it need not be their
/// own.
const MAILS_PER_HOUR: u64 = 30;
const HOUR_MS: i64 = 3_600_000;

/// The sealing context of a webhook's secret.
pub(super) fn webhook_context(tenant: &TenantId, id: &WebhookId) -> String {
    format!("webhook/{tenant}/{id}")
}

/// The result of an attempt.
enum SendResult {
    /// The message was delivered.
    Done,
    /// The message was not delivered and will not be: its recipient no longer exists or does not want it, or
    /// it was refused for good.
    Dropped,
    /// The attempt failed, and may work later.
    Failed(String),
}

impl Notifications {
    /// Sends a claimed notification, and stores the result.
    pub(super) async fn attempt(self, due: DueNotification) {
        let sent = match &due.key.target {
            NotificationTarget::Webhook(id) => self.send_webhook(id, &due).await,
            NotificationTarget::Mail(person) => self.send_mail(person, &due).await,
        };
        let sent = sent.unwrap_or_else(|error| SendResult::Failed(error.to_string()));
        let tried = match sent {
            SendResult::Done => AttemptOutcome::Done,
            SendResult::Dropped => AttemptOutcome::Dropped,
            SendResult::Failed(reason) => self.after_failure(&due, &reason),
        };
        let outbox = self.0.parts.records.notifications();
        match outbox.finish(&due, tried, now()).await {
            Ok(true) => {}
            // The session or webhook was deleted meanwhile, or the lease expired.
            Ok(false) => tracing::debug!(
                session.id = %due.key.session.session,
                "Somebody else says how telling what waits went"
            ),
            Err(error) => tracing::warn!(
                session.id = %due.key.session.session, %error,
                "What waits is told once more, because it is not known that it was told"
            ),
        }
    }

    fn after_failure(&self, due: &DueNotification, reason: &str) -> AttemptOutcome {
        let (key, wait) = (&due.key, self.wait(due.attempt));
        let Some(wait) = wait else {
            tracing::warn!(
                tenant.id = %key.session.tenant,
                session.id = %key.session.session,
                attempts = due.attempt,
                reason,
                "Telling what waits is given up"
            );
            return AttemptOutcome::Dropped;
        };
        tracing::info!(
            tenant.id = %key.session.tenant,
            session.id = %key.session.session,
            attempts = due.attempt,
            reason,
            "What waits is told again later"
        );
        let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
        AttemptOutcome::Again(Timestamp(now().0.saturating_add(wait)))
    }

    async fn send_webhook(
        &self,
        id: &WebhookId,
        due: &DueNotification,
    ) -> Result<SendResult, Error> {
        let tenant = &due.key.session.tenant;
        let webhooks = self.0.parts.records.webhooks();
        let row = webhooks.get(tenant, id).await?;
        let Some(row) = row.filter(|row| row.disabled_at.is_none()) else {
            return Ok(SendResult::Dropped);
        };
        let body = self.0.parts.forms.webhook(&self.notice(due).await?);
        let attempt = self.send(&row, &message_id(due), &body).await?;
        webhooks.note(tenant, id, &attempt).await?;
        Ok(attempt.error.map_or(SendResult::Done, SendResult::Failed))
    }

    /// Posts a signed message. Only the status of the answer counts.
    pub(super) async fn send(
        &self,
        webhook: &WebhookRow,
        message: &str,
        body: &str,
    ) -> Result<Attempt, Error> {
        let at = now();
        let whose = (&webhook.tenant, &webhook.id);
        let url = webhook.address.open(&self.0.parts.sealer, whose)?;
        let context = webhook_context(&webhook.tenant, &webhook.id);
        let secret = self.0.parts.sealer.open(&context, &webhook.sealed)?;
        let seconds = at.0.div_euclid(1_000);
        let signed = std::str::from_utf8(&secret)
            .ok()
            .and_then(|secret| signature::sign(secret, message, seconds, body));
        // No other form was ever sealed in this context.
        let signed = signed.ok_or(Error::Sealed(sealed::UnsealError::OtherForm))?;
        let sent = self
            .0
            .parts
            .http
            .post(&url)
            .timeout(TIMEOUT)
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", message)
            .header("webhook-timestamp", seconds)
            .header("webhook-signature", signed)
            .body(body.to_owned())
            .send()
            .await;
        let (status, error) = match sent {
            Ok(answer) if answer.status().is_success() => (Some(answer.status().as_u16()), None),
            Ok(answer) => {
                let status = answer.status().as_u16();
                (Some(status), Some(format!("the answer was {status}")))
            }
            Err(error) => (None, Some(said(&error))),
        };
        Ok(Attempt { at, status, error })
    }

    /// Sends a mail to `person`: the owner of the session, or somebody else who may decide in it.
    async fn send_mail(&self, person: &UserId, due: &DueNotification) -> Result<SendResult, Error> {
        let Some(mailer) = &self.0.parts.mailer else {
            return Ok(SendResult::Dropped);
        };
        let tenant = &due.key.session.tenant;
        let users = self.0.parts.records.users();
        let user = users.find(tenant, person).await?;
        if user.is_none_or(|user| !user.may_enter()) {
            return Ok(SendResult::Dropped);
        }
        let choice = users.mail(tenant, person).await?;
        let Some(to) = choice.address.filter(|_| choice.since.is_some()) else {
            return Ok(SendResult::Dropped);
        };
        let hour = Timestamp(now().0.saturating_sub(HOUR_MS));
        let outbox = self.0.parts.records.notifications();
        if outbox.mails_since((tenant, person), hour).await? >= MAILS_PER_HOUR {
            tracing::info!(tenant.id = %tenant, user.id = %person, "A person had enough mail for this hour");
            return Ok(SendResult::Dropped);
        }
        let text = self.0.parts.forms.mail(&self.notice(due).await?);
        let mail = Mail {
            id: message_id(due),
            to,
            subject: text.subject,
            body: text.body,
        };
        let sent = tokio::time::timeout(MAIL_TIMEOUT, mailer.send(&mail)).await;
        Ok(match sent {
            Ok(Ok(())) => SendResult::Done,
            Ok(Err(error @ MailError::Away(_))) => SendResult::Failed(chain(&error)),
            Ok(Err(error)) => {
                tracing::warn!(tenant.id = %tenant, user.id = %person, error = chain(&error), "A mail is not sent");
                SendResult::Dropped
            }
            Err(_) => SendResult::Failed("the relay did not answer in time".to_owned()),
        })
    }

    fn title(&self, due: &DueNotification) -> Option<String> {
        let is_told = self.0.settings.tells_titles && !due.title.is_empty();
        is_told.then(|| due.title.clone())
    }

    async fn notice(&self, due: &DueNotification) -> Result<BatchNotice, Error> {
        let (key, users) = (&due.key, self.0.parts.records.users());
        let owner = users.find(&key.session.tenant, &due.owner).await?;
        Ok(BatchNotice {
            event: key.event,
            at: due.at,
            session: key.session.clone(),
            title: self.title(due),
            tools: due.tools.clone(),
            calls: due.calls,
            waiting_since: due.waiting_since,
            expires_at: due.expires_at,
            person: owner.map(|owner| owner.user.name).unwrap_or_default(),
            is_for_others: matches!(&key.target, NotificationTarget::Mail(to) if *to != due.owner),
        })
    }
}

/// Derives the id of a message from its event and target, so that each attempt has the same id.
fn message_id(due: &DueNotification) -> String {
    let key = &due.key;
    let target = match &key.target {
        NotificationTarget::Webhook(id) => id.as_str(),
        NotificationTarget::Mail(id) => id.as_str(),
    };
    let words = [
        key.session.tenant.as_str(),
        key.session.session.as_str(),
        &key.request.turn.to_string(),
        &key.request.iteration.to_string(),
        key.event.as_str(),
        target,
    ];
    let hash = Sha256::digest(words.join("/"));
    let hash = hash.get(..16).unwrap_or_default();
    format!("msg_{}", hex::encode(hash))
}

/// Describes a failed request for the admins of a tenant, without its internal causes.
fn said(error: &reqwest::Error) -> String {
    if let Some(blocked) = net::blocked(error) {
        return blocked.to_string();
    }
    if error.is_timeout() {
        return "no answer within 10 seconds".to_owned();
    }
    let host = error.url().and_then(Url::host_str).unwrap_or_default();
    if error.is_connect() {
        format!("`{host}` cannot be reached")
    } else {
        format!("`{host}` gave no answer that can be read")
    }
}

/// Formats an error with its causes, for the log.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(error) = below {
        text = format!("{text}: {error}");
        below = error.source();
    }
    text
}
