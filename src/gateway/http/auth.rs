//! Signs people in and out (`/api/auth`).

use axum::Json;
use axum::extract::State;
use axum::http::header::SET_COOKIE;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{AppendHeaders, IntoResponse as _, Response};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::config::AuthMode;
use crate::domain::{Caller, Code, CredentialId, KeyGrant};
use crate::gateway::GatewayState;
use crate::gateway::auth::{self, AuthenticatedPage};
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::Body;
use crate::gateway::proxy;
use crate::gateway::word_list;
use crate::tenancy::SignedIn;

/// The lifetime of a socket ticket in seconds, as `tenancy` enforces it.
const TICKET_SECONDS: u64 = 60;

/// The Sepal installation.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Installation {
    /// The name that the operator gave the installation.
    pub name: String,
    /// The version of Sepal.
    pub version: String,
}

/// The signed-in user, with the facts that the page needs first.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Me {
    /// The signed-in user.
    user: MyUser,
    /// The user's tenant.
    tenant: MyTenant,
    /// The API key of the request, if there is one.
    key: Option<MyKey>,
    /// The CSRF token. Requests with the session cookie must send it in `X-CSRF-Token`, unless their method
    /// is safe (such as GET). Empty if the caller used no cookie.
    csrf_token: String,
    /// The installation.
    installation: Installation,
    /// The way people sign in: `password`, or `none` if there is no sign-in.
    #[schema(value_type = word_list::SignInMode)]
    auth_mode: &'static str,
    /// True if the browser's connection is encrypted.
    encrypted: bool,
    /// The address to open after signing out, where a proxy signed the person in; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    sign_out_url: Option<String>,
}

impl Me {
    /// Names the address to open after signing out.
    pub(super) fn leaving_to(self, sign_out_url: Option<String>) -> Self {
        Self {
            sign_out_url,
            ..self
        }
    }
}

/// The signed-in user.
#[derive(Serialize, ToSchema)]
struct MyUser {
    /// The user's id.
    id: String,
    /// The user's sign-in name.
    name: String,
    /// The user's role in the tenant.
    #[schema(value_type = word_list::UserRole)]
    role: &'static str,
    /// True if the user also administers the installation.
    #[serde(rename = "installationAdmin")]
    installation_admin: bool,
    /// The user's rights, of their built-in and custom roles.
    #[schema(value_type = Vec<word_list::UserRight>)]
    rights: Vec<&'static str>,
}

/// The API key of a request.
#[derive(Serialize, ToSchema)]
struct MyKey {
    /// The key's id.
    id: String,
    /// What the key may do, as far as the user may.
    #[schema(value_type = Vec<word_list::KeyScopeWord>)]
    scopes: Vec<&'static str>,
    /// The ids of the only sessions that exist for the key; `null` if it is not limited to some.
    sessions: Option<Vec<String>>,
    /// The names of the only MCP servers whose tools the key's sessions may use; `null` if it is not limited to
    /// some.
    servers: Option<Vec<String>>,
}

impl MyKey {
    fn of(caller: &Caller) -> Option<Self> {
        let Some(CredentialId::ApiKey(id)) = &caller.credential else {
            return None;
        };
        let unlimited = KeyGrant::unlimited();
        let grant = caller.grant.as_deref().unwrap_or(&unlimited);
        Some(Self {
            id: id.to_string(),
            scopes: grant.scopes.names(),
            sessions: sessions_of(grant),
            servers: servers_of(grant),
        })
    }
}

/// The signed-in user's tenant.
#[derive(Serialize, ToSchema)]
struct MyTenant {
    /// The tenant's id.
    id: String,
    /// The tenant's name.
    name: String,
}

/// The first owner to create.
#[derive(Deserialize, ToSchema)]
pub(super) struct SetUpRequest {
    /// The secret of the setup link.
    #[schema(value_type = String, required)]
    #[serde(default)]
    secret: SecretString,
    /// The owner's sign-in name.
    #[serde(default)]
    #[schema(
        required,
        min_length = 1,
        max_length = 64,
        pattern = r"^[\p{L}\p{N} ._@+'-]*[\p{L}\p{N}._@+'-][\p{L}\p{N} ._@+'-]*$"
    )]
    name: String,
    /// The owner's password.
    #[schema(value_type = String, required, min_length = 10, max_length = 1024)]
    #[serde(default)]
    password: SecretString,
}

/// The sign-in link to open.
#[derive(Deserialize, ToSchema)]
pub(super) struct OpenLinkRequest {
    /// The secret of the link.
    #[schema(value_type = String, required)]
    #[serde(default)]
    secret: SecretString,
}

/// The name and password to sign in with.
#[derive(Deserialize, ToSchema)]
pub(super) struct SignInRequest {
    /// The user's sign-in name.
    #[serde(default)]
    #[schema(required)]
    name: String,
    /// The user's password.
    #[schema(value_type = String, required)]
    #[serde(default)]
    password: SecretString,
    /// The tenant's name; if absent or empty, the default tenant.
    tenant: Option<String>,
}

/// A ticket that opens one socket.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct IssueTicketResponse {
    /// The ticket, for `ticket` in the query of the socket's handshake. It works once.
    ticket: String,
    /// The lifetime of the ticket in seconds.
    expires_in_seconds: u64,
}

/// A response that sets cookies.
pub(super) type WithCookie<T> = (AppendHeaders<Vec<(HeaderName, HeaderValue)>>, T);

/// Returns the signed-in user.
///
/// The 401 response also carries `installation`, `setupNeeded`, `signInProviders` (each with `id` and `name`) and
/// `proxyAccount` (the account that the sign-in proxy names, or `null`), for the page.
#[utoipa::path(get, path = "/api/auth/me", tag = "auth", responses(
    (status = 200, body = Me), (status = 401, body = Problem),
))]
pub(super) async fn read_me(
    State(state): State<GatewayState>,
    entered: Result<AuthenticatedPage, ApiError>,
    parts: Parts,
) -> Result<Json<Me>, ApiError> {
    match entered {
        Ok(entered) => {
            let sign_out_url = proxy::logout_url(&state, &entered.authenticated);
            let caller = entered.authenticated.caller;
            let me = me(&state, caller, entered.csrf, &parts);
            Ok(Json(me.leaving_to(sign_out_url)))
        }
        Err(refused) if refused.code() == Code::Unauthorized => {
            let needs_setup = state.tenancy.setup().check_needed().await?;
            let named = proxy::account(&state, &parts);
            Err(refused
                .with("installation", json!(*state.installation))
                .with("setupNeeded", json!(needs_setup))
                .with("signInProviders", json!(sign_in_providers(&state)))
                .with("proxyAccount", json!(named.map(|it| it.subject))))
        }
        Err(refused) => Err(refused),
    }
}

/// The OpenID providers, as the sign-in page offers them.
fn sign_in_providers(state: &GatewayState) -> Vec<Value> {
    let doors = state.oidc.iter();
    doors
        .map(|(id, door)| json!({ "id": id, "name": door.name }))
        .collect()
}

/// Creates the first owner, and signs them in.
#[utoipa::path(post, path = "/api/auth/setup", tag = "auth", request_body = SetUpRequest, responses(
    (status = 200, body = Me), (status = 400, body = Problem), (status = 401, body = Problem),
))]
pub(super) async fn set_up(
    State(state): State<GatewayState>,
    parts: Parts,
    Body(body): Body<SetUpRequest>,
) -> Result<WithCookie<Json<Me>>, ApiError> {
    let signed_in = state
        .tenancy
        .setup()
        .complete(&body.secret, &body.name, &body.password)
        .await?;
    enter(&state, &parts, signed_in)
}

/// Signs in by a sign-in link, which works once.
#[utoipa::path(post, path = "/api/auth/link", tag = "auth", request_body = OpenLinkRequest, responses(
    (status = 200, body = Me), (status = 401, body = Problem),
))]
pub(super) async fn open_link(
    State(state): State<GatewayState>,
    parts: Parts,
    Body(body): Body<OpenLinkRequest>,
) -> Result<WithCookie<Json<Me>>, ApiError> {
    let signed_in = state.tenancy.setup().sign_in_by_link(&body.secret).await?;
    enter(&state, &parts, signed_in)
}

/// Signs in by name and password.
#[utoipa::path(post, path = "/api/auth/login", tag = "auth", request_body = SignInRequest, responses(
    (status = 200, body = Me), (status = 401, body = Problem), (status = 429, body = Problem),
))]
pub(super) async fn sign_in(
    State(state): State<GatewayState>,
    parts: Parts,
    Body(body): Body<SignInRequest>,
) -> Result<WithCookie<Json<Me>>, ApiError> {
    let device = auth::visiting_device(&state, &parts);
    let visitor = auth::visitor(&state, &parts, device.as_ref());
    let tenant = body.tenant.as_deref().filter(|tenant| !tenant.is_empty());
    let signed_in = state
        .tenancy
        .sign_in(tenant, &body.name, &body.password, visitor)
        .await?;
    enter(&state, &parts, signed_in)
}

/// Signs out, and closes the browser's sockets.
#[utoipa::path(post, path = "/api/auth/logout", tag = "auth", responses(
    (status = 204), (status = 401, body = Problem), (status = 403, body = Problem),
))]
pub(super) async fn sign_out(
    State(state): State<GatewayState>,
    entered: Result<AuthenticatedPage, ApiError>,
    parts: Parts,
) -> Result<Response, ApiError> {
    let cookie = [(SET_COOKIE, auth::clear_cookie(state.access.peer(&parts))?)];
    match entered {
        Ok(entered) => {
            state.tenancy.sign_out(&entered.authenticated).await?;
            Ok((cookie, StatusCode::NO_CONTENT).into_response())
        }
        // A caller who is signed out already gets the refusal, and loses the useless cookie.
        Err(refused) if refused.code() == Code::Unauthorized => {
            Ok((cookie, refused).into_response())
        }
        Err(refused) => Err(refused),
    }
}

/// Issues a ticket that opens one socket, for clients that can send neither a cookie nor a header.
#[utoipa::path(post, path = "/api/auth/ticket", tag = "auth", responses(
    (status = 200, body = IssueTicketResponse), (status = 401, body = Problem),
))]
pub(super) async fn issue_ticket(
    State(state): State<GatewayState>,
    entered: AuthenticatedPage,
) -> Json<IssueTicketResponse> {
    let ticket = state.tenancy.issue_ticket(&entered.authenticated);
    Json(IssueTicketResponse {
        ticket: ticket.expose_secret().to_owned(),
        expires_in_seconds: TICKET_SECONDS,
    })
}

pub(super) fn enter(
    state: &GatewayState,
    parts: &Parts,
    signed_in: SignedIn,
) -> Result<WithCookie<Json<Me>>, ApiError> {
    let cookies = auth::sign_in_cookies(state, parts, &signed_in)?;
    let me = me(state, signed_in.entered.caller, signed_in.csrf, parts);
    Ok((AppendHeaders(cookies), Json(me)))
}

pub(super) fn me(state: &GatewayState, caller: Caller, csrf_token: String, parts: &Parts) -> Me {
    let rights = caller.rights().names();
    let key = MyKey::of(&caller);
    let Caller { user, tenant, .. } = caller;
    Me {
        user: MyUser {
            id: user.id.to_string(),
            name: user.name,
            role: user.role.as_str(),
            installation_admin: user.installation_admin,
            rights,
        },
        tenant: MyTenant {
            id: tenant.id.to_string(),
            name: tenant.name,
        },
        key,
        csrf_token,
        installation: (*state.installation).clone(),
        auth_mode: match state.auth_mode {
            AuthMode::Password => "password",
            AuthMode::None => "none",
        },
        encrypted: state.access.peer(parts).is_encrypted,
        sign_out_url: None,
    }
}

/// The sessions to which a key is limited, as clients read them.
pub(super) fn sessions_of(grant: &KeyGrant) -> Option<Vec<String>> {
    let sessions = grant.sessions.as_ref();
    sessions.map(|ids| ids.iter().map(ToString::to_string).collect())
}

/// The servers to which a key is limited, as clients read them.
pub(super) fn servers_of(grant: &KeyGrant) -> Option<Vec<String>> {
    let servers = grant.servers.as_ref();
    servers.map(|names| names.iter().cloned().collect())
}
