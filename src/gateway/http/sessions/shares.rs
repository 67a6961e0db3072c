//! Shares a session: its owner makes, lists and ends shares.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::key_of;
use crate::config::AuthMode;
use crate::domain::{Caller, Code, SessionId, SharedSessionId, Timestamp};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, Query, SessionPath, required};
use crate::gateway::paging::PageQuery;
use crate::gateway::word_list;
use crate::store::records::{Audience, SharedSession};

const DAY_MS: i64 = 86_400_000;
/// The most days after which a share may end by itself.
const MAX_DAYS: u32 = 3_650;

/// The readers of a new share, and its lifetime.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct ShareSessionRequest {
    /// The people who may read the session.
    #[schema(required, nullable = false, value_type = word_list::ShareAudience)]
    audience: Option<String>,
    /// The number of days after which the share ends; if absent, it ends only when somebody ends it.
    #[schema(minimum = 1, maximum = 3650)]
    expires_in_days: Option<u32>,
}

/// A share of a session.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct SharedItem {
    /// The share's id.
    id: String,
    /// The people who may read the session.
    #[schema(value_type = word_list::ShareAudience)]
    audience: &'static str,
    /// The path of the page that shows the share. The path of a link is returned only when the link is
    /// created, and is `null` afterwards.
    path: Option<String>,
    /// The `seq` of the last event that readers see.
    seq: u64,
    /// When the share was created (RFC 3339).
    created_at: String,
    /// When the share ends (RFC 3339); `null` if it does not end by itself.
    expires_at: Option<String>,
}

/// The shares of a session.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct SharedItems {
    /// The shares, newest first, 50 at most.
    items: Vec<SharedItem>,
    /// The cursor of the next page; `null` if there is none.
    next_cursor: Option<String>,
    /// True if the tenant allows links. While it does not, existing links open nothing.
    links_allowed: bool,
}

impl SharedItem {
    fn of(state: &GatewayState, shared: &SharedSession, secret: Option<&str>) -> Self {
        let word = match shared.audience {
            Audience::Tenant => Some(shared.id.as_str()),
            Audience::Link => secret,
        };
        let path = word.map(|word| format!("{}shared/{word}", state.access.base_path()));
        Self {
            path,
            id: shared.id.to_string(),
            audience: shared.audience.as_str(),
            seq: shared.seq,
            created_at: shared.created_at.to_rfc3339(),
            expires_at: shared.expires_at.map(Timestamp::to_rfc3339),
        }
    }
}

/// Shares a session in its current state.
///
/// With `tenant`, whoever is signed in to the tenant may read it; with `link`, whoever has the link, if the
/// tenant allows links.
#[utoipa::path(post, path = "/api/sessions/{id}/shares", tag = "sessions",
    params(("id" = String, Path)), request_body = ShareSessionRequest,
    responses((status = 201, body = SharedItem), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 429, body = Problem)),
)]
pub(in crate::gateway::http) async fn share_session(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    Body(body): Body<ShareSessionRequest>,
) -> Result<(StatusCode, Json<SharedItem>), ApiError> {
    let key = key_of(&caller, session);
    // Checked first: to anybody else the session does not exist, whatever the request and the tenant say.
    state.sessions.admit(&key, &caller).await?;
    let audience = required("audience", body.audience)?;
    let audience = Audience::parse(&audience).ok_or_else(|| {
        let text = "`audience` is `tenant` or `link`";
        ApiError::of_field(Code::InvalidArguments, "audience", text)
    })?;
    let days = body.expires_in_days;
    if days.is_some_and(|days| !(1..=MAX_DAYS).contains(&days)) {
        let text = "`expiresInDays` is 1 to 3650";
        let code = Code::InvalidArguments;
        return Err(ApiError::of_field(code, "expiresInDays", text));
    }
    if audience == Audience::Link && !allows_links(&state, &caller).await? {
        let text = "links are switched off in this tenant; an admin can allow them in the settings";
        return Err(ApiError::of_field(Code::NotAllowed, "audience", text));
    }
    let now = state.tenancy.now();
    let after = days.map(|days| i64::from(days).saturating_mul(DAY_MS));
    let expires_at = after.map(|after| Timestamp(now.0.saturating_add(after)));
    let sharing = state.sessions.sharing();
    let shared = sharing.share(&key, &caller, audience, now, expires_at);
    let (shared, secret) = shared.await?;
    let secret = secret.as_ref().map(ExposeSecret::expose_secret);
    let item = SharedItem::of(&state, &shared, secret);
    Ok((StatusCode::CREATED, Json(item)))
}

/// Lists the shares of a session.
#[utoipa::path(get, path = "/api/sessions/{id}/shares", tag = "sessions",
    params(("id" = String, Path), PageQuery),
    responses((status = 200, body = SharedItems), (status = 404, body = Problem)),
)]
pub(in crate::gateway::http) async fn list_shares(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    Query(query): Query<PageQuery>,
) -> Result<Json<SharedItems>, ApiError> {
    let (key, now) = (key_of(&caller, session), state.tenancy.now());
    let ways = state.sessions.sharing().ways(&key, &caller, now).await?;
    let items = ways.into_iter();
    let items = items.map(|way| SharedItem::of(&state, &way, None));
    let page = query.page(items.collect(), |share: &SharedItem| share.id.clone())?;
    Ok(Json(SharedItems {
        items: page.items,
        next_cursor: page.next_cursor,
        links_allowed: allows_links(&state, &caller).await?,
    }))
}

/// Ends a share of a session at once.
#[utoipa::path(delete, path = "/api/sessions/{id}/shares/{share}", tag = "sessions",
    params(("id" = String, Path), ("share" = String, Path)),
    responses((status = 204), (status = 404, body = Problem)),
)]
pub(in crate::gateway::http) async fn stop_sharing(
    State(state): State<GatewayState>,
    caller: Caller,
    Path((session, share)): Path<(String, String)>,
) -> Result<StatusCode, ApiError> {
    let session = SessionId::parse(&session);
    let session =
        session.ok_or_else(|| ApiError::new(Code::SessionNotFound, "there is no such session"))?;
    let key = key_of(&caller, session);
    state.sessions.admit(&key, &caller).await?;
    let missing = || ApiError::new(Code::NotFound, "the session is not shared in such a way");
    let share = SharedSessionId::parse(&share).ok_or_else(missing)?;
    state.sessions.sharing().stop(&key, &caller, &share).await?;
    state.documents.forget(&share);
    Ok(StatusCode::NO_CONTENT)
}

/// Returns true if the tenant allows links. Without sign-in it never does: nobody outside could be let in.
async fn allows_links(state: &GatewayState, caller: &Caller) -> Result<bool, ApiError> {
    if state.auth_mode == AuthMode::None {
        return Ok(false);
    }
    let administration = state.tenancy.administration();
    Ok(administration.allows_links(&caller.tenant.id).await?)
}
