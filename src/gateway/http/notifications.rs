//! Configures notifications outside of the page about waiting calls: the webhooks of a tenant
//! (`/api/webhooks`), and a person's own mail (`/api/notifications/mail`).

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::agent::{MailSetting, NewWebhook, WebhookAccess};
use crate::domain::{Caller, Timestamp};
use crate::gateway::GatewayState;
use crate::gateway::api_router::{ApiRouter, routes};
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, required};
use crate::store::records::WebhookRow;

/// A webhook of my tenant.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct WebhookItem {
    id: String,
    url: String,
    /// Whether it is also told when calls wait no longer (`approvals.decided`).
    tells_decided: bool,
    /// When it was added (RFC 3339).
    created_at: String,
    /// When it was last told something (RFC 3339); `null` = never.
    last_at: Option<String>,
    /// The status of its last answer; `null` = it never answered, or not the last time.
    last_status: Option<u16>,
    /// Why the last attempt failed; `null` = it did not.
    last_error: Option<String>,
    /// Since when every attempt has failed (RFC 3339).
    failing_since: Option<String>,
    /// Since when it is told nothing, because it failed for three days or said that it is gone (RFC 3339).
    /// A test that succeeds ends that.
    disabled_at: Option<String>,
}

/// The webhooks of my tenant.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Webhooks {
    /// The oldest first, 10 at most.
    items: Vec<WebhookItem>,
}

/// A webhook to add.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AddWebhookRequest {
    /// `http` or `https`; a private address only where the operator allows it.
    #[schema(required, nullable = false, max_length = 2048)]
    url: Option<String>,
    /// Whether it is also told when calls wait no longer; none = no.
    tells_decided: Option<bool>,
}

/// A new webhook.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AddWebhookResponse {
    webhook: WebhookItem,
    /// What its messages are signed with (`whsec_…`); told here once and never again.
    secret: String,
}

/// How a message went that only tried a webhook.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TestWebhookResponse {
    /// Whether it was taken.
    ok: bool,
    /// The status of the answer; `null` = there was none.
    status: Option<u16>,
    /// Why it was not taken.
    error: Option<String>,
    duration_ms: u64,
}

/// Whether I get mail when calls wait for me.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MailChoice {
    /// Whether this installation sends mail at all.
    is_available: bool,
    /// Where I get mail; `null` = I gave no address.
    address: Option<String>,
    /// Whether I get mail when calls have waited for me for a while.
    is_on: bool,
}

/// Whether I get mail when calls wait for me.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PutMailRequest {
    /// One mail address; none or empty = none.
    #[schema(max_length = 254)]
    address: Option<String>,
    /// Needs an address.
    #[schema(required, nullable = false)]
    is_on: Option<bool>,
}

impl WebhookItem {
    fn of(row: WebhookRow, webhooks: &WebhookAccess<'_>) -> Self {
        let url = webhooks.address(&row).unwrap_or_default();
        let (last_at, last_status, last_error) = match row.last {
            Some(last) => (Some(last.at.to_rfc3339()), last.status, last.error),
            None => (None, None, None),
        };
        Self {
            id: row.id.to_string(),
            url,
            tells_decided: row.tells_decided,
            created_at: row.created_at.to_rfc3339(),
            last_at,
            last_status,
            last_error,
            failing_since: row.failing_since.map(Timestamp::to_rfc3339),
            disabled_at: row.disabled_at.map(Timestamp::to_rfc3339),
        }
    }
}

impl From<MailSetting> for MailChoice {
    fn from(setting: MailSetting) -> Self {
        Self {
            is_available: setting.is_available,
            address: setting.address,
            is_on: setting.is_on,
        }
    }
}

/// The routes of notifications.
pub(super) fn routes() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(list_webhooks, add_webhook))
        .routes(routes!(delete_webhook))
        .routes(routes!(test_webhook))
        .routes(routes!(read_mail, put_mail))
}

/// The webhooks of my tenant, which are told when calls wait. Admins only.
#[utoipa::path(get, path = "/api/webhooks", tag = "notifications",
    responses((status = 200, body = Webhooks), (status = 403, body = Problem)))]
async fn list_webhooks(
    State(state): State<GatewayState>,
    caller: Caller,
) -> Result<Json<Webhooks>, ApiError> {
    let webhooks = state.notifications.webhooks();
    let rows = webhooks.list(&caller).await?.into_iter();
    let items = rows.map(|row| WebhookItem::of(row, &webhooks)).collect();
    Ok(Json(Webhooks { items }))
}

/// Add a webhook. Its secret is in this answer and in no other. Admins only.
#[utoipa::path(post, path = "/api/webhooks", tag = "notifications",
    request_body = AddWebhookRequest,
    responses((status = 201, body = AddWebhookResponse), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 413, body = Problem)))]
async fn add_webhook(
    State(state): State<GatewayState>,
    caller: Caller,
    Body(body): Body<AddWebhookRequest>,
) -> Result<(StatusCode, Json<AddWebhookResponse>), ApiError> {
    let new = NewWebhook {
        url: required("url", body.url)?,
        tells_decided: body.tells_decided.unwrap_or(false),
    };
    let webhooks = state.notifications.webhooks();
    let (row, secret) = webhooks.add(&caller, new).await?;
    let added = AddWebhookResponse {
        webhook: WebhookItem::of(row, &webhooks),
        secret: secret.expose_secret().to_owned(),
    };
    Ok((StatusCode::CREATED, Json(added)))
}

/// Remove a webhook; it is told nothing more. Admins only.
#[utoipa::path(delete, path = "/api/webhooks/{id}", tag = "notifications",
    params(("id" = String, Path)),
    responses((status = 204), (status = 403, body = Problem), (status = 404, body = Problem)))]
async fn delete_webhook(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    state.notifications.webhooks().delete(&caller, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Send a webhook a message that says nothing (`webhook.test`), and say how that went. One that was
/// disabled is told again if it takes the message. Admins only.
#[utoipa::path(post, path = "/api/webhooks/{id}/test", tag = "notifications",
    params(("id" = String, Path)),
    responses((status = 200, body = TestWebhookResponse), (status = 403, body = Problem),
        (status = 404, body = Problem), (status = 429, body = Problem)))]
async fn test_webhook(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<TestWebhookResponse>, ApiError> {
    let trial = state.notifications.webhooks().test(&caller, &id).await?;
    Ok(Json(TestWebhookResponse {
        ok: trial.attempt.error.is_none(),
        status: trial.attempt.status,
        error: trial.attempt.error,
        duration_ms: u64::try_from(trial.took.as_millis()).unwrap_or(u64::MAX),
    }))
}

/// Whether I get mail when calls wait for me, and where.
#[utoipa::path(get, path = "/api/notifications/mail", tag = "notifications",
    responses((status = 200, body = MailChoice)))]
async fn read_mail(
    State(state): State<GatewayState>,
    caller: Caller,
) -> Result<Json<MailChoice>, ApiError> {
    Ok(Json(
        state.notifications.mail_setting(&caller).await?.into(),
    ))
}

/// Get mail when calls have waited for me for a while, or no longer. What waits already is not told.
#[utoipa::path(put, path = "/api/notifications/mail", tag = "notifications",
    request_body = PutMailRequest,
    responses((status = 200, body = MailChoice), (status = 400, body = Problem)))]
async fn put_mail(
    State(state): State<GatewayState>,
    caller: Caller,
    Body(body): Body<PutMailRequest>,
) -> Result<Json<MailChoice>, ApiError> {
    let is_on = required("isOn", body.is_on)?;
    let setting = state
        .notifications
        .set_mail(&caller, body.address, is_on)
        .await?;
    Ok(Json(setting.into()))
}
