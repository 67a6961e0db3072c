//! Gives each signature of the audit to the anchors of the settings, again and again until they have it.

use std::path::Path;
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::io::AsyncWriteExt as _;
use url::Url;

use super::sealing::millis;
use super::{Anchor, AuditTrail, lease, seal_text, timestamp};
use crate::agent::notifications::signature;
use crate::domain::Timestamp;
use crate::net::Mail;
use crate::store::Error;
use crate::store::clock::now;
use crate::store::records::DueAnchor;
use crate::telemetry::metrics::instruments;

/// The time that an anchor has to answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The longest wait before an anchor is tried again.
const LONGEST: Duration = Duration::from_hours(1);

impl AuditTrail {
    /// Gives the anchors what they do not have yet, unless another gateway does. Failures are logged and tried again.
    pub async fn anchor(&self) {
        if self.0.settings.anchors.is_empty() {
            return;
        }
        // What an anchor lacks that the settings no longer name waits for them to name it again.
        let give = async |anchor: &Anchor| {
            let given = self.alone(lease::of_anchor(anchor), self.catch_up(anchor));
            if let Err(error) = Box::pin(given).await {
                tracing::warn!(%error, "The audit is anchored later");
            }
        };
        futures::future::join_all(self.0.settings.anchors.iter().map(give)).await;
        if let Err(error) = self.measure_lag().await {
            tracing::warn!(%error, "The age of signatures without anchor is not known");
        }
    }

    /// Measures how old the oldest signature is that each anchor has not got.
    async fn measure_lag(&self) -> Result<(), Error> {
        let oldest = self.0.parts.records.audit().oldest_unanchored().await?;
        let at = now();
        for anchor in &self.0.settings.anchors {
            let mut of_anchor = oldest.iter().filter(|(name, _)| name == anchor.name());
            let age = of_anchor.next().map_or(0, |(_, since)| at.0 - since.0);
            let age = Duration::from_millis(u64::try_from(age).unwrap_or(0));
            instruments().audit_anchor_lag(anchor.name(), age);
        }
        Ok(())
    }

    /// Gives an anchor what it does not have yet, until the first failure.
    async fn catch_up(&self, anchor: &Anchor) {
        let audit = self.0.parts.records.audit();
        let due = match audit.due_anchors(anchor.name(), now()).await {
            Ok(due) => due,
            Err(error) => {
                tracing::warn!(%error, "The audit is anchored later");
                return;
            }
        };
        for due in due {
            if !self.try_anchor(anchor, &due).await {
                return;
            }
        }
    }

    /// Gives a signature to an anchor, and keeps what came of it. Returns true if the anchor took it.
    async fn try_anchor(&self, anchor: &Anchor, due: &DueAnchor) -> bool {
        let given = self.give(anchor, due).await;
        let outcome = match &given {
            Ok(receipt) => Ok(receipt.as_deref()),
            Err(reason) => {
                instruments().audit_undelivered(anchor.name());
                tracing::warn!(
                    anchor = due.anchor,
                    attempts = due.attempts + 1,
                    reason,
                    "An anchor of the audit did not take a signature"
                );
                Err((reason.as_str(), self.next_attempt(due.attempts)))
            }
        };
        let audit = self.0.parts.records.audit();
        if let Err(error) = audit.anchored(due, outcome, now()).await {
            tracing::warn!(%error, "A signature of the audit is anchored once more");
        }
        given.is_ok()
    }

    fn next_attempt(&self, attempts: i64) -> Timestamp {
        let doubled = u32::try_from(attempts).unwrap_or(u32::MAX).min(16);
        let wait = self.0.settings.first_retry.saturating_mul(1 << doubled);
        Timestamp(now().0.saturating_add(millis(wait.min(LONGEST))))
    }

    /// Gives a signature to an anchor, and returns its receipt, if it gives one.
    async fn give(&self, anchor: &Anchor, due: &DueAnchor) -> Result<Option<String>, String> {
        let text = seal_text(&due.chain, &due.seal);
        match anchor {
            Anchor::File(path) => append(path, &text).await.map_err(|it| it.to_string())?,
            Anchor::Webhook(url, secret) => {
                let id = format!("seal_{}_{}", due.chain.as_str(), due.seal.n);
                let message = Posted {
                    id,
                    body: text,
                    kind: "application/json",
                };
                self.post(url, secret.as_ref(), message).await?;
            }
            Anchor::Mail(to) => self.mail(to, due, text).await?,
            Anchor::Timestamp(url) => {
                let token = timestamp::stamp(&self.0.parts.http, url, text.as_bytes()).await;
                return token.map(Some).map_err(|error| error.to_string());
            }
        }
        Ok(None)
    }

    /// Posts a message, signed as other webhooks are.
    pub(super) async fn post(
        &self,
        url: &Url,
        secret: Option<&SecretString>,
        message: Posted,
    ) -> Result<(), String> {
        let seconds = now().0.div_euclid(1_000);
        let mut request = self
            .0
            .parts
            .http
            .post(url.clone())
            .timeout(TIMEOUT)
            .header(CONTENT_TYPE, message.kind)
            .header("webhook-id", &message.id)
            .header("webhook-timestamp", seconds);
        if let Some(secret) = secret {
            let signed =
                signature::sign(secret.expose_secret(), &message.id, seconds, &message.body);
            let signed = signed.ok_or("the secret of the webhook is not `whsec_` and Base64")?;
            request = request.header("webhook-signature", signed);
        }
        let answer = request.body(message.body).send().await;
        match answer {
            Ok(answer) if answer.status().is_success() => Ok(()),
            Ok(answer) => Err(format!("the answer was {}", answer.status().as_u16())),
            Err(error) => Err(crate::net::below(&error)),
        }
    }

    async fn mail(&self, to: &str, due: &DueAnchor, text: String) -> Result<(), String> {
        let Some(mailer) = &self.0.parts.mailer else {
            return Err("there is no relay for mail (`notifications.smtp.url`)".to_owned());
        };
        let chain = due.chain.as_str();
        let mail = Mail {
            id: format!("seal_{chain}_{}", due.seal.n),
            to: to.to_owned(),
            subject: format!("Sepal signed its audit: {chain}, record {}", due.seal.n),
            body: format!("{text}\n"),
        };
        match tokio::time::timeout(TIMEOUT, mailer.send(&mail)).await {
            Ok(sent) => sent.map_err(|error| error.to_string()),
            Err(_) => Err("the relay did not answer in time".to_owned()),
        }
    }
}

/// A message that is posted.
pub(super) struct Posted {
    /// The same for each attempt.
    pub(super) id: String,
    pub(super) body: String,
    /// The content type.
    pub(super) kind: &'static str,
}

/// Appends a line to a file, and waits until the disk has it.
async fn append(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = tokio::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .await?;
    file.write_all(format!("{text}\n").as_bytes()).await?;
    file.sync_all().await
}
