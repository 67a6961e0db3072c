//! Administers the people of a tenant (`/api/people`), invitations (`/api/invitations`) and keys
//! (`/api/keys`), custom roles and groups, the directory (SCIM), and everybody's own sign-ins and password.

mod archive;
mod directory;
mod groups;
mod hand_over;
pub(super) mod invitations;
mod keys;
mod roles;
mod service_accounts;
mod sign_ins;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::domain::{Caller, Code, Role, Timestamp, UserId};
use crate::gateway::GatewayState;
use crate::gateway::api_router::{ApiRouter, routes};
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, Query, required};
use crate::gateway::paging::PageQuery;
use crate::gateway::word_list;
use crate::store::records::ListedUser;
use crate::tenancy::NewPerson;

/// A person of the caller's tenant, as administrators see them.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "the flags of the wire form")]
struct PersonItem {
    /// The person's id.
    id: String,
    /// The person's sign-in name.
    name: String,
    /// True for a service account, which has keys and no other way in.
    service_account: bool,
    /// The person's role in the tenant.
    #[schema(value_type = word_list::UserRole)]
    role: &'static str,
    /// True if the person also administers the installation.
    installation_admin: bool,
    /// True if the person may not enter.
    disabled: bool,
    /// True if the person can sign in by password.
    has_password: bool,
    /// The number of the person's passkeys.
    passkeys: u64,
    /// True if the person signs in by passkeys and never by their password.
    passkey_only: bool,
    /// The number of the person's sessions.
    sessions: u64,
    /// When the person was added (RFC 3339).
    created_at: String,
    /// When the person was last here with a browser or a key, to within five minutes (RFC 3339); `null` if
    /// never.
    last_seen_at: Option<String>,
}

/// A page of the people of the caller's tenant.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PeoplePage {
    /// The people, in the order that was asked for.
    items: Vec<PersonItem>,
    /// The number of people that fit, on all pages.
    total: usize,
    /// The cursor of the next page; `null` if there is none.
    next_cursor: Option<String>,
}

/// The people to list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct PeopleQuery {
    /// Only people whose names hold this text, in upper or lower case.
    #[param(max_length = 64)]
    search: Option<String>,
    /// Only people with this role.
    #[param(inline, value_type = Option<word_list::UserRole>)]
    role: Option<String>,
    /// `true` for people who may not enter, `false` for those who may; if absent, all.
    disabled: Option<bool>,
    /// `true` for service accounts only, `false` for people who sign in; if absent, all.
    #[serde(rename = "serviceAccount")]
    #[param(rename = "serviceAccount")]
    service_account: Option<bool>,
    /// The order; `name` if absent.
    #[param(inline)]
    sort: Option<PeopleOrder>,
}

/// The order of a list of people.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum PeopleOrder {
    /// By name.
    #[default]
    Name,
    /// The highest role first.
    Role,
    /// By the time of the last use, the newest first.
    LastSeen,
    /// The newest first.
    Created,
}

/// A person to add.
#[derive(Deserialize, ToSchema)]
struct AddPersonRequest {
    /// The person's sign-in name.
    #[schema(required, nullable = false, min_length = 1, max_length = 64)]
    name: Option<String>,
    /// The person's role; `member` if absent.
    #[schema(value_type = Option<word_list::UserRole>)]
    role: Option<String>,
    /// The person's password. Without one they cannot sign in until they get a link from the operator.
    #[schema(value_type = Option<String>, min_length = 10, max_length = 1024)]
    password: Option<SecretString>,
}

/// A change of a person. Absent members stay as they are.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ChangePersonRequest {
    /// The new name, of a service account only: people keep theirs.
    #[schema(min_length = 1, max_length = 64)]
    name: Option<String>,
    /// The new role.
    #[schema(value_type = Option<word_list::UserRole>)]
    role: Option<String>,
    /// True to end the person's access: they are signed out, and their keys are refused. False to restore it.
    disabled: Option<bool>,
}

/// The confirmation of a deletion.
#[derive(Deserialize, ToSchema)]
struct DeletePersonRequest {
    /// The person's sign-in name, typed once more.
    #[schema(required, nullable = false)]
    name: Option<String>,
}

impl From<ListedUser> for PersonItem {
    fn from(listed: ListedUser) -> Self {
        let service_account = listed.record.is_service();
        let user = listed.record.user;
        Self {
            id: user.id.to_string(),
            name: user.name,
            service_account,
            role: user.role.as_str(),
            installation_admin: user.installation_admin,
            disabled: listed.record.is_disabled,
            has_password: listed.record.password_hash.is_some(),
            passkeys: listed.passkeys,
            passkey_only: listed.record.is_passkey_only,
            sessions: listed.sessions,
            created_at: listed.created_at.to_rfc3339(),
            last_seen_at: listed.last_seen_at.map(Timestamp::to_rfc3339),
        }
    }
}

impl PeopleQuery {
    fn fits(&self, listed: &ListedUser, role: Option<Role>) -> bool {
        let user = &listed.record.user;
        let search = self.search.as_deref().unwrap_or_default().to_lowercase();
        let is_named = user.name.to_lowercase().contains(&search);
        let is_disabled = listed.record.is_disabled;
        is_named
            && role.is_none_or(|role| role == user.role)
            && self.disabled.is_none_or(|wanted| wanted == is_disabled)
            && self
                .service_account
                .is_none_or(|wanted| wanted == listed.record.is_service())
    }

    /// Sorts people who are sorted by name.
    fn sort(&self, people: &mut [ListedUser]) {
        use std::cmp::Reverse;
        match self.sort.unwrap_or_default() {
            PeopleOrder::Name => {}
            PeopleOrder::Role => people.sort_by_key(|it| Reverse(it.record.user.role)),
            PeopleOrder::LastSeen => people.sort_by_key(|it| Reverse(it.last_seen_at)),
            PeopleOrder::Created => people.sort_by_key(|it| Reverse(it.created_at)),
        }
    }
}

/// The routes of people, invitations and keys.
pub(super) fn routes() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(list_people, add_person))
        .routes(routes!(change_person, delete_person))
        .routes(routes!(sign_out_person))
        .routes(routes!(reset_passkey_only))
        .merge(invitations::routes())
        .merge(keys::routes())
        .merge(roles::routes())
        .merge(groups::routes())
        .merge(hand_over::routes())
        .merge(archive::routes())
        .merge(service_accounts::routes())
        .merge(directory::routes())
        .merge(sign_ins::routes())
}

/// Lists the people of the caller's tenant. Only for admins.
#[utoipa::path(get, path = "/api/people", tag = "people", params(PeopleQuery, PageQuery), responses(
    (status = 200, body = PeoplePage), (status = 400, body = Problem),
    (status = 403, body = Problem),
))]
async fn list_people(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(query): Query<PeopleQuery>,
    Query(part): Query<PageQuery>,
) -> Result<Json<PeoplePage>, ApiError> {
    let role = query.role.as_deref().map(role_of).transpose()?;
    let mut people = state.tenancy.people(&caller).list().await?;
    people.retain(|listed| query.fits(listed, role));
    query.sort(&mut people);
    let total = people.len();
    let items = people.into_iter().map(PersonItem::from).collect();
    let page = part.page(items, |person: &PersonItem| person.id.clone())?;
    Ok(Json(PeoplePage {
        items: page.items,
        total,
        next_cursor: page.next_cursor,
    }))
}

/// Adds a person to the caller's tenant. Admins add viewers, approvers and members, owners anybody.
#[utoipa::path(post, path = "/api/people", tag = "people", request_body = AddPersonRequest,
    responses((status = 201, body = PersonItem), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 409, body = Problem)))]
async fn add_person(
    State(state): State<GatewayState>,
    caller: Caller,
    Body(body): Body<AddPersonRequest>,
) -> Result<(StatusCode, Json<PersonItem>), ApiError> {
    let role = body.role.as_deref().map(role_of).transpose()?;
    let new = NewPerson {
        name: required("name", body.name)?,
        role: role.unwrap_or(Role::Member),
        installation_admin: false,
        password: body.password,
    };
    let people = state.tenancy.people(&caller);
    let added = people.add(new).await?;
    let item = people.find(&added.id).await?.into();
    Ok((StatusCode::CREATED, Json(item)))
}

/// Changes a person's role, ends or restores their access, or renames a service account. Admins change viewers,
/// approvers and members, owners everybody; a tenant keeps one owner who may enter.
#[utoipa::path(patch, path = "/api/people/{id}", tag = "people", params(("id" = String, Path)),
    request_body = ChangePersonRequest,
    responses((status = 200, body = PersonItem), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem)))]
async fn change_person(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    Body(body): Body<ChangePersonRequest>,
) -> Result<Json<PersonItem>, ApiError> {
    let id = person_id(&id)?;
    let people = state.tenancy.people(&caller);
    if let Some(name) = body.name.as_deref() {
        people.rename(&id, name).await?;
    }
    if let Some(role) = body.role.as_deref() {
        people.set_role(&id, role_of(role)?).await?;
    }
    if let Some(is_disabled) = body.disabled {
        people.set_disabled(&id, is_disabled).await?;
    }
    Ok(Json(people.find(&id).await?.into()))
}

/// Deletes a person for good, within seconds, with their sessions and files, keys, rules, skills and MCP servers. What
/// they used stays counted, without their name. Admins delete viewers, approvers and members, owners everybody; a tenant keeps
/// one owner who may enter.
#[utoipa::path(delete, path = "/api/people/{id}", tag = "people", params(("id" = String, Path)),
    request_body = DeletePersonRequest,
    responses((status = 202), (status = 400, body = Problem), (status = 403, body = Problem),
        (status = 404, body = Problem)))]
async fn delete_person(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    Body(body): Body<DeletePersonRequest>,
) -> Result<StatusCode, ApiError> {
    let id = person_id(&id)?;
    let name = required("name", body.name)?;
    state.tenancy.people(&caller).delete(&id, &name).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Signs a person out of every browser; their keys stay. Admins sign out viewers, approvers and members, owners everybody.
#[utoipa::path(post, path = "/api/people/{id}/sign-out", tag = "people",
    params(("id" = String, Path)),
    responses((status = 204), (status = 403, body = Problem), (status = 404, body = Problem)))]
async fn sign_out_person(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    let id = person_id(&id)?;
    state.tenancy.people(&caller).sign_out(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lets a person sign in by their password again who chose to sign in by passkeys alone. Admins do it for viewers and
/// members, owners for everybody.
#[utoipa::path(delete, path = "/api/people/{id}/passkey-only", tag = "people",
    params(("id" = String, Path)),
    responses((status = 204), (status = 403, body = Problem), (status = 404, body = Problem)))]
async fn reset_passkey_only(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    let id = person_id(&id)?;
    state
        .tenancy
        .people(&caller)
        .reset_passkey_only(&id)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

fn person_id(id: &str) -> Result<UserId, ApiError> {
    let unknown = || ApiError::new(Code::NotFound, "there is no such person");
    UserId::parse(id).ok_or_else(unknown)
}

fn role_of(name: &str) -> Result<Role, ApiError> {
    Role::parse(name).ok_or_else(|| {
        let text = "`role` is `viewer`, `approver`, `member`, `admin` or `owner`";
        ApiError::of_field(Code::InvalidArguments, "role", text)
    })
}
