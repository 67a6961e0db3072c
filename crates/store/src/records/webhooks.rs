//! Stores the webhooks to which tenants want waiting calls announced, and the outcome of the last delivery.

use super::super::audit::{Act, ActName};
use super::super::db::{Arg, Db, Statement, args};
use super::super::{Error, Sealer};
use super::tenant_id;
use sepal_core::domain::{TenantId, Timestamp, WebhookId};

/// The most webhooks of a tenant.
const MOST: i64 = 10;

/// The time after which a webhook is disabled if every attempt has failed: three days.
const GIVE_UP_MS: i64 = 3 * 86_400_000;

/// A stored webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookRow {
    pub tenant: TenantId,
    pub id: WebhookId,
    pub address: Address,
    /// The secret that signs its messages, sealed by [`Sealer`](crate::Sealer).
    pub sealed: String,
    /// True if the webhook is also told when calls no longer wait.
    pub tells_decided: bool,
    pub created_at: Timestamp,
    /// The last attempt; `None` if there was none.
    pub last: Option<Attempt>,
    /// The time since which every attempt has failed; `None` if the last one succeeded.
    pub failing_since: Option<Timestamp>,
    /// The time at which the webhook was disabled, because it failed for too long or is gone.
    pub disabled_at: Option<Timestamp>,
}

/// The address of a webhook. It often contains a key, so it is stored sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Sealed(String),
    /// An unsealed address, as an earlier release wrote it; it is sealed at the next start.
    Plain(String),
}

impl Address {
    /// Seals an address for its webhook.
    pub fn seal(sealer: &Sealer, whose: (&TenantId, &WebhookId), url: &str) -> Result<Self, Error> {
        let text = sealer.seal(&address_context(whose), url.as_bytes())?;
        Ok(Self::Sealed(text))
    }

    /// Returns the address in plain text.
    pub fn open(&self, sealer: &Sealer, whose: (&TenantId, &WebhookId)) -> Result<String, Error> {
        match self {
            Self::Plain(url) => Ok(url.clone()),
            Self::Sealed(text) => {
                let url = sealer.open(&address_context(whose), text)?;
                Ok(String::from_utf8_lossy(&url).into_owned())
            }
        }
    }

    /// The values of the columns `url` and `sealed_url`.
    fn columns(&self) -> (&str, Option<&str>) {
        match self {
            Self::Plain(url) => (url, None),
            Self::Sealed(sealed) => ("", Some(sealed)),
        }
    }
}

fn address_context((tenant, id): (&TenantId, &WebhookId)) -> String {
    format!("webhook/{tenant}/{id}/url")
}

/// The outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub at: Timestamp,
    /// The status of the response; `None` if there was no response.
    pub status: Option<u16>,
    /// The reason for the failure; `None` if the attempt succeeded.
    pub error: Option<String>,
}

impl Attempt {
    /// Returns true if the receiver says that it is gone for good (410), so that the webhook is disabled at
    /// once.
    fn is_gone(&self) -> bool {
        self.status == Some(410)
    }
}

/// Access to the stored webhooks.
pub struct Webhooks<'s> {
    db: &'s Db,
}

impl<'s> Webhooks<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// The webhooks of a tenant, oldest first.
    pub async fn list(&self, tenant: &TenantId) -> Result<Vec<WebhookRow>, Error> {
        let sql = "SELECT * FROM webhooks WHERE tenant = $1 ORDER BY created_at, id";
        let rows: Vec<Row> = self.db.fetch_all(sql, args![tenant.as_str()]).await?;
        rows.into_iter().map(Row::into_row).collect()
    }

    /// The webhook of a tenant with this id.
    pub async fn get(
        &self,
        tenant: &TenantId,
        id: &WebhookId,
    ) -> Result<Option<WebhookRow>, Error> {
        let sql = "SELECT * FROM webhooks WHERE tenant = $1 AND id = $2";
        let values = args![tenant.as_str(), id.as_str()];
        let row: Option<Row> = self.db.fetch_optional(sql, values).await?;
        row.map(Row::into_row).transpose()
    }

    /// Adds a webhook. Returns false if the tenant already has ten.
    pub async fn add(&self, webhook: &WebhookRow) -> Result<bool, Error> {
        let (url, sealed_url) = webhook.address.columns();
        let sql = "INSERT INTO webhooks (tenant, id, url, secret, tells_decided, created_at, \
                   sealed_url) SELECT $1, $2, $3, $4, $5, $6, $8 \
                   WHERE (SELECT COUNT(*) FROM webhooks WHERE tenant = $1) < $7";
        let values = args![
            webhook.tenant.as_str(),
            webhook.id.as_str(),
            url,
            webhook.sealed.as_str(),
            webhook.tells_decided,
            webhook.created_at.0,
            MOST,
            sealed_url
        ];
        let act = Act::new(
            ActName::WebhookAdded,
            &webhook.tenant,
            "webhook",
            webhook.id.as_str(),
        )
        .detail("tellsDecided", webhook.tells_decided);
        Ok(self.db.record(act, sql, values).await? > 0)
    }

    /// Seals the addresses that earlier releases stored unsealed, and returns their number.
    pub(crate) async fn seal_all(&self, sealer: &Sealer) -> Result<usize, Error> {
        let sql = "SELECT * FROM webhooks WHERE sealed_url IS NULL";
        let rows: Vec<Row> = self.db.fetch_all(sql, args![]).await?;
        let count = rows.len();
        for row in rows {
            let url = row.url.clone();
            let row = row.into_row()?;
            let address = Address::seal(sealer, (&row.tenant, &row.id), &url)?;
            let sql = "UPDATE webhooks SET url = '', sealed_url = $3 WHERE tenant = $1 AND id = $2";
            let values = args![row.tenant.as_str(), row.id.as_str(), address.columns().1];
            self.db.keep_up(sql, values).await?;
        }
        Ok(count)
    }

    /// Deletes a webhook and its notifications. Returns false if it does not exist.
    pub async fn delete(&self, tenant: &TenantId, id: &WebhookId) -> Result<bool, Error> {
        let whom = || args![tenant.as_str(), id.as_str()];
        let one = "DELETE FROM webhooks WHERE tenant = $1 AND id = $2";
        let told = "DELETE FROM notifications WHERE tenant = $1 AND target = $2";
        let statements = vec![
            Statement::required(one, whom()).recorded(Act::new(
                ActName::WebhookRemoved,
                tenant,
                "webhook",
                id.as_str(),
            )),
            Statement::new(told, whom()),
        ];
        Ok(self.db.execute_all(statements).await?.is_some())
    }

    /// Records the outcome of an attempt. Disables a webhook that has failed for three days or is gone, and
    /// enables it again after a success.
    pub async fn note(
        &self,
        tenant: &TenantId,
        id: &WebhookId,
        attempt: &Attempt,
    ) -> Result<(), Error> {
        let sql = "UPDATE webhooks SET last_at = $3, last_status = $4, last_error = $5, \
                   failing_since = CASE WHEN $6 THEN COALESCE(failing_since, $3) ELSE NULL END, \
                   disabled_at = CASE WHEN NOT $6 THEN NULL \
                   WHEN $7 OR COALESCE(failing_since, $3) <= $8 THEN COALESCE(disabled_at, $3) \
                   ELSE disabled_at END \
                   WHERE tenant = $1 AND id = $2";
        let values = args![
            tenant.as_str(),
            id.as_str(),
            attempt.at.0,
            Arg::Int(attempt.status.map(i64::from)),
            attempt.error.as_deref(),
            attempt.error.is_some(),
            attempt.is_gone(),
            attempt.at.0.saturating_sub(GIVE_UP_MS)
        ];
        self.db.execute(sql, values).await?;
        Ok(())
    }
}

#[derive(sqlx_macros::FromRow)]
struct Row {
    tenant: String,
    id: String,
    url: String,
    secret: String,
    tells_decided: bool,
    created_at: i64,
    last_at: Option<i64>,
    last_status: Option<i64>,
    last_error: Option<String>,
    failing_since: Option<i64>,
    disabled_at: Option<i64>,
    sealed_url: Option<String>,
}

impl Row {
    fn into_row(self) -> Result<WebhookRow, Error> {
        let status = self.last_status;
        let error = self.last_error;
        Ok(WebhookRow {
            tenant: tenant_id(self.tenant)?,
            id: WebhookId::parse(&self.id).ok_or_else(|| Error::corrupt("webhook id", self.id))?,
            address: match self.sealed_url {
                Some(sealed) => Address::Sealed(sealed),
                None => Address::Plain(self.url),
            },
            sealed: self.secret,
            tells_decided: self.tells_decided,
            created_at: Timestamp(self.created_at),
            last: self.last_at.map(|at| Attempt {
                at: Timestamp(at),
                status: status.and_then(|status| u16::try_from(status).ok()),
                error,
            }),
            failing_since: self.failing_since.map(Timestamp),
            disabled_at: self.disabled_at.map(Timestamp),
        })
    }
}
