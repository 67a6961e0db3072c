//! The caller's own passkeys (`/api/passkeys`), with which they make fresh gestures, and sign-in by them.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::auth::{Me, WithCookie, enter};
use crate::domain::Timestamp;
use crate::gateway::GatewayState;
use crate::gateway::api_router::{ApiRouter, routes};
use crate::gateway::auth::{self, AuthenticatedPage};
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, OptionalBody, Query, required};
use crate::gateway::paging::PageQuery;
use crate::store::records::PasskeyRow;
use crate::tenancy::RelyingParty;

/// A passkey of the caller.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PasskeyItem {
    /// The id of the credential, in base64url.
    id: String,
    /// The name that the caller gave the passkey.
    name: String,
    /// When the passkey was added (RFC 3339).
    created_at: String,
    /// When the passkey was last used (RFC 3339); `null` if never.
    last_used_at: Option<String>,
    /// The host name of the installation for which the passkey was made.
    relying_party: String,
    /// True if browsers offer the passkey at the address of this request.
    usable_here: bool,
}

/// The caller's passkeys.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PasskeyList {
    /// The passkeys, oldest first, 20 at most.
    items: Vec<PasskeyItem>,
    /// The cursor of the next page; `null` if there is none.
    next_cursor: Option<String>,
    /// True if the caller also has a password that counts.
    has_password: bool,
    /// True if the caller signs in by passkeys and never by their password.
    passkey_only: bool,
    /// The host name for which a new passkey would be made; `null` if passkeys do not work at the address of
    /// this request, because it is an IP address.
    relying_party: Option<String>,
}

/// A gesture that allows the change.
#[derive(Deserialize, ToSchema)]
struct ChangePasskeysRequest {
    /// The gesture that `POST /api/gestures` returned for no calls; not needed while the caller has neither a
    /// passkey nor a password.
    #[schema(max_length = 128)]
    gesture: Option<String>,
}

/// The options with which a browser makes or uses a passkey.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ChallengePasskeyResponse {
    /// The options for `navigator.credentials.create`, or `get` to sign in, in the JSON form of WebAuthn.
    #[schema(value_type = Object)]
    public_key: Value,
}

/// A passkey that a browser made.
#[derive(Deserialize, ToSchema)]
struct AddPasskeyRequest {
    /// The name of the new passkey.
    #[schema(required, nullable = false, min_length = 1, max_length = 64)]
    name: Option<String>,
    /// The result of `navigator.credentials.create`, in the JSON form of WebAuthn.
    #[schema(value_type = Object, required)]
    credential: Option<Value>,
}

/// The new name of a passkey.
#[derive(Deserialize, ToSchema)]
struct RenamePasskeyRequest {
    /// The new name.
    #[schema(required, nullable = false, min_length = 1, max_length = 64)]
    name: Option<String>,
}

/// Whether the caller signs in by passkeys alone.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SetPasskeyOnlyRequest {
    /// True if passkeys alone count from now on; false if the password counts again.
    #[schema(required, nullable = false)]
    passkey_only: Option<bool>,
    /// True if the caller confirms that an administrator would let them in by a link. It is needed if they have one
    /// passkey only.
    #[serde(default)]
    recovery_by_link: bool,
    /// The gesture by passkey that `POST /api/gestures` returned for no calls.
    #[schema(max_length = 128)]
    gesture: Option<String>,
}

/// A passkey's answer to the challenge of a sign-in.
#[derive(Deserialize, ToSchema)]
pub(super) struct PasskeySignInRequest {
    /// The result of `navigator.credentials.get`, in the JSON form of WebAuthn.
    #[schema(value_type = Object, required)]
    credential: Option<Value>,
}

impl PasskeyItem {
    fn of(row: PasskeyRow, party: Option<&RelyingParty>) -> Self {
        Self {
            usable_here: party.is_some_and(|party| party.id == row.relying_party),
            id: row.id,
            name: row.name,
            created_at: row.created_at.to_rfc3339(),
            last_used_at: row.last_used_at.map(Timestamp::to_rfc3339),
            relying_party: row.relying_party,
        }
    }
}

/// The routes of passkeys.
pub(super) fn routes() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(list_passkeys, add_passkey))
        .routes(routes!(challenge_passkey))
        .routes(routes!(rename_passkey, delete_passkey))
        .routes(routes!(set_passkey_only))
        .routes(routes!(ask_passkey))
        .routes(routes!(sign_in_by_passkey))
}

/// Lists the caller's passkeys.
#[utoipa::path(get, path = "/api/passkeys", tag = "gestures", params(PageQuery),
    responses((status = 200, body = PasskeyList)))]
async fn list_passkeys(
    State(state): State<GatewayState>,
    entered: AuthenticatedPage,
    Query(query): Query<PageQuery>,
    parts: Parts,
) -> Result<Json<PasskeyList>, ApiError> {
    let relying = state.access.relying_party(&parts);
    let passkeys = state
        .tenancy
        .passkeys(&entered.authenticated, relying.as_ref());
    let listed = passkeys.list().await?;
    let item = |row| PasskeyItem::of(row, relying.as_ref());
    let items = listed.rows.into_iter().map(item).collect();
    let page = query.page(items, |passkey: &PasskeyItem| passkey.id.clone())?;
    Ok(Json(PasskeyList {
        items: page.items,
        next_cursor: page.next_cursor,
        has_password: listed.has_password,
        passkey_only: listed.is_passkey_only,
        relying_party: relying.as_ref().map(|party| party.id.clone()),
    }))
}

/// Creates a challenge for a new passkey. API keys cannot do this.
#[utoipa::path(post, path = "/api/passkeys/challenge", tag = "gestures",
    request_body = ChangePasskeysRequest,
    responses((status = 200, body = ChallengePasskeyResponse), (status = 403, body = Problem)))]
async fn challenge_passkey(
    State(state): State<GatewayState>,
    entered: AuthenticatedPage,
    parts: Parts,
    Body(body): Body<ChangePasskeysRequest>,
) -> Result<Json<ChallengePasskeyResponse>, ApiError> {
    let relying = state.access.relying_party(&parts);
    let passkeys = state
        .tenancy
        .passkeys(&entered.authenticated, relying.as_ref());
    let public_key = passkeys.challenge(body.gesture.as_deref()).await?;
    Ok(Json(ChallengePasskeyResponse { public_key }))
}

/// Stores the passkey that a browser made. API keys cannot do this.
#[utoipa::path(post, path = "/api/passkeys", tag = "gestures",
    request_body = AddPasskeyRequest,
    responses((status = 201, body = PasskeyItem), (status = 400, body = Problem),
        (status = 403, body = Problem)))]
async fn add_passkey(
    State(state): State<GatewayState>,
    entered: AuthenticatedPage,
    parts: Parts,
    Body(body): Body<AddPasskeyRequest>,
) -> Result<(StatusCode, Json<PasskeyItem>), ApiError> {
    let name = required("name", body.name)?;
    let credential = required("credential", body.credential)?;
    let relying = state.access.relying_party(&parts);
    let passkeys = state
        .tenancy
        .passkeys(&entered.authenticated, relying.as_ref());
    let row = passkeys.add(&name, &credential).await?;
    let item = PasskeyItem::of(row, relying.as_ref());
    Ok((StatusCode::CREATED, Json(item)))
}

/// Renames a passkey of the caller. API keys cannot do this.
#[utoipa::path(patch, path = "/api/passkeys/{id}", tag = "gestures",
    params(("id" = String, Path)), request_body = RenamePasskeyRequest,
    responses((status = 204), (status = 400, body = Problem), (status = 403, body = Problem),
        (status = 404, body = Problem)))]
async fn rename_passkey(
    State(state): State<GatewayState>,
    entered: AuthenticatedPage,
    Path(id): Path<String>,
    Body(body): Body<RenamePasskeyRequest>,
) -> Result<StatusCode, ApiError> {
    let passkeys = state.tenancy.passkeys(&entered.authenticated, None);
    passkeys.check_is_mine(&id).await?;
    let name = required("name", body.name)?;
    passkeys.rename(&id, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes a passkey of the caller, which then makes no more gestures. API keys cannot do this.
#[utoipa::path(delete, path = "/api/passkeys/{id}", tag = "gestures",
    params(("id" = String, Path)), request_body = ChangePasskeysRequest,
    responses((status = 204), (status = 403, body = Problem), (status = 404, body = Problem)))]
async fn delete_passkey(
    State(state): State<GatewayState>,
    entered: AuthenticatedPage,
    Path(id): Path<String>,
    OptionalBody(body): OptionalBody<ChangePasskeysRequest>,
) -> Result<StatusCode, ApiError> {
    let proof = body.and_then(|body| body.gesture);
    let passkeys = state.tenancy.passkeys(&entered.authenticated, None);
    passkeys.remove(&id, proof.as_deref()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Chooses whether the caller signs in by passkeys alone. API keys cannot do this.
#[utoipa::path(put, path = "/api/passkey-only", tag = "gestures",
    request_body = SetPasskeyOnlyRequest,
    responses((status = 204), (status = 400, body = Problem), (status = 403, body = Problem)))]
async fn set_passkey_only(
    State(state): State<GatewayState>,
    entered: AuthenticatedPage,
    parts: Parts,
    Body(body): Body<SetPasskeyOnlyRequest>,
) -> Result<StatusCode, ApiError> {
    let passkey_only = required("passkeyOnly", body.passkey_only)?;
    let relying = state.access.relying_party(&parts);
    let passkeys = state
        .tenancy
        .passkeys(&entered.authenticated, relying.as_ref());
    passkeys
        .set_passkey_only(passkey_only, body.recovery_by_link, body.gesture.as_deref())
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Creates a challenge for a sign-in by a passkey alone: nobody has to be named.
#[utoipa::path(post, path = "/api/auth/passkey/start", tag = "auth", security(()),
    responses((status = 200, body = ChallengePasskeyResponse), (status = 403, body = Problem),
        (status = 429, body = Problem)))]
async fn ask_passkey(
    State(state): State<GatewayState>,
    parts: Parts,
) -> Result<Json<ChallengePasskeyResponse>, ApiError> {
    let relying = state.access.relying_party(&parts);
    let device = auth::visiting_device(&state, &parts);
    let visitor = auth::visitor(&state, &parts, device.as_ref());
    let asked = state.tenancy.ask_passkey(relying.as_ref(), visitor);
    let public_key = asked.await?;
    Ok(Json(ChallengePasskeyResponse { public_key }))
}

/// Signs in by a passkey alone, which verified the person.
///
/// A refusal may carry `reason`: one word for the page.
#[utoipa::path(post, path = "/api/auth/passkey/finish", tag = "auth", security(()),
    request_body = PasskeySignInRequest,
    responses((status = 200, body = Me), (status = 400, body = Problem),
        (status = 401, body = Problem), (status = 403, body = Problem),
        (status = 429, body = Problem)))]
async fn sign_in_by_passkey(
    State(state): State<GatewayState>,
    parts: Parts,
    Body(body): Body<PasskeySignInRequest>,
) -> Result<WithCookie<Json<Me>>, ApiError> {
    let credential = required("credential", body.credential)?;
    let relying = state.access.relying_party(&parts);
    let device = auth::visiting_device(&state, &parts);
    let visitor = auth::visitor(&state, &parts, device.as_ref());
    let signed_in = state
        .tenancy
        .sign_in_by_passkey(relying.as_ref(), &credential, visitor)
        .await?;
    enter(&state, &parts, signed_in)
}
