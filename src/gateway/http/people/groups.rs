//! Administers the groups of a tenant (`/api/groups`).

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::person_id;
use super::roles::NamedItem;
use crate::domain::{AccessKind, Caller, Code};
use crate::gateway::GatewayState;
use crate::gateway::api_router::{ApiRouter, routes};
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, Query, required};
use crate::gateway::paging::PageQuery;
use crate::store::records::{GroupMember, ListedGroup, NamedThing};
use crate::tenancy::{AccessChange, GroupChange, GroupView};

/// A group of the caller's tenant.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct GroupItem {
    /// The id of the group.
    id: String,
    /// The name, unique in the tenant.
    name: String,
    /// What the group is for; may be empty.
    description: String,
    /// The number of members.
    members: u64,
    /// When the group was made (RFC 3339).
    created_at: String,
}

/// The groups of the caller's tenant.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct GroupList {
    /// The groups by name, 500 at most.
    items: Vec<GroupItem>,
    /// The cursor of the next page; `null` if there is none.
    next_cursor: Option<String>,
}

/// A member of a group.
#[derive(Serialize, ToSchema)]
struct MemberItem {
    /// The person's id.
    id: String,
    /// The person's sign-in name.
    name: String,
    /// The OpenID provider whose groups made the person a member at their last sign-in, or `scim` for the
    /// directory; `null` if somebody added them here.
    issuer: Option<String>,
}

/// A group with its members and custom roles.
#[derive(Serialize, ToSchema)]
struct GroupDetails {
    /// The group.
    group: GroupItem,
    /// The members by name.
    members: Vec<MemberItem>,
    /// The custom roles that the members have, by name.
    roles: Vec<NamedItem>,
    /// The models that are open only to members of this and other groups that name them: each a provider, or
    /// `provider/model`.
    models: Vec<String>,
    /// The names of the MCP servers that are open only to members of this and other groups that name them.
    servers: Vec<String>,
}

/// A group to make.
#[derive(Deserialize, ToSchema)]
struct AddGroupRequest {
    /// The name, unique in the tenant.
    #[schema(required, nullable = false, min_length = 1, max_length = 64)]
    name: Option<String>,
    /// What the group is for; empty if absent.
    #[schema(max_length = 500)]
    description: Option<String>,
}

/// A change of a group. Absent members stay as they are.
#[derive(Deserialize, ToSchema)]
struct ChangeGroupRequest {
    /// The new name.
    #[schema(min_length = 1, max_length = 64)]
    name: Option<String>,
    /// The new description.
    #[schema(max_length = 500)]
    description: Option<String>,
    /// The ids of all custom roles that the members have from now on.
    #[schema(max_items = 100)]
    roles: Option<Vec<String>>,
}

/// What a group names from now on. Absent members stay as they are.
#[derive(Deserialize, ToSchema)]
struct GroupAccessRequest {
    /// All models of the group: each a provider, or `provider/model`.
    #[schema(max_items = 200)]
    models: Option<Vec<String>>,
    /// The names of all MCP servers of the group.
    #[schema(max_items = 200)]
    servers: Option<Vec<String>>,
}

impl From<ListedGroup> for GroupItem {
    fn from(listed: ListedGroup) -> Self {
        let group = listed.group;
        Self {
            id: group.id,
            name: group.name,
            description: group.description,
            members: listed.members,
            created_at: group.created_at.to_rfc3339(),
        }
    }
}

impl From<GroupMember> for MemberItem {
    fn from(member: GroupMember) -> Self {
        Self {
            id: member.user.to_string(),
            name: member.name,
            issuer: member.issuer,
        }
    }
}

impl From<GroupView> for GroupDetails {
    fn from(view: GroupView) -> Self {
        let members = view.members.len().try_into().unwrap_or(u64::MAX);
        let named = |kind: AccessKind| {
            let things = view.named.iter().filter(move |thing| thing.kind == kind);
            things.map(|thing| thing.name.clone()).collect()
        };
        let (models, servers) = (named(AccessKind::Model), named(AccessKind::Server));
        Self {
            group: ListedGroup {
                group: view.group,
                members,
            }
            .into(),
            members: view.members.into_iter().map(MemberItem::from).collect(),
            roles: view.roles.iter().map(NamedItem::from).collect(),
            models,
            servers,
        }
    }
}

pub(super) fn routes() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(list_groups, add_group))
        .routes(routes!(read_group, change_group, delete_group))
        .routes(routes!(add_group_member, remove_group_member))
        .routes(routes!(set_group_access))
}

/// Lists the groups of the caller's tenant.
#[utoipa::path(get, path = "/api/groups", tag = "people", params(PageQuery), responses(
    (status = 200, body = GroupList), (status = 403, body = Problem),
))]
async fn list_groups(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Json<GroupList>, ApiError> {
    let groups = state.tenancy.groups(&caller).list().await?;
    let items = groups.into_iter().map(GroupItem::from).collect();
    let page = query.page(items, |group: &GroupItem| group.id.clone())?;
    Ok(Json(GroupList {
        items: page.items,
        next_cursor: page.next_cursor,
    }))
}

/// Makes a group.
#[utoipa::path(post, path = "/api/groups", tag = "people", request_body = AddGroupRequest, responses(
    (status = 201, body = GroupDetails), (status = 400, body = Problem), (status = 403, body = Problem),
    (status = 409, body = Problem),
))]
async fn add_group(
    State(state): State<GatewayState>,
    caller: Caller,
    Body(body): Body<AddGroupRequest>,
) -> Result<(StatusCode, Json<GroupDetails>), ApiError> {
    let name = required("name", body.name)?;
    let description = body.description.unwrap_or_default();
    let groups = state.tenancy.groups(&caller);
    let added = groups.add(&name, &description).await?;
    let found = groups.find(&added.id).await?;
    Ok((StatusCode::CREATED, Json(found.into())))
}

/// Returns a group with its members and custom roles.
#[utoipa::path(get, path = "/api/groups/{id}", tag = "people", params(("id" = String, Path)),
    responses((status = 200, body = GroupDetails), (status = 403, body = Problem),
        (status = 404, body = Problem)))]
async fn read_group(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<GroupDetails>, ApiError> {
    Ok(Json(state.tenancy.groups(&caller).find(&id).await?.into()))
}

/// Changes a group. To change its roles, the caller has to be allowed to give them.
#[utoipa::path(patch, path = "/api/groups/{id}", tag = "people", params(("id" = String, Path)),
    request_body = ChangeGroupRequest,
    responses((status = 200, body = GroupDetails), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)))]
async fn change_group(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    Body(body): Body<ChangeGroupRequest>,
) -> Result<Json<GroupDetails>, ApiError> {
    let groups = state.tenancy.groups(&caller);
    let change = GroupChange {
        name: body.name,
        description: body.description,
        roles: body.roles,
    };
    groups.change(&id, change).await?;
    Ok(Json(groups.find(&id).await?.into()))
}

/// Deletes a group with its rules and budgets. Its members stay in the tenant, and lose the roles of the group.
///
/// Models and servers that no other group names are open to everybody from then on, so the caller needs the rights for
/// all that the group carries.
#[utoipa::path(delete, path = "/api/groups/{id}", tag = "people", params(("id" = String, Path)),
    responses((status = 204), (status = 403, body = Problem), (status = 404, body = Problem)))]
async fn delete_group(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    state.tenancy.groups(&caller).remove(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Makes a person a member of a group, from their next command on.
#[utoipa::path(put, path = "/api/groups/{id}/members/{person}", tag = "people",
    params(("id" = String, Path), ("person" = String, Path)),
    responses((status = 204), (status = 403, body = Problem), (status = 404, body = Problem)))]
async fn add_group_member(
    State(state): State<GatewayState>,
    caller: Caller,
    Path((id, person)): Path<(String, String)>,
) -> Result<StatusCode, ApiError> {
    let groups = state.tenancy.groups(&caller);
    groups.add_member(&id, &person_id(&person)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes a member from a group, from their next command on. One whom an OpenID provider put there comes back
/// with the next sign-in.
#[utoipa::path(delete, path = "/api/groups/{id}/members/{person}", tag = "people",
    params(("id" = String, Path), ("person" = String, Path)),
    responses((status = 204), (status = 403, body = Problem), (status = 404, body = Problem)))]
async fn remove_group_member(
    State(state): State<GatewayState>,
    caller: Caller,
    Path((id, person)): Path<(String, String)>,
) -> Result<StatusCode, ApiError> {
    let groups = state.tenancy.groups(&caller);
    groups.remove_member(&id, &person_id(&person)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Sets the models and MCP servers of a group. What at least one group names is open only to members of those groups;
/// what no group names is open to everybody.
///
/// Counts for sessions from their next step on. Also needs `providers.manage` to change models, and `servers.manage`
/// to change servers.
#[utoipa::path(put, path = "/api/groups/{id}/access", tag = "people", params(("id" = String, Path)),
    request_body = GroupAccessRequest,
    responses((status = 200, body = GroupDetails), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem)))]
async fn set_group_access(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    Body(body): Body<GroupAccessRequest>,
) -> Result<Json<GroupDetails>, ApiError> {
    let groups = state.tenancy.groups(&caller);
    let known = groups.find(&id).await?;
    let change = AccessChange {
        models: body.models,
        servers: body.servers,
    };
    // A name that is mistyped would keep nothing for anybody.
    let (given, _) = known.access_change(change.clone())?;
    check_there(&state, &caller, &given).await?;
    groups.change_access(&id, change).await?;
    Ok(Json(groups.find(&id).await?.into()))
}

/// Refuses the name of a provider or server that the tenant does not have.
async fn check_there(
    state: &GatewayState,
    caller: &Caller,
    given: &[NamedThing],
) -> Result<(), ApiError> {
    let tenant = &caller.tenant.id;
    let wrong = |field, text| ApiError::of_field(Code::InvalidArguments, field, text);
    for NamedThing { kind, name } in given {
        match kind {
            AccessKind::Model => {
                let provider = name.split_once('/').map_or(name.as_str(), |(id, _)| id);
                if state.providers.find(tenant, provider).is_none() {
                    let text = format!("there is no provider `{provider}`");
                    return Err(wrong("models", text));
                }
            }
            AccessKind::Server => {
                let offering = state.servers.offering_for(tenant, None).await?;
                if offering.server(name).is_none() {
                    let text =
                        format!("there is no server `{name}` of the tenant or the installation");
                    return Err(wrong("servers", text));
                }
            }
        }
    }
    Ok(())
}
