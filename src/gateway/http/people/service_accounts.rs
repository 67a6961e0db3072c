//! Service accounts: users for programs, who have keys and no other way in. `/api/people` changes and deletes them.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::keys::{AddKeyRequest, AddKeyResponse, added};
use super::{PersonItem, person_id, role_of};
use crate::domain::{Caller, Right, Role};
use crate::gateway::GatewayState;
use crate::gateway::api_router::{ApiRouter, routes};
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, Query, required};
use crate::gateway::paging::PageQuery;
use crate::gateway::word_list;

/// Service accounts.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ServiceAccountList {
    /// The accounts, by name.
    items: Vec<PersonItem>,
    /// The cursor of the next page; `null` if there is none.
    next_cursor: Option<String>,
}

/// A service account to add.
#[derive(Deserialize, ToSchema)]
struct AddServiceAccountRequest {
    /// The account's name, which no person of the tenant has.
    #[schema(required, nullable = false, min_length = 1, max_length = 64)]
    name: Option<String>,
    /// The account's role, never `owner`; `member` if absent.
    #[schema(value_type = Option<word_list::UserRole>)]
    role: Option<String>,
}

pub(super) fn routes() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(list_service_accounts, add_service_account))
        .routes(routes!(add_service_account_key))
}

/// Lists the service accounts of the caller's tenant. Only for admins.
#[utoipa::path(get, path = "/api/service-accounts", tag = "people", params(PageQuery), responses(
    (status = 200, body = ServiceAccountList), (status = 403, body = Problem),
))]
async fn list_service_accounts(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(part): Query<PageQuery>,
) -> Result<Json<ServiceAccountList>, ApiError> {
    let accounts = state.tenancy.people(&caller).service_accounts().await?;
    let items = accounts.into_iter().map(PersonItem::from).collect();
    let page = part.page(items, |account: &PersonItem| account.id.clone())?;
    Ok(Json(ServiceAccountList {
        items: page.items,
        next_cursor: page.next_cursor,
    }))
}

/// Adds a service account: a user for programs, who signs in with no browser and acts by API keys alone. Admins give
/// it the role of a viewer or member, owners also that of an admin.
#[utoipa::path(post, path = "/api/service-accounts", tag = "people",
    request_body = AddServiceAccountRequest,
    responses((status = 201, body = PersonItem), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 409, body = Problem)))]
async fn add_service_account(
    State(state): State<GatewayState>,
    caller: Caller,
    Body(body): Body<AddServiceAccountRequest>,
) -> Result<(StatusCode, Json<PersonItem>), ApiError> {
    let role = body.role.as_deref().map(role_of).transpose()?;
    let name = required("name", body.name)?;
    let people = state.tenancy.people(&caller);
    let added = people.add_service_account(&name, role.unwrap_or(Role::Member));
    let item = people.find(&added.await?.id).await?.into();
    Ok((StatusCode::CREATED, Json(item)))
}

/// Makes an API key of a service account that the caller administers, and which may do nothing that they may not.
/// Only this response contains its secret. API keys cannot do this.
#[utoipa::path(post, path = "/api/service-accounts/{id}/keys", tag = "people",
    params(("id" = String, Path)), request_body = AddKeyRequest,
    responses((status = 201, body = AddKeyResponse), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem)))]
async fn add_service_account_key(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    Body(body): Body<AddKeyRequest>,
) -> Result<(StatusCode, Json<AddKeyResponse>), ApiError> {
    let id = person_id(&id)?;
    let new = body.into_new()?;
    let people = state.tenancy.people(&caller);
    let created = people.add_service_key(&id, new).await?;
    added(people.keys(caller.may(Right::ManageKeys)).await?, &created)
}
