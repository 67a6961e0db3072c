//! API keys: the caller's own, and for admins those of the tenant.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::domain::{ApiKeyId, Caller, Code, KeyGrant, KeyScope, KeyScopes, SessionId, Timestamp};
use crate::gateway::GatewayState;
use crate::gateway::api_router::{ApiRouter, routes};
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, Query};
use crate::gateway::http::auth::{servers_of, sessions_of};
use crate::gateway::paging::PageQuery;
use crate::gateway::word_list;
use crate::store::records::ApiKey;
use crate::tenancy::{CreatedKey, NewKey, key_prefix};

/// An API key, without its secret.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct KeyItem {
    /// The key's id.
    id: String,
    /// The beginning of the key, by which people recognise it.
    prefix: String,
    /// The id of the person whose rights the key has.
    person: String,
    /// The purpose of the key; may be empty.
    name: String,
    /// When the key was made (RFC 3339).
    created_at: String,
    /// When the key was last used, to within five minutes (RFC 3339); `null` if never.
    last_used_at: Option<String>,
    /// From when on the key is refused (RFC 3339); `null` if it is valid until it is revoked.
    expires_at: Option<String>,
    /// What the key may do, as far as the person may.
    #[schema(value_type = Vec<word_list::KeyScopeWord>)]
    scopes: Vec<&'static str>,
    /// The ids of the only sessions that exist for the key; `null` if it is not limited to some.
    sessions: Option<Vec<String>>,
    /// The names of the only MCP servers whose tools the key's sessions may use; `null` if it is not limited to
    /// some.
    servers: Option<Vec<String>>,
}

/// API keys.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct KeyList {
    /// The keys, newest first, without those that were revoked.
    items: Vec<KeyItem>,
    /// The cursor of the next page; `null` if there is none.
    next_cursor: Option<String>,
}

/// The keys to list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct KeysQuery {
    /// `true` for the keys of everybody in the tenant, which only admins see; else the caller's own.
    #[serde(default)]
    all: bool,
}

/// A key to make.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AddKeyRequest {
    /// The purpose of the key.
    #[schema(max_length = 64)]
    name: Option<String>,
    /// From when on the key is refused (RFC 3339); if absent, it is valid until it is revoked.
    #[schema(format = "date-time")]
    expires_at: Option<String>,
    /// What the key may do, as far as the person may; if absent, everything that its limits allow.
    #[schema(value_type = Option<Vec<word_list::KeyScopeWord>>, min_items = 1, max_items = 4)]
    scopes: Option<Vec<String>>,
    /// The ids of the only sessions that exist for the key, all of the person. Such a key begins no sessions, and
    /// cannot have `administer`.
    #[schema(min_items = 1, max_items = 20)]
    sessions: Option<Vec<String>>,
    /// The names of the only MCP servers whose tools the key's sessions may use. Such a key acts only in sessions
    /// that were begun with it, or with a key that is limited as much, and cannot have `administer`.
    #[schema(min_items = 1, max_items = 20)]
    servers: Option<Vec<String>>,
}

impl AddKeyRequest {
    pub(super) fn into_new(self) -> Result<NewKey, ApiError> {
        let expires_at = self.expires_at.as_deref().map(time).transpose()?;
        let sessions = self.sessions.map(|ids| {
            let ids = ids.iter().map(|id| session(id));
            ids.collect::<Result<BTreeSet<SessionId>, ApiError>>()
        });
        let servers = self
            .servers
            .map(|names| Arc::new(names.into_iter().collect()));
        let scopes = self.scopes.map(|names| {
            let scopes = names.iter().map(|name| scope(name));
            scopes.collect::<Result<KeyScopes, ApiError>>()
        });
        let grant = KeyGrant::within(scopes.transpose()?, sessions.transpose()?, servers);
        Ok(NewKey {
            name: self.name.unwrap_or_default(),
            expires_at,
            grant,
        })
    }
}

/// A new key with its secret.
#[derive(Serialize, ToSchema)]
pub(super) struct AddKeyResponse {
    /// The new key.
    key: KeyItem,
    /// The secret (`spl_…`). No other response contains it.
    secret: String,
}

impl From<ApiKey> for KeyItem {
    fn from(key: ApiKey) -> Self {
        Self {
            prefix: key_prefix(&key.id),
            id: key.id.to_string(),
            person: key.user.to_string(),
            name: key.name,
            created_at: key.created_at.to_rfc3339(),
            last_used_at: key.last_used_at.map(Timestamp::to_rfc3339),
            expires_at: key.expires_at.map(Timestamp::to_rfc3339),
            scopes: key.grant.scopes.names(),
            sessions: sessions_of(&key.grant),
            servers: servers_of(&key.grant),
        }
    }
}

pub(super) fn routes() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(list_keys, add_key))
        .routes(routes!(revoke_key))
}

/// Lists the caller's API keys, or for admins those of the tenant.
#[utoipa::path(get, path = "/api/keys", tag = "people", params(KeysQuery, PageQuery), responses(
    (status = 200, body = KeyList), (status = 403, body = Problem),
))]
async fn list_keys(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(query): Query<KeysQuery>,
    Query(part): Query<PageQuery>,
) -> Result<Json<KeyList>, ApiError> {
    let keys = state.tenancy.people(&caller).keys(query.all).await?;
    let items = keys.into_iter().map(KeyItem::from).collect();
    let page = part.page(items, |key: &KeyItem| key.id.clone())?;
    Ok(Json(KeyList {
        items: page.items,
        next_cursor: page.next_cursor,
    }))
}

/// Makes an API key with the caller's rights, or fewer. Only this response contains its secret. API keys cannot do
/// this.
#[utoipa::path(post, path = "/api/keys", tag = "people", request_body = AddKeyRequest,
    responses((status = 201, body = AddKeyResponse), (status = 400, body = Problem),
        (status = 403, body = Problem)))]
async fn add_key(
    State(state): State<GatewayState>,
    caller: Caller,
    Body(body): Body<AddKeyRequest>,
) -> Result<(StatusCode, Json<AddKeyResponse>), ApiError> {
    let new = body.into_new()?;
    let people = state.tenancy.people(&caller);
    let created = people.add_key(new).await?;
    added(people.keys(false).await?, &created)
}

/// Answers with a key that was made, and its secret.
pub(super) fn added(
    keys: Vec<ApiKey>,
    created: &CreatedKey,
) -> Result<(StatusCode, Json<AddKeyResponse>), ApiError> {
    let key = keys.into_iter().find(|key| key.id == created.id);
    let key = key.ok_or_else(no_key)?;
    let added = AddKeyResponse {
        key: key.into(),
        secret: created.secret.expose_secret().to_owned(),
    };
    Ok((StatusCode::CREATED, Json(added)))
}

/// Revokes an API key: an own one, or for admins one of somebody whom they administer.
#[utoipa::path(delete, path = "/api/keys/{id}", tag = "people", params(("id" = String, Path)),
    responses((status = 204), (status = 403, body = Problem), (status = 404, body = Problem)))]
async fn revoke_key(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    let id = ApiKeyId::parse(&id).ok_or_else(no_key)?;
    state.tenancy.people(&caller).revoke_key(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn session(id: &str) -> Result<SessionId, ApiError> {
    SessionId::parse(id).ok_or_else(|| {
        let text = "`sessions` are ids of sessions (`ses_…`)";
        ApiError::of_field(Code::InvalidArguments, "sessions", text)
    })
}

fn scope(name: &str) -> Result<KeyScope, ApiError> {
    KeyScope::parse(name).ok_or_else(|| {
        let text = "`scopes` are of `read`, `message`, `decide` and `administer`";
        ApiError::of_field(Code::InvalidArguments, "scopes", text)
    })
}

fn no_key() -> ApiError {
    ApiError::new(Code::NotFound, "there is no such key")
}

fn time(text: &str) -> Result<Timestamp, ApiError> {
    let parsed: Result<jiff::Timestamp, _> = text.parse();
    let at = parsed.map_err(|_| {
        let text = "`expiresAt` is a time such as 2030-01-31T12:00:00Z";
        ApiError::of_field(Code::InvalidArguments, "expiresAt", text)
    })?;
    Ok(Timestamp(at.as_millisecond()))
}
