//! Invitations: links by which new people enter a tenant, each once.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::role_of;
use crate::config::AuthMode;
use crate::domain::{Caller, Code, Role, Timestamp};
use crate::gateway::GatewayState;
use crate::gateway::api_router::{ApiRouter, routes};
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, Query};
use crate::gateway::http::auth::{Me, WithCookie, enter};
use crate::gateway::paging::PageQuery;
use crate::gateway::word_list;
use crate::store::records::Invitation;
use crate::tenancy::{CreatedInvitation, NewInvitation};

/// The life of an invitation for which no other was asked, in days.
const USUAL_DAYS: u32 = 7;

/// An invitation into the caller's tenant.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct InvitationItem {
    /// The invitation's id.
    id: String,
    /// The role that the new person gets.
    #[schema(value_type = word_list::UserRole)]
    role: &'static str,
    /// For whom it is meant, in the words of who invites; may be empty.
    note: String,
    /// The id of the person who invites; `null` if it was the operator.
    invited_by: Option<String>,
    /// When the invitation was made (RFC 3339).
    created_at: String,
    /// From when on nobody can use it any more (RFC 3339).
    expires_at: String,
    /// The id of the person who came by it; `null` if nobody has yet.
    used_by: Option<String>,
    /// When that person came (RFC 3339); `null` if nobody has yet.
    used_at: Option<String>,
}

/// The invitations into the caller's tenant.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct InvitationList {
    /// The invitations, newest first: open ones, and those of the last month that were used or have expired.
    items: Vec<InvitationItem>,
    /// The cursor of the next page; `null` if there is none.
    next_cursor: Option<String>,
}

/// An invitation to make.
#[derive(Deserialize, ToSchema)]
struct InviteRequest {
    /// The role that the new person gets; `member` if absent.
    #[schema(value_type = Option<word_list::UserRole>)]
    role: Option<String>,
    /// For whom it is meant, as a reminder for admins.
    #[schema(max_length = 64)]
    note: Option<String>,
    /// The life of the invitation in days; 7 if absent.
    #[schema(minimum = 1, maximum = 30)]
    days: Option<u32>,
}

/// A new invitation with its link.
#[derive(Serialize, ToSchema)]
struct InviteResponse {
    /// The new invitation.
    invitation: InvitationItem,
    /// The link that lets one person in. No other response contains it.
    link: String,
}

/// An invitation's secret.
#[derive(Deserialize, ToSchema)]
pub(in crate::gateway::http) struct ReadInvitationRequest {
    /// The part of the link after `#`.
    #[schema(value_type = String, required)]
    #[serde(default)]
    secret: SecretString,
}

/// The facts of an invitation that its holder is shown.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct InvitationFacts {
    /// The name of the tenant.
    tenant: String,
    /// The role that the new person gets.
    #[schema(value_type = word_list::UserRole)]
    role: &'static str,
    /// The name of the person who invites; `null` if it was the operator.
    invited_by: Option<String>,
    /// From when on nobody can use it any more (RFC 3339).
    expires_at: String,
}

/// The person who comes by an invitation.
#[derive(Deserialize, ToSchema)]
pub(in crate::gateway::http) struct AcceptInvitationRequest {
    /// The part of the link after `#`.
    #[schema(value_type = String, required)]
    #[serde(default)]
    secret: SecretString,
    /// The person's sign-in name.
    #[serde(default)]
    #[schema(required, min_length = 1, max_length = 64)]
    name: String,
    /// The person's password.
    #[schema(value_type = String, required, min_length = 10, max_length = 1024)]
    #[serde(default)]
    password: SecretString,
}

impl From<Invitation> for InvitationItem {
    fn from(invitation: Invitation) -> Self {
        let (used_by, used_at) = invitation.used.unzip();
        Self {
            id: invitation.id,
            role: invitation.role.as_str(),
            note: invitation.note,
            invited_by: invitation.invited_by.map(|id| id.to_string()),
            created_at: invitation.created_at.to_rfc3339(),
            expires_at: invitation.expires_at.to_rfc3339(),
            used_by: used_by.map(|id| id.to_string()),
            used_at: used_at.map(Timestamp::to_rfc3339),
        }
    }
}

pub(super) fn routes() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(list_invitations, invite_person))
        .routes(routes!(withdraw_invitation))
}

/// Lists the invitations into the caller's tenant, without their links. Only for admins.
#[utoipa::path(get, path = "/api/invitations", tag = "people", params(PageQuery), responses(
    (status = 200, body = InvitationList), (status = 403, body = Problem),
))]
async fn list_invitations(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Json<InvitationList>, ApiError> {
    let invitations = state.tenancy.people(&caller).invitations().await?;
    let items = invitations.into_iter().map(InvitationItem::from).collect();
    let page = query.page(items, |item: &InvitationItem| item.id.clone())?;
    Ok(Json(InvitationList {
        items: page.items,
        next_cursor: page.next_cursor,
    }))
}

/// Invites a person by a link, which works once. Admins invite viewers, approvers and members, owners anybody.
#[utoipa::path(post, path = "/api/invitations", tag = "people", request_body = InviteRequest,
    responses((status = 201, body = InviteResponse), (status = 400, body = Problem),
        (status = 403, body = Problem)))]
async fn invite_person(
    State(state): State<GatewayState>,
    caller: Caller,
    parts: Parts,
    Body(body): Body<InviteRequest>,
) -> Result<(StatusCode, Json<InviteResponse>), ApiError> {
    check_people_sign_in(&state)?;
    let role = body.role.as_deref().map(role_of).transpose()?;
    let new = NewInvitation {
        role: role.unwrap_or(Role::Member),
        note: body.note.unwrap_or_default(),
        days: body.days.unwrap_or(USUAL_DAYS),
    };
    let created = state.tenancy.people(&caller).invite(new).await?;
    let invited = InviteResponse {
        link: link_of(&state, &parts, &created),
        invitation: created.invitation.into(),
    };
    Ok((StatusCode::CREATED, Json(invited)))
}

/// Refuses to invite people into an installation in which nobody signs in.
pub(in crate::gateway::http) fn check_people_sign_in(state: &GatewayState) -> Result<(), ApiError> {
    if state.auth_mode == AuthMode::None {
        let text = "nobody signs in here: set `auth.mode` (SPL_AUTH) to `password` first";
        return Err(ApiError::new(Code::NotAllowed, text));
    }
    Ok(())
}

/// The link of a new invitation, at the address that the request was sent to.
pub(in crate::gateway::http) fn link_of(
    state: &GatewayState,
    parts: &Parts,
    created: &CreatedInvitation,
) -> String {
    let address = state.access.address(parts);
    let base = address.as_ref().map_or("/", |url| url.as_str());
    created.link(base).expose_secret().to_owned()
}

/// Takes back an invitation that nobody has used. Only for admins.
#[utoipa::path(delete, path = "/api/invitations/{id}", tag = "people",
    params(("id" = String, Path)),
    responses((status = 204), (status = 403, body = Problem), (status = 404, body = Problem)))]
async fn withdraw_invitation(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    state.tenancy.people(&caller).withdraw(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns what an invitation says to whoever holds it: into which tenant, and in which role.
#[utoipa::path(post, path = "/api/auth/invitation/read", tag = "auth",
    request_body = ReadInvitationRequest,
    responses((status = 200, body = InvitationFacts), (status = 401, body = Problem)))]
pub(in crate::gateway::http) async fn read_invitation(
    State(state): State<GatewayState>,
    Body(body): Body<ReadInvitationRequest>,
) -> Result<Json<InvitationFacts>, ApiError> {
    let facts = state.tenancy.read_invitation(&body.secret).await?;
    Ok(Json(InvitationFacts {
        tenant: facts.tenant,
        role: facts.role.as_str(),
        invited_by: facts.invited_by,
        expires_at: facts.expires_at.to_rfc3339(),
    }))
}

/// Comes by an invitation: makes the person, and signs them in. The invitation is used up.
#[utoipa::path(post, path = "/api/auth/invitation", tag = "auth",
    request_body = AcceptInvitationRequest,
    responses((status = 200, body = Me), (status = 400, body = Problem),
        (status = 401, body = Problem), (status = 409, body = Problem)))]
pub(in crate::gateway::http) async fn accept_invitation(
    State(state): State<GatewayState>,
    parts: Parts,
    Body(body): Body<AcceptInvitationRequest>,
) -> Result<WithCookie<Json<Me>>, ApiError> {
    let signed_in = state
        .tenancy
        .accept_invitation(&body.secret, &body.name, &body.password)
        .await?;
    enter(&state, &parts, signed_in)
}
