//! Administers the tenants of the installation (`/api/tenants`). Nothing of their conversations is shown.

use std::cmp::Reverse;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::domain::{Caller, Code, Role, Tenant, TenantId, Timestamp};
use crate::gateway::GatewayState;
use crate::gateway::api_router::{ApiRouter, routes};
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, Query, required};
use crate::gateway::http::people::invitations::{check_people_sign_in, link_of};
use crate::gateway::paging::PageQuery;
use crate::store::records::{ListedTenant, TenantStanding};
use crate::tenancy::{Administration, NewInvitation};

/// The life of the invitation of a tenant's first owner, in days.
const OWNER_DAYS: u32 = 7;

/// A tenant of the installation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TenantItem {
    /// The tenant's id.
    id: String,
    /// The tenant's name, with which its people sign in.
    name: String,
    /// `active`, `suspended` (nobody may enter) or `deleting`.
    state: TenantState,
    /// The number of the tenant's people.
    people: u64,
    /// The number of the tenant's sessions.
    sessions: u64,
    /// When the tenant was made (RFC 3339).
    created_at: String,
    /// When one of the tenant's sessions last changed (RFC 3339); `null` if it has none.
    active_at: Option<String>,
}

/// The state of a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum TenantState {
    /// Its people may enter.
    Active,
    /// Nobody may enter; everything of it stays.
    Suspended,
    /// It is being deleted.
    Deleting,
}

/// The tenants of the installation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TenantList {
    /// The tenants, in the order that was asked for.
    items: Vec<TenantItem>,
    /// The cursor of the next page; `null` if there is none.
    next_cursor: Option<String>,
}

/// The tenants to list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct TenantsQuery {
    /// Only tenants whose names hold this text.
    #[param(max_length = 64)]
    search: Option<String>,
    /// Only tenants in this state.
    #[param(inline)]
    state: Option<TenantState>,
    /// The order; `name` if absent.
    #[param(inline)]
    sort: Option<TenantOrder>,
}

/// The order of a list of tenants.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum TenantOrder {
    /// By name.
    #[default]
    Name,
    /// The most people first.
    People,
    /// The most sessions first.
    Sessions,
    /// By the last change of a session, the newest first.
    Active,
    /// The newest first.
    Created,
}

impl TenantsQuery {
    fn fits(&self, tenant: &TenantItem) -> bool {
        let search = self.search.as_deref().unwrap_or_default().to_lowercase();
        tenant.name.contains(&search) && self.state.is_none_or(|state| state == tenant.state)
    }

    /// Sorts tenants that are sorted by name.
    fn sort(&self, tenants: &mut [TenantItem]) {
        match self.sort.unwrap_or_default() {
            TenantOrder::Name => {}
            TenantOrder::People => tenants.sort_by_key(|it| Reverse(it.people)),
            TenantOrder::Sessions => tenants.sort_by_key(|it| Reverse(it.sessions)),
            // Times in RFC 3339 sort as texts.
            TenantOrder::Active => tenants.sort_by(|a, b| b.active_at.cmp(&a.active_at)),
            TenantOrder::Created => tenants.sort_by(|a, b| b.created_at.cmp(&a.created_at)),
        }
    }
}

/// A tenant to make.
#[derive(Deserialize, ToSchema)]
struct AddTenantRequest {
    /// The tenant's name: `a-z`, `0-9` and `-`.
    #[schema(
        required,
        nullable = false,
        min_length = 1,
        max_length = 64,
        pattern = "^[a-z0-9-]+$"
    )]
    name: Option<String>,
}

/// A new tenant, with the way in for its first owner.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AddTenantResponse {
    /// The new tenant.
    tenant: TenantItem,
    /// The link that lets one person in as owner, for 7 days. No other response contains it.
    owner_link: String,
}

/// A change of a tenant.
#[derive(Deserialize, ToSchema)]
struct ChangeTenantRequest {
    /// True to lock the tenant out: its people's connections and turns end within seconds. False to let them
    /// in again.
    #[schema(required, nullable = false)]
    suspended: Option<bool>,
}

/// The confirmation of a deletion.
#[derive(Deserialize, ToSchema)]
struct DeleteTenantRequest {
    /// The tenant's name, once more.
    #[schema(required, nullable = false)]
    name: Option<String>,
}

impl From<ListedTenant> for TenantItem {
    fn from(listed: ListedTenant) -> Self {
        Self {
            id: listed.tenant.id.to_string(),
            name: listed.tenant.name,
            state: match listed.standing {
                TenantStanding::Active => TenantState::Active,
                TenantStanding::Suspended => TenantState::Suspended,
                TenantStanding::GivenUp => TenantState::Deleting,
            },
            people: listed.people,
            sessions: listed.sessions,
            created_at: listed.created_at.to_rfc3339(),
            active_at: listed.active_at.map(Timestamp::to_rfc3339),
        }
    }
}

/// The routes of tenants.
pub(super) fn routes() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(list_tenants, add_tenant))
        .routes(routes!(change_tenant, delete_tenant))
}

/// Lists the tenants of the installation. Only for its administrators.
#[utoipa::path(get, path = "/api/tenants", tag = "tenants", params(TenantsQuery, PageQuery), responses(
    (status = 200, body = TenantList), (status = 400, body = Problem), (status = 403, body = Problem),
))]
async fn list_tenants(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(query): Query<TenantsQuery>,
    Query(part): Query<PageQuery>,
) -> Result<Json<TenantList>, ApiError> {
    let administration = administration(&state, &caller)?;
    let tenants = administration.tenants_with_use().await?.into_iter();
    let items = tenants.map(TenantItem::from);
    let mut items: Vec<TenantItem> = items.filter(|item| query.fits(item)).collect();
    query.sort(&mut items);
    let page = part.page(items, |tenant: &TenantItem| tenant.id.clone())?;
    Ok(Json(TenantList {
        items: page.items,
        next_cursor: page.next_cursor,
    }))
}

/// Makes a tenant, and a link for its first owner. Only for administrators of the installation.
#[utoipa::path(post, path = "/api/tenants", tag = "tenants", request_body = AddTenantRequest,
    responses((status = 201, body = AddTenantResponse), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 409, body = Problem)))]
async fn add_tenant(
    State(state): State<GatewayState>,
    caller: Caller,
    parts: Parts,
    Body(body): Body<AddTenantRequest>,
) -> Result<(StatusCode, Json<AddTenantResponse>), ApiError> {
    let administration = administration(&state, &caller)?;
    check_people_sign_in(&state)?;
    let name = required("name", body.name)?;
    let tenant = administration.create_tenant(&name).await?;
    let owner = NewInvitation {
        role: Role::Owner,
        note: String::new(),
        days: OWNER_DAYS,
    };
    let by = Some(&caller.user.id);
    let invited = administration.invite(&tenant.id, by, owner).await?;
    let added = AddTenantResponse {
        tenant: find(administration, &tenant.id).await?,
        owner_link: link_of(&state, &parts, &invited),
    };
    Ok((StatusCode::CREATED, Json(added)))
}

/// Suspends a tenant, or lets its people in again. Only for administrators of the installation.
#[utoipa::path(patch, path = "/api/tenants/{id}", tag = "tenants", params(("id" = String, Path)),
    request_body = ChangeTenantRequest,
    responses((status = 200, body = TenantItem), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem)))]
async fn change_tenant(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    Body(body): Body<ChangeTenantRequest>,
) -> Result<Json<TenantItem>, ApiError> {
    let (administration, tenant) = find_for(&state, &caller, &id).await?;
    if required("suspended", body.suspended)? {
        check_is_other(&caller, &tenant)?;
        administration.suspend_tenant(&tenant.id).await?;
    } else {
        administration.resume_tenant(&tenant.id).await?;
    }
    Ok(Json(find(administration, &tenant.id).await?))
}

/// Deletes a tenant with everything of it, for good, within seconds. Only for administrators of the
/// installation.
#[utoipa::path(delete, path = "/api/tenants/{id}", tag = "tenants", params(("id" = String, Path)),
    request_body = DeleteTenantRequest,
    responses((status = 202), (status = 400, body = Problem), (status = 403, body = Problem),
        (status = 404, body = Problem)))]
async fn delete_tenant(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    Body(body): Body<DeleteTenantRequest>,
) -> Result<StatusCode, ApiError> {
    let (administration, tenant) = find_for(&state, &caller, &id).await?;
    check_is_other(&caller, &tenant)?;
    if required("name", body.name)? != tenant.name {
        let text = "`name` is not the tenant's name: nothing was deleted";
        return Err(ApiError::of_field(Code::InvalidArguments, "name", text));
    }
    administration.delete_tenant(&tenant.id).await?;
    Ok(StatusCode::ACCEPTED)
}

fn administration<'s>(
    state: &'s GatewayState,
    caller: &Caller,
) -> Result<Administration<'s>, ApiError> {
    if caller.user.installation_admin {
        return Ok(state.tenancy.administration());
    }
    let text = "only an administrator of the installation may do this";
    Err(ApiError::new(Code::NotAllowed, text))
}

/// Finds a tenant for an administrator of the installation. For everybody else there are no tenants.
async fn find_for<'s>(
    state: &'s GatewayState,
    caller: &Caller,
    id: &str,
) -> Result<(Administration<'s>, Tenant), ApiError> {
    let administration = administration(state, caller).map_err(|_| no_tenant())?;
    let id = TenantId::parse(id).ok_or_else(no_tenant)?;
    let tenant = administration.tenant(&id).await?;
    Ok((administration, tenant))
}

/// Nobody locks themselves out.
fn check_is_other(caller: &Caller, tenant: &Tenant) -> Result<(), ApiError> {
    if caller.tenant.id != tenant.id {
        return Ok(());
    }
    let text = "this is your own tenant: nobody can lock themselves out";
    Err(ApiError::new(Code::NotAllowed, text))
}

async fn find(administration: Administration<'_>, id: &TenantId) -> Result<TenantItem, ApiError> {
    let tenants = administration.tenants_with_use().await?;
    let found = tenants.into_iter().find(|it| it.tenant.id == *id);
    Ok(found.ok_or_else(no_tenant)?.into())
}

fn no_tenant() -> ApiError {
    ApiError::new(Code::NotFound, "there is no such tenant")
}
