//! Administers the directory (SCIM) of a tenant: its tokens (`/api/scim-tokens`), and the people and groups of the
//! tenant to which it is linked (`/api/directory`).

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::invitations::check_people_sign_in;
use super::{person_id, role_of};
use crate::domain::{Caller, Role, Timestamp};
use crate::gateway::GatewayState;
use crate::gateway::api_router::{ApiRouter, routes};
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, Query, required};
use crate::gateway::paging::PageQuery;
use crate::gateway::word_list;
use crate::store::records::{DirectoryGroup, DirectoryPerson, ScimToken};
use crate::tenancy::{DirectoryError, NewScimToken};

/// A token by which a directory manages people and groups (SCIM), without its secret.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ScimTokenItem {
    /// The token's id.
    id: String,
    /// The directory that uses it.
    name: String,
    /// The role of people whom the directory makes.
    #[schema(value_type = word_list::UserRole)]
    role: &'static str,
    /// True if a person whom the directory deletes is deleted here for good; otherwise they are disabled.
    deletes: bool,
    /// The id of the person who made it; `null` if it was the operator.
    created_by: Option<String>,
    /// When the token was made (RFC 3339).
    created_at: String,
    /// When the token was last used, to within five minutes (RFC 3339); `null` if never.
    last_used_at: Option<String>,
}

/// The SCIM tokens of the caller's tenant.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ScimTokenList {
    /// The tokens, newest first, 5 at most.
    items: Vec<ScimTokenItem>,
    /// The cursor of the next page; `null` if there is none.
    next_cursor: Option<String>,
    /// The address that the directory needs, such as `https://sepal.example/scim/v2`.
    address: String,
}

/// A SCIM token to make.
#[derive(Deserialize, ToSchema)]
struct AddScimTokenRequest {
    /// The directory that uses it.
    #[schema(max_length = 64)]
    name: Option<String>,
    /// The role of people whom the directory makes, `viewer` or `member`; `member` if absent.
    #[schema(value_type = Option<word_list::UserRole>)]
    role: Option<String>,
    /// True to delete a person here for good when the directory deletes them; they are disabled if absent.
    deletes: Option<bool>,
}

/// A new SCIM token with its secret.
#[derive(Serialize, ToSchema)]
struct AddScimTokenResponse {
    /// The new token.
    token: ScimTokenItem,
    /// The secret (`scim_…`). No other response contains it.
    secret: String,
}

/// A person whom the directory made, or to whom it was linked.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DirectoryPersonItem {
    /// The person's id.
    id: String,
    /// The person's sign-in name here.
    name: String,
    /// The person's name in the directory.
    user_name: String,
    /// The directory's own id of the person; `null` if it gave none.
    external_id: Option<String>,
    /// True if the person was here before the directory.
    linked: bool,
    /// True if the directory deleted the person, and does not see them any more.
    removed: bool,
    /// True if the person may not enter.
    disabled: bool,
    /// When what the directory says of the person last changed (RFC 3339).
    changed_at: String,
}

/// The people of the directory.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DirectoryPersonList {
    /// The people by id.
    items: Vec<DirectoryPersonItem>,
    /// The cursor of the next page; `null` if there is none.
    next_cursor: Option<String>,
}

/// A group that the directory made, or to which it was linked.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DirectoryGroupItem {
    /// The group's id.
    id: String,
    /// The group's name.
    name: String,
    /// The directory's own id of the group; `null` if it gave none.
    external_id: Option<String>,
    /// True if the group was here before the directory.
    linked: bool,
}

/// The groups of the directory.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DirectoryGroupList {
    /// The groups by id.
    items: Vec<DirectoryGroupItem>,
    /// The cursor of the next page; `null` if there is none.
    next_cursor: Option<String>,
}

/// How the directory knows somebody who is here already.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LinkPersonRequest {
    /// The person's name in the directory.
    #[schema(required, nullable = false, min_length = 1, max_length = 255)]
    user_name: Option<String>,
    /// The directory's own id of the person.
    #[schema(max_length = 255)]
    external_id: Option<String>,
}

/// How the directory knows a group that is here already.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LinkGroupRequest {
    /// The directory's own id of the group.
    #[schema(max_length = 255)]
    external_id: Option<String>,
}

impl From<ScimToken> for ScimTokenItem {
    fn from(token: ScimToken) -> Self {
        Self {
            id: token.id,
            name: token.name,
            role: token.role.as_str(),
            deletes: token.deletes,
            created_by: token.created_by.map(|id| id.to_string()),
            created_at: token.created_at.to_rfc3339(),
            last_used_at: token.last_used_at.map(Timestamp::to_rfc3339),
        }
    }
}

impl From<DirectoryPerson> for DirectoryPersonItem {
    fn from(person: DirectoryPerson) -> Self {
        Self {
            id: person.user.id.to_string(),
            name: person.user.name,
            user_name: person.entry.user_name,
            external_id: person.entry.external_id,
            linked: person.is_linked,
            removed: person.is_removed,
            disabled: person.is_disabled,
            changed_at: person.changed_at.to_rfc3339(),
        }
    }
}

impl From<DirectoryGroup> for DirectoryGroupItem {
    fn from(group: DirectoryGroup) -> Self {
        Self {
            id: group.group.id,
            name: group.group.name,
            external_id: group.external_id,
            linked: group.is_linked,
        }
    }
}

impl From<DirectoryError> for ApiError {
    fn from(error: DirectoryError) -> Self {
        match error {
            DirectoryError::Conflict(text) => Self::taken("userName", text.to_owned()),
            DirectoryError::Tenancy(error) => error.into(),
        }
    }
}

pub(super) fn routes() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(list_scim_tokens, add_scim_token))
        .routes(routes!(revoke_scim_token))
        .routes(routes!(list_directory_people))
        .routes(routes!(link_directory_person, unlink_directory_person))
        .routes(routes!(list_directory_groups))
        .routes(routes!(link_directory_group, unlink_directory_group))
}

/// Lists the SCIM tokens of the caller's tenant, without their secrets.
#[utoipa::path(get, path = "/api/scim-tokens", tag = "people", params(PageQuery), responses(
    (status = 200, body = ScimTokenList), (status = 403, body = Problem),
))]
async fn list_scim_tokens(
    State(state): State<GatewayState>,
    caller: Caller,
    parts: Parts,
    Query(query): Query<PageQuery>,
) -> Result<Json<ScimTokenList>, ApiError> {
    let tokens = state.tenancy.directory_settings(&caller).tokens().await?;
    let items = tokens.into_iter().map(ScimTokenItem::from).collect();
    let page = query.page(items, |token: &ScimTokenItem| token.id.clone())?;
    let address = state.access.address(&parts);
    let address = address.as_ref().map_or("/", |url| url.as_str());
    Ok(Json(ScimTokenList {
        items: page.items,
        next_cursor: page.next_cursor,
        address: format!("{}/scim/v2", address.trim_end_matches('/')),
    }))
}

/// Makes a SCIM token for the caller's tenant. Only this response contains its secret. API keys cannot do this.
#[utoipa::path(post, path = "/api/scim-tokens", tag = "people", request_body = AddScimTokenRequest,
    responses((status = 201, body = AddScimTokenResponse), (status = 400, body = Problem),
        (status = 403, body = Problem)))]
async fn add_scim_token(
    State(state): State<GatewayState>,
    caller: Caller,
    Body(body): Body<AddScimTokenRequest>,
) -> Result<(StatusCode, Json<AddScimTokenResponse>), ApiError> {
    check_people_sign_in(&state)?;
    let role = body.role.as_deref().map(role_of).transpose()?;
    let new = NewScimToken {
        name: body.name.unwrap_or_default(),
        role: role.unwrap_or(Role::Member),
        deletes: body.deletes.unwrap_or(false),
    };
    let settings = state.tenancy.directory_settings(&caller);
    let created = settings.add_token(new).await?;
    let added = AddScimTokenResponse {
        token: created.token.into(),
        secret: created.secret.expose_secret().to_owned(),
    };
    Ok((StatusCode::CREATED, Json(added)))
}

/// Revokes a SCIM token. The people and groups of the directory stay.
#[utoipa::path(delete, path = "/api/scim-tokens/{id}", tag = "people", params(("id" = String, Path)),
    responses((status = 204), (status = 403, body = Problem), (status = 404, body = Problem)))]
async fn revoke_scim_token(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    let settings = state.tenancy.directory_settings(&caller);
    settings.revoke_token(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lists the people whom the directory made or to whom it was linked, with those whom it deleted.
#[utoipa::path(get, path = "/api/directory/people", tag = "people", params(PageQuery), responses(
    (status = 200, body = DirectoryPersonList), (status = 403, body = Problem),
))]
async fn list_directory_people(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Json<DirectoryPersonList>, ApiError> {
    let people = state.tenancy.directory_settings(&caller).people().await?;
    let items = people.into_iter().map(DirectoryPersonItem::from).collect();
    let page = query.page(items, |person: &DirectoryPersonItem| person.id.clone())?;
    Ok(Json(DirectoryPersonList {
        items: page.items,
        next_cursor: page.next_cursor,
    }))
}

/// Links the directory to somebody who is here already: from then on it may change and disable them.
#[utoipa::path(put, path = "/api/directory/people/{id}", tag = "people", params(("id" = String, Path)),
    request_body = LinkPersonRequest,
    responses((status = 200, body = DirectoryPersonItem), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)))]
async fn link_directory_person(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    Body(body): Body<LinkPersonRequest>,
) -> Result<Json<DirectoryPersonItem>, ApiError> {
    let id = person_id(&id)?;
    let user_name = required("userName", body.user_name)?;
    let settings = state.tenancy.directory_settings(&caller);
    let linked = settings.link_person(&id, &user_name, body.external_id.as_deref());
    Ok(Json(linked.await?.into()))
}

/// Takes somebody out of the directory. They keep their access, leave the groups in which the directory put them,
/// and it does not see them any more.
#[utoipa::path(delete, path = "/api/directory/people/{id}", tag = "people",
    params(("id" = String, Path)),
    responses((status = 204), (status = 403, body = Problem), (status = 404, body = Problem)))]
async fn unlink_directory_person(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    let settings = state.tenancy.directory_settings(&caller);
    settings.unlink_person(&person_id(&id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lists the groups that the directory made or to which it was linked.
#[utoipa::path(get, path = "/api/directory/groups", tag = "people", params(PageQuery), responses(
    (status = 200, body = DirectoryGroupList), (status = 403, body = Problem),
))]
async fn list_directory_groups(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Json<DirectoryGroupList>, ApiError> {
    let groups = state.tenancy.directory_settings(&caller).groups().await?;
    let items = groups.into_iter().map(DirectoryGroupItem::from).collect();
    let page = query.page(items, |group: &DirectoryGroupItem| group.id.clone())?;
    Ok(Json(DirectoryGroupList {
        items: page.items,
        next_cursor: page.next_cursor,
    }))
}

/// Links the directory to a group that is here already: from then on it may rename and fill it.
#[utoipa::path(put, path = "/api/directory/groups/{id}", tag = "people", params(("id" = String, Path)),
    request_body = LinkGroupRequest,
    responses((status = 200, body = DirectoryGroupItem), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)))]
async fn link_directory_group(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    Body(body): Body<LinkGroupRequest>,
) -> Result<Json<DirectoryGroupItem>, ApiError> {
    let settings = state.tenancy.directory_settings(&caller);
    let linked = settings.link_group(&id, body.external_id.as_deref());
    Ok(Json(linked.await?.into()))
}

/// Takes a group out of the directory. It stays with its members.
#[utoipa::path(delete, path = "/api/directory/groups/{id}", tag = "people",
    params(("id" = String, Path)),
    responses((status = 204), (status = 403, body = Problem), (status = 404, body = Problem)))]
async fn unlink_directory_group(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    let settings = state.tenancy.directory_settings(&caller);
    settings.unlink_group(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}
