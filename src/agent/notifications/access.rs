//! Shows and changes the webhooks of a tenant, for its admins.

use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use tokio::time::Instant;
use url::Url;

use super::sending::webhook_context;
use super::{Notifications, signature};
use crate::domain::{Caller, Code, Right, WebhookId};
use crate::session::Refusal;
use crate::store;
use crate::store::clock::now;
use crate::store::records::{Address, Attempt, WebhookRow};

/// The most characters of an address.
const MAX_URL: usize = 2_048;

/// The reason webhooks or mail settings are not shown or changed.
#[derive(Debug, thiserror::Error)]
pub enum NotificationError {
    /// The caller may not do this, or a value is invalid.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// A webhook to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWebhook {
    /// `http` or `https`; a private address only if the operator allows it.
    pub url: String,
    /// True if the webhook is also notified when calls no longer wait.
    pub tells_decided: bool,
}

/// The result of a test message to a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    pub attempt: Attempt,
    pub took: Duration,
}

/// The webhooks of the caller's tenant.
pub struct WebhookAccess<'n>(pub(super) &'n Notifications);

impl WebhookAccess<'_> {
    /// Lists the webhooks of the tenant, oldest first.
    pub async fn list(&self, caller: &Caller) -> Result<Vec<WebhookRow>, NotificationError> {
        check_admin(caller)?;
        let webhooks = self.0.0.parts.records.webhooks();
        Ok(webhooks.list(&caller.tenant.id).await?)
    }

    /// Decrypts the address of a webhook, for its admins; `None` if that fails.
    pub fn address(&self, row: &WebhookRow) -> Option<String> {
        let opened = row
            .address
            .open(&self.0.0.parts.sealer, (&row.tenant, &row.id));
        opened
            .inspect_err(|error| {
                tracing::error!(webhook.id = %row.id, %error, "The address of a webhook cannot be opened");
            })
            .ok()
    }

    /// Adds a webhook. Returns its secret, which is never shown again.
    pub async fn add(
        &self,
        caller: &Caller,
        new: NewWebhook,
    ) -> Result<(WebhookRow, SecretString), NotificationError> {
        check_admin(caller)?;
        self.check_address(&new.url).await?;
        let parts = &self.0.0.parts;
        let (tenant, id) = (&caller.tenant.id, WebhookId::from_bits(rand::random()));
        let secret = signature::new_secret();
        let context = webhook_context(tenant, &id);
        let bytes = secret.expose_secret().as_bytes();
        let row = WebhookRow {
            tenant: tenant.clone(),
            sealed: parts.sealer.seal(&context, bytes)?,
            address: Address::seal(&parts.sealer, (tenant, &id), &new.url)?,
            id,
            tells_decided: new.tells_decided,
            created_at: now(),
            last: None,
            failing_since: None,
            disabled_at: None,
        };
        if !parts.records.webhooks().add(&row).await? {
            let text = "there are 10 webhooks already; remove one first";
            return Err(Refusal::new(Code::TooLarge, text).into());
        }
        tracing::info!(tenant.id = %tenant, user.id = %caller.user.id, webhook.id = %row.id, "A webhook was added");
        Ok((row, secret))
    }

    /// Removes a webhook; it gets no further messages.
    pub async fn delete(&self, caller: &Caller, id: &str) -> Result<(), NotificationError> {
        let row = self.find(caller, id).await?;
        let webhooks = self.0.0.parts.records.webhooks();
        if !webhooks.delete(&row.tenant, &row.id).await? {
            return Err(missing().into());
        }
        tracing::info!(tenant.id = %row.tenant, user.id = %caller.user.id, webhook.id = %row.id, "A webhook was removed");
        Ok(())
    }

    /// Sends a webhook an empty test message and stores the result: a disabled webhook is enabled again if it
    /// accepts the message.
    pub async fn test(&self, caller: &Caller, id: &str) -> Result<Trial, NotificationError> {
        let row = self.find(caller, id).await?;
        let _place = self.0.0.trials.try_acquire().map_err(|_| {
            let text = "other webhooks are being tried; try again in a moment";
            Refusal::new(Code::TooManyRequests, text)
        })?;
        let began = Instant::now();
        let body = self.0.0.parts.forms.webhook_trial(now());
        let message = format!("msg_{:032x}", rand::random::<u128>());
        let attempt = self.0.send(&row, &message, &body).await?;
        let webhooks = self.0.0.parts.records.webhooks();
        webhooks.note(&row.tenant, &row.id, &attempt).await?;
        Ok(Trial {
            attempt,
            took: began.elapsed(),
        })
    }

    async fn find(&self, caller: &Caller, id: &str) -> Result<WebhookRow, NotificationError> {
        check_admin(caller)?;
        let id = WebhookId::parse(id).ok_or_else(missing)?;
        let webhooks = self.0.0.parts.records.webhooks();
        let row = webhooks.get(&caller.tenant.id, &id).await?;
        Ok(row.ok_or_else(missing)?)
    }

    /// Checks an address to give early feedback. The check that counts is that of the HTTP client.
    async fn check_address(&self, address: &str) -> Result<(), Refusal> {
        let wrong = |text: &str| Refusal::of_field(Code::InvalidArguments, "url", text);
        if address.len() > MAX_URL {
            return Err(wrong("`url` has at most 2048 characters"));
        }
        let url = Url::parse(address).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = url.ok_or_else(|| wrong("`url` is no http or https address"))?;
        if !url.username().is_empty() || url.password().is_some() {
            let text = "a password in `url` would be shown; messages are signed instead";
            return Err(wrong(text));
        }
        let checked = self.0.0.parts.guard.check(&url).await;
        checked.map_err(|blocked| wrong(&blocked.to_string()))
    }
}

fn check_admin(caller: &Caller) -> Result<(), Refusal> {
    let is_admin = caller.may(Right::ManageWebhooks);
    is_admin.then_some(()).ok_or_else(|| {
        let text = "only owners and admins of the tenant, and people with the right `webhooks.manage`, manage webhooks";
        Refusal::new(Code::NotAllowed, text)
    })
}

fn missing() -> Refusal {
    Refusal::new(Code::NotFound, "there is no such webhook")
}
