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
use crate::gateway::extract::{Body, Query, required};
use crate::gateway::paging::PageQuery;
use crate::store::records::WebhookRow;

/// A webhook of the caller's tenant.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct WebhookItem {
    /// The webhook's id.
    id: String,
    /// The address to which messages are sent.
    url: String,
    /// True if the webhook is also told when calls no longer wait (`approvals.decided`).
    tells_decided: bool,
    /// When the webhook was added (RFC 3339).
    created_at: String,
    /// When a message was last sent (RFC 3339); `null` if never.
    last_at: Option<String>,
    /// The HTTP status of the answer to the last message; `null` if there was no answer or no message.
    last_status: Option<u16>,
    /// The reason the last message failed; `null` if it did not fail.
    last_error: Option<String>,
    /// The time since which every message has failed (RFC 3339); `null` if the last one succeeded.
    failing_since: Option<String>,
    /// When the webhook was disabled, because it failed for three days or answered that it is gone (RFC
    /// 3339); `null` if it is enabled. A disabled webhook gets no messages until a test succeeds.
    disabled_at: Option<String>,
}

/// The webhooks of the caller's tenant.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Webhooks {
    /// The webhooks, oldest first, 10 at most.
    items: Vec<WebhookItem>,
    /// The cursor of the next page; `null` if there is none.
    next_cursor: Option<String>,
}

/// A webhook to add.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AddWebhookRequest {
    /// The `http` or `https` address. A private address is accepted only if the operator allows it.
    #[schema(required, nullable = false, max_length = 2048)]
    url: Option<String>,
    /// True to also tell the webhook when calls no longer wait; false if absent.
    tells_decided: Option<bool>,
}

/// A new webhook with its secret.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AddWebhookResponse {
    /// The new webhook.
    webhook: WebhookItem,
    /// The secret that signs the webhook's messages (`whsec_…`). No other response contains it.
    secret: String,
}

/// The result of a webhook's test.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TestWebhookResponse {
    /// True if the webhook accepted the message.
    ok: bool,
    /// The HTTP status of the answer; `null` if there was none.
    status: Option<u16>,
    /// The reason the message was not accepted; `null` if it was.
    error: Option<String>,
    /// The duration of the test in milliseconds.
    duration_ms: u64,
}

/// The caller's setting for mail about waiting calls.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MailChoice {
    /// True if this installation sends mail at all.
    is_available: bool,
    /// The caller's mail address; `null` if none is set.
    address: Option<String>,
    /// True if the caller gets mail when calls have waited for them for a while.
    is_on: bool,
}

/// The new setting for mail about waiting calls.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PutMailRequest {
    /// One mail address; if absent or empty, the stored address is removed.
    #[schema(max_length = 254)]
    address: Option<String>,
    /// True to get mail, which requires an address; false to get none.
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

/// Lists the webhooks of the caller's tenant, which are told when calls wait. Only for admins.
#[utoipa::path(get, path = "/api/webhooks", tag = "notifications", params(PageQuery),
    responses((status = 200, body = Webhooks), (status = 403, body = Problem)))]
async fn list_webhooks(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Json<Webhooks>, ApiError> {
    let webhooks = state.notifications.webhooks();
    let rows = webhooks.list(&caller).await?.into_iter();
    let items = rows.map(|row| WebhookItem::of(row, &webhooks)).collect();
    let page = query.page(items, |webhook: &WebhookItem| webhook.id.clone())?;
    Ok(Json(Webhooks {
        items: page.items,
        next_cursor: page.next_cursor,
    }))
}

/// Adds a webhook. Only this response contains its secret. Only for admins.
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

/// Removes a webhook, which gets no more messages. Only for admins.
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

/// Sends a webhook a test message without content (`webhook.test`), and returns the result. Only for admins.
///
/// A disabled webhook that accepts the message is enabled again.
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

/// Returns whether the caller gets mail about waiting calls, and the address.
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

/// Sets whether the caller gets mail when calls have waited for them for a while.
///
/// Calls that already wait are not reported.
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
