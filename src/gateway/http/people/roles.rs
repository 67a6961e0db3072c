//! Administers the custom roles of a tenant (`/api/roles`), and who has them (`/api/people/{id}/roles`).

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::person_id;
use crate::domain::{Caller, Code, Right, Rights, Role};
use crate::gateway::GatewayState;
use crate::gateway::api_router::{ApiRouter, routes};
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, Query, required};
use crate::gateway::paging::PageQuery;
use crate::gateway::word_list;
use crate::store::records::{CustomRole, ListedRole};
use crate::tenancy::{RoleDraft, RolesOfPerson};

/// A custom role of the caller's tenant.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RoleItem {
    /// The id of the role.
    id: String,
    /// The name, unique in the tenant.
    name: String,
    /// What the role is for; may be empty.
    description: String,
    /// The rights that the role gives.
    #[schema(value_type = Vec<word_list::UserRight>)]
    rights: Vec<&'static str>,
    /// The number of people who were given the role themselves.
    people: u64,
    /// The number of groups whose members have the role.
    groups: u64,
    /// When the role was made (RFC 3339).
    created_at: String,
}

/// A built-in role with its rights.
#[derive(Serialize, ToSchema)]
struct BuiltInRole {
    /// The name of the role.
    #[schema(value_type = word_list::UserRole)]
    name: &'static str,
    /// The rights that the role gives.
    #[schema(value_type = Vec<word_list::UserRight>)]
    rights: Vec<&'static str>,
}

/// The roles of the caller's tenant.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RoleList {
    /// The custom roles by name, 100 at most.
    items: Vec<RoleItem>,
    /// The built-in roles, the lowest first.
    built_in: Vec<BuiltInRole>,
    /// The rights that the caller may give.
    #[schema(value_type = Vec<word_list::UserRight>)]
    giveable: Vec<&'static str>,
    /// The cursor of the next page; `null` if there is none.
    next_cursor: Option<String>,
}

/// A custom role to make.
#[derive(Deserialize, ToSchema)]
struct AddRoleRequest {
    /// The name, unique in the tenant and none of a built-in role.
    #[schema(required, nullable = false, min_length = 1, max_length = 64)]
    name: Option<String>,
    /// What the role is for; empty if absent.
    #[schema(max_length = 500)]
    description: Option<String>,
    /// The rights that the role gives.
    #[schema(required, nullable = false, value_type = Vec<word_list::UserRight>, max_items = 64)]
    rights: Option<Vec<String>>,
}

/// A change of a custom role. Absent members stay as they are.
#[derive(Deserialize, ToSchema)]
struct ChangeRoleRequest {
    /// The new name.
    #[schema(min_length = 1, max_length = 64)]
    name: Option<String>,
    /// The new description.
    #[schema(max_length = 500)]
    description: Option<String>,
    /// All rights that the role gives from now on.
    #[schema(value_type = Option<Vec<word_list::UserRight>>, max_items = 64)]
    rights: Option<Vec<String>>,
}

/// A role or group by its name.
#[derive(Serialize, ToSchema)]
pub(super) struct NamedItem {
    /// The id.
    pub(super) id: String,
    /// The name.
    pub(super) name: String,
}

/// The sources of a person's rights.
#[derive(Serialize, ToSchema)]
struct PersonRoles {
    /// The custom roles that the person was given themselves, by name.
    roles: Vec<NamedItem>,
    /// The groups of the person, by name.
    groups: Vec<NamedItem>,
    /// Every right that the person has, also by their built-in role.
    #[schema(value_type = Vec<word_list::UserRight>)]
    rights: Vec<&'static str>,
}

/// The custom roles of a person.
#[derive(Deserialize, ToSchema)]
struct SetPersonRolesRequest {
    /// The ids of all custom roles that the person has themselves from now on.
    #[schema(required, nullable = false, max_items = 100)]
    roles: Option<Vec<String>>,
}

impl From<ListedRole> for RoleItem {
    fn from(listed: ListedRole) -> Self {
        let role = listed.role;
        Self {
            id: role.id,
            name: role.name,
            description: role.description,
            rights: role.rights.names(),
            people: listed.people,
            groups: listed.groups,
            created_at: role.created_at.to_rfc3339(),
        }
    }
}

impl From<&CustomRole> for NamedItem {
    fn from(role: &CustomRole) -> Self {
        Self {
            id: role.id.clone(),
            name: role.name.clone(),
        }
    }
}

impl From<RolesOfPerson> for PersonRoles {
    fn from(found: RolesOfPerson) -> Self {
        let groups = found.groups.into_iter().map(|group| NamedItem {
            id: group.id,
            name: group.name,
        });
        Self {
            roles: found.roles.iter().map(NamedItem::from).collect(),
            groups: groups.collect(),
            rights: found.rights.names(),
        }
    }
}

pub(super) fn routes() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(list_roles, add_role))
        .routes(routes!(change_role, delete_role))
        .routes(routes!(read_person_roles, set_person_roles))
}

/// Lists the custom roles of the caller's tenant, with the rights of the built-in ones.
#[utoipa::path(get, path = "/api/roles", tag = "people", params(PageQuery), responses(
    (status = 200, body = RoleList), (status = 403, body = Problem),
))]
async fn list_roles(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Json<RoleList>, ApiError> {
    let roles = state.tenancy.roles(&caller).list().await?;
    let items = roles.into_iter().map(RoleItem::from).collect();
    let page = query.page(items, |role: &RoleItem| role.id.clone())?;
    let built_in = Role::ALL.map(|role| BuiltInRole {
        name: role.as_str(),
        rights: role.rights().names(),
    });
    let all: Rights = Right::ALL.iter().copied().collect();
    let giveable = if caller.may(Right::ManageRoles) {
        all.without(caller.may_not_give(all))
    } else {
        Rights::NONE
    };
    Ok(Json(RoleList {
        items: page.items,
        built_in: built_in.into(),
        giveable: giveable.names(),
        next_cursor: page.next_cursor,
    }))
}

/// Makes a custom role. Nobody gives a right that they lack, except owners, who give every right.
#[utoipa::path(post, path = "/api/roles", tag = "people", request_body = AddRoleRequest, responses(
    (status = 201, body = RoleItem), (status = 400, body = Problem), (status = 403, body = Problem),
    (status = 409, body = Problem),
))]
async fn add_role(
    State(state): State<GatewayState>,
    caller: Caller,
    Body(body): Body<AddRoleRequest>,
) -> Result<(StatusCode, Json<RoleItem>), ApiError> {
    let draft = RoleDraft {
        name: required("name", body.name)?,
        description: body.description.unwrap_or_default(),
        rights: rights_of(&required("rights", body.rights)?)?,
    };
    let role = state.tenancy.roles(&caller).add(draft).await?;
    let item = RoleItem::from(ListedRole {
        role,
        people: 0,
        groups: 0,
    });
    Ok((StatusCode::CREATED, Json(item)))
}

/// Changes a custom role, for everybody who has it from their next command on.
#[utoipa::path(patch, path = "/api/roles/{id}", tag = "people", params(("id" = String, Path)),
    request_body = ChangeRoleRequest,
    responses((status = 200, body = RoleItem), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)))]
async fn change_role(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    Body(body): Body<ChangeRoleRequest>,
) -> Result<Json<RoleItem>, ApiError> {
    let roles = state.tenancy.roles(&caller);
    let known = roles.find(&id).await?.role;
    let rights = body.rights.as_deref().map(rights_of).transpose()?;
    let draft = RoleDraft {
        name: body.name.unwrap_or(known.name),
        description: body.description.unwrap_or(known.description),
        rights: rights.unwrap_or(known.rights),
    };
    roles.change(&id, draft).await?;
    Ok(Json(roles.find(&id).await?.into()))
}

/// Takes a custom role from everybody who has it, and deletes it.
#[utoipa::path(delete, path = "/api/roles/{id}", tag = "people", params(("id" = String, Path)),
    responses((status = 204), (status = 403, body = Problem), (status = 404, body = Problem)))]
async fn delete_role(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    state.tenancy.roles(&caller).remove(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the custom roles, groups and rights of a person.
#[utoipa::path(get, path = "/api/people/{id}/roles", tag = "people", params(("id" = String, Path)),
    responses((status = 200, body = PersonRoles), (status = 403, body = Problem),
        (status = 404, body = Problem)))]
async fn read_person_roles(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<PersonRoles>, ApiError> {
    let (id, roles) = (person_id(&id)?, state.tenancy.roles(&caller));
    Ok(Json(roles.of_person(&id).await?.into()))
}

/// Gives a person exactly these custom roles, from their next command on. The roles of their groups stay.
#[utoipa::path(put, path = "/api/people/{id}/roles", tag = "people", params(("id" = String, Path)),
    request_body = SetPersonRolesRequest,
    responses((status = 200, body = PersonRoles), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem)))]
async fn set_person_roles(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    Body(body): Body<SetPersonRolesRequest>,
) -> Result<Json<PersonRoles>, ApiError> {
    let wanted = required("roles", body.roles)?;
    let (id, roles) = (person_id(&id)?, state.tenancy.roles(&caller));
    roles.set_of_person(&id, &wanted).await?;
    // The caller may have taken their own right to see this.
    let administration = state.tenancy.administration();
    let found = administration.roles_of(&caller.tenant.id, &id).await?;
    Ok(Json(found.into()))
}

fn rights_of(names: &[String]) -> Result<Rights, ApiError> {
    let rights = names.iter().map(|name| {
        Right::parse(name).ok_or_else(|| {
            let text = format!("there is no right `{name}`");
            ApiError::of_field(Code::InvalidArguments, "rights", text)
        })
    });
    rights.collect()
}
