//! Signs people in at OpenID providers, and out when a provider says so (`/api/auth/oidc`).
//!
//! A sign-in has three steps: the page begins it and opens the provider's address, the provider sends the browser
//! to the callback, which only leads to the page, and the page finishes it with the provider's answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, RawQuery, State};
use axum::http::header::{CONTENT_SECURITY_POLICY, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{AppendHeaders, Html, IntoResponse, Response};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::json;
use url::Url;
use utoipa::{IntoParams, ToSchema};

use super::auth::{Me, me};
use crate::domain::Code;
use crate::gateway::GatewayState;
use crate::gateway::auth;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, Query, required};
use crate::gateway::foreign_answer;
use crate::gateway::guard::MayBeFramed;
use crate::oidc::{self, Answer, Claims, Demand, Provider, Secrets};
use crate::tenancy::{self, Account, EndedSession, EntryRules, FlowSecrets};

/// The page that receives the provider's answer.
const PAGE: &str = "signed-in";

/// The place to which a person returns who named none.
const USUAL_RETURN: &str = "/s/new";

/// A provider at which people sign in.
#[derive(Debug, Clone)]
pub struct OidcDoor {
    /// The name on the button.
    pub name: String,
    pub provider: Provider,
    /// The ways in which it has to check somebody who confirms something; empty = any.
    pub step_up_acr: Vec<String>,
    pub rules: EntryRules,
}

/// The providers by id.
pub type OidcDoors = Arc<BTreeMap<String, OidcDoor>>;

/// The page to which the person returns.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct BeginOidcRequest {
    /// A path of Sepal's page; `/s/new` if absent.
    #[schema(max_length = 512, pattern = r"^/([^/\\].*)?$")]
    return_to: Option<String>,
}

/// The page on which the person signs in.
#[derive(Serialize, ToSchema)]
pub(in crate::gateway) struct BeginOidcResponse {
    /// The address to open, at the provider.
    url: String,
}

/// The provider's answer, as its parameters stand in the address to which it sent the person back.
#[derive(Deserialize, ToSchema)]
pub(in crate::gateway) struct FinishOidcRequest {
    /// The `state`, which identifies the sign-in that the person began.
    #[schema(value_type = String, required, nullable = false, max_length = 128)]
    pub(super) state: Option<SecretString>,
    /// The authorisation code; absent if the provider reports an error.
    #[schema(value_type = Option<String>)]
    pub(super) code: Option<SecretString>,
    /// The issuer that answers (RFC 9207); absent if the answer does not name it.
    pub(super) iss: Option<String>,
    /// The error code of the provider; absent if it let the person in.
    pub(super) error: Option<String>,
}

/// The person who signed in.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct FinishOidcResponse {
    /// The signed-in user.
    me: Me,
    /// The path of Sepal's page to which the person returns.
    return_to: String,
}

/// The session at a provider that ended.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::gateway) struct FrontChannelLogoutQuery {
    /// The issuer.
    #[param(required, nullable = false, max_length = 2048)]
    iss: Option<String>,
    /// The session's id at the issuer.
    #[param(required, nullable = false, max_length = 512)]
    sid: Option<String>,
}

/// The logout token of a provider.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "describes the form, which is read as pairs")]
pub(in crate::gateway) struct BackChannelLogoutForm {
    /// The logout token.
    #[schema(max_length = 16384)]
    logout_token: String,
}

/// Begins a sign-in at a provider. It has to end within 10 minutes, in the same browser.
#[utoipa::path(post, path = "/api/auth/oidc/{id}/start", tag = "auth", security(()),
    params(("id" = String, Path)), request_body = BeginOidcRequest, responses(
    (status = 200, body = BeginOidcResponse), (status = 404, body = Problem),
    (status = 429, body = Problem), (status = 502, body = Problem), (status = 503, body = Problem),
))]
pub(in crate::gateway) async fn begin_oidc(
    State(state): State<GatewayState>,
    Path(id): Path<String>,
    parts: Parts,
    Body(body): Body<BeginOidcRequest>,
) -> Result<impl IntoResponse, ApiError> {
    let door = find(&state, &id)?;
    let callback = callback(&state, &parts, &id)?;
    let peer = state.access.peer(&parts);
    let browser = auth::flow_cookie(&parts.headers, peer);
    let return_to = body.return_to.as_deref().unwrap_or(USUAL_RETURN);
    let device = auth::visiting_device(&state, &parts);
    let visitor = auth::visitor(&state, &parts, device.as_ref());
    let begun = state
        .tenancy
        .begin_sign_in(&id, browser, return_to, visitor)
        .await?;
    let url = door
        .provider
        .authorization_url(&callback, &secrets(begun.secrets), Demand::SignIn)
        .await
        .map_err(|error| failed(&id, &error))?;
    let cookie = auth::set_flow_cookie(&begun.browser, peer)?;
    let url = BeginOidcResponse { url: url.into() };
    Ok(([(SET_COOKIE, cookie)], Json(url)))
}

/// Receives people whom a provider sends back.
///
/// The operation changes nothing: it redirects to Sepal's page, which reads the parameters behind the `#` and
/// sends them by POST.
#[utoipa::path(get, path = "/api/auth/oidc/{id}/callback", tag = "auth", security(()),
    params(("id" = String, Path)), responses(
    (status = 303, description = "Our page."), (status = 400, body = Problem),
    (status = 404, body = Problem),
))]
pub(in crate::gateway) async fn return_from_oidc(
    State(state): State<GatewayState>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    find(&state, &id)?;
    let text = "what the provider says cannot be read";
    foreign_answer::lead_to_page(&state, PAGE, &id, query)
        .ok_or_else(|| ApiError::new(Code::InvalidArguments, text))
}

/// Finishes a sign-in with the provider's answer, which works once, and only in the browser that began.
///
/// A refusal also carries `reason`: one word for the page.
#[utoipa::path(post, path = "/api/auth/oidc/{id}/finish", tag = "auth", security(()),
    params(("id" = String, Path)), request_body = FinishOidcRequest, responses(
    (status = 200, body = FinishOidcResponse), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem),
    (status = 429, body = Problem), (status = 502, body = Problem), (status = 503, body = Problem),
))]
pub(in crate::gateway) async fn finish_oidc(
    State(state): State<GatewayState>,
    Path(id): Path<String>,
    parts: Parts,
    Body(body): Body<FinishOidcRequest>,
) -> Result<impl IntoResponse, ApiError> {
    let door = find(&state, &id)?;
    let callback = callback(&state, &parts, &id)?;
    let peer = state.access.peer(&parts);
    let browser = auth::flow_cookie(&parts.headers, peer).ok_or_else(expired)?;
    let flow_state = required("state", body.state)?;
    let resumed = state
        .tenancy
        .resume_sign_in(&id, &browser, flow_state, peer.address)
        .await;
    let (flow, return_to) = match resumed {
        Err(tenancy::Error::NotValid) => return Err(expired()),
        resumed => resumed?,
    };
    if let Some(error) = body.error {
        return Err(reported(&id, &error));
    }
    let answer = Answer {
        code: required("code", body.code)?,
        issuer: body.iss,
    };
    let claims = door
        .provider
        .redeem(&answer, &callback, &secrets(flow))
        .await
        .map_err(|error| failed(&id, &error))?;
    let signed_in = state
        .tenancy
        .sign_in_by_account(&account(claims), &door.rules, peer.address)
        .await?;
    let mut cookies = auth::sign_in_cookies(&state, &parts, &signed_in)?;
    cookies.push((SET_COOKIE, auth::clear_flow_cookie(peer)?));
    let me = me(&state, signed_in.entered.caller, signed_in.csrf, &parts);
    Ok((
        AppendHeaders(cookies),
        Json(FinishOidcResponse { me, return_to }),
    ))
}

/// Ends the sign-ins of a session or account at a provider, which sends a logout token (OpenID Connect
/// Back-Channel Logout 1.0).
#[utoipa::path(post, path = "/api/auth/oidc/{id}/back-channel-logout", tag = "auth", security(()),
    params(("id" = String, Path)),
    request_body(content = BackChannelLogoutForm, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, description = "The sign-ins have ended."),
        (status = 400, body = Problem), (status = 404, body = Problem),
        (status = 429, body = Problem), (status = 503, body = Problem)))]
pub(in crate::gateway) async fn log_out_by_oidc(
    State(state): State<GatewayState>,
    Path(id): Path<String>,
    parts: Parts,
    body: Bytes,
) -> Result<StatusCode, ApiError> {
    let door = find(&state, &id)?;
    let mut pairs = url::form_urlencoded::parse(&body);
    let token = pairs.find_map(|(name, token)| (name == "logout_token").then_some(token));
    let token = required("logout_token", token)?;
    let checked = door
        .provider
        .check_logout(&token, state.tenancy.now())
        .await;
    let ended = match checked {
        Ok(token) => EndedSession {
            issuer: token.issuer,
            jti: token.jti,
            subject: token.subject,
            sid: token.sid,
        },
        Err(error @ oidc::Error::Unavailable(_)) => return Err(failed(&id, &error)),
        Err(error) => {
            tracing::warn!(oidc.provider = %id, %error, "A logout token is not valid");
            let peer = state.access.peer(&parts).address;
            state.tenancy.count_wrong_link(peer)?;
            return Err(invalid_token());
        }
    };
    match state.tenancy.end_session(&ended).await {
        Ok(count) => {
            tracing::info!(oidc.provider = %id, count, "A provider ended sign-ins");
            Ok(StatusCode::OK)
        }
        Err(tenancy::Error::NotValid) => Err(invalid_token()),
        Err(error) => Err(error.into()),
    }
}

/// Ends the sign-ins of a session at a provider, whose page opens this address in a frame (OpenID Connect
/// Front-Channel Logout 1.0).
///
/// The frame belongs to another site, so it carries no cookie: `iss` and `sid` alone say whom it concerns. The answer is
/// the same whether a sign-in ended or not.
#[utoipa::path(get, path = "/api/auth/oidc/{id}/front-channel-logout", tag = "auth", security(()),
    params(("id" = String, Path), FrontChannelLogoutQuery),
    responses((status = 200, description = "The sign-ins of the session have ended."),
        (status = 400, body = Problem), (status = 404, body = Problem),
        (status = 429, body = Problem)))]
pub(in crate::gateway) async fn log_out_in_frame(
    State(state): State<GatewayState>,
    Path(id): Path<String>,
    parts: Parts,
    Query(query): Query<FrontChannelLogoutQuery>,
) -> Result<Response, ApiError> {
    let door = find(&state, &id)?;
    let named = |text: Option<String>| text.filter(|it| !it.is_empty());
    let iss = required("iss", named(query.iss))?;
    let sid = required("sid", named(query.sid))?;
    if !door.provider.is_issuer(&iss) {
        let text = "`iss` is not the issuer of this provider";
        return Err(ApiError::of_field(Code::InvalidArguments, "iss", text));
    }
    let peer = state.access.peer(&parts).address;
    let count = state.tenancy.end_session_by_sid(&iss, &sid, peer).await?;
    if count > 0 {
        tracing::info!(oidc.provider = %id, count, "A provider ended sign-ins in a frame");
    }
    let policy = format!(
        "default-src 'none'; frame-ancestors {}",
        door.provider.origin()
    );
    let policy = HeaderValue::try_from(policy)
        .map_err(|_| ApiError::new(Code::Internal, "the issuer's address is not printable"))?;
    let mut response = Html("").into_response();
    response
        .headers_mut()
        .insert(CONTENT_SECURITY_POLICY, policy);
    response.extensions_mut().insert(MayBeFramed);
    Ok(response)
}

fn find<'s>(state: &'s GatewayState, id: &str) -> Result<&'s OidcDoor, ApiError> {
    let found = state.oidc.get(id);
    found.ok_or_else(|| ApiError::new(Code::NotFound, "there is no such provider"))
}

/// The address to which the provider sends people back, on the host by which they reached this installation.
pub(super) fn callback(state: &GatewayState, parts: &Parts, id: &str) -> Result<Url, ApiError> {
    let base = state.access.address(parts);
    let path = format!("api/auth/oidc/{id}/callback");
    let callback = base.and_then(|base| base.join(&path).ok());
    callback.ok_or_else(|| {
        let text = "the address of this installation is not known: set \
                    `runtime.http.public_url` (SPL_PUBLIC_URL)";
        ApiError::new(Code::InvalidArguments, text)
    })
}

pub(super) fn secrets(flow: FlowSecrets) -> Secrets {
    Secrets {
        state: flow.state,
        nonce: flow.nonce,
        verifier: flow.verifier,
    }
}

fn account(claims: Claims) -> Account {
    Account {
        issuer: claims.issuer,
        subject: claims.subject,
        sid: claims.sid,
        preferred_username: claims.preferred_username,
        email: claims.email,
        is_email_verified: claims.is_email_verified,
        name: claims.name,
        groups: claims.groups,
    }
}

fn refusal(code: Code, reason: &'static str, text: &'static str) -> ApiError {
    ApiError::new(code, text).with("reason", json!(reason))
}

pub(super) fn expired() -> ApiError {
    let text = "this sign-in was begun in another browser, has been used, or took longer than 10 minutes: \
                begin again";
    refusal(Code::Unauthorized, "expired", text)
}

fn invalid_token() -> ApiError {
    ApiError::new(Code::InvalidArguments, "the logout token is not valid")
}

/// The refusal for an error that the provider sent with the browser. It quotes nothing: anybody can write
/// such an address.
pub(super) fn reported(id: &str, error: &str) -> ApiError {
    // Part of an address that anybody can write, so the log gets a short word of it.
    let letters = error.chars().filter(char::is_ascii_graphic);
    let word: String = letters.take(60).collect();
    tracing::info!(oidc.provider = %id, oidc.error = %word, "A provider did not let somebody in");
    match error {
        "access_denied" => {
            let text = "the provider did not let you in, or you cancelled: try again, or ask your \
                        administrator for access";
            refusal(Code::Unauthorized, "denied", text)
        }
        "temporarily_unavailable" | "server_error" => unavailable(),
        _ => misconfigured(),
    }
}

/// The refusal for a failure of the protocol. What the provider said is in the log.
pub(super) fn failed(id: &str, error: &oidc::Error) -> ApiError {
    tracing::warn!(oidc.provider = %id, %error, "A sign-in at a provider failed");
    match error {
        oidc::Error::Unavailable(_) => unavailable(),
        oidc::Error::ClientRefused(_) => misconfigured(),
        oidc::Error::CodeRefused(_) => expired(),
        oidc::Error::Token(_) => {
            let text = "the provider's answer is not valid, so nobody was signed in: try again; if it \
                        happens again, ask your operator, whose log says why";
            refusal(Code::SignInRejected, "invalid_answer", text)
        }
    }
}

fn unavailable() -> ApiError {
    let text = "the provider does not answer: try again in a minute, or sign in with a password if you \
                have one";
    refusal(Code::SignInUnavailable, "unavailable", text)
}

fn misconfigured() -> ApiError {
    let text = "the provider refuses this installation: ask your operator, whose log says why";
    refusal(Code::SignInRejected, "misconfigured", text)
}
