//! Authenticates requests and socket handshakes. Handlers take [`Caller`] or [`ProviderAdmin`] as an argument,
//! so that no handler can be written without an access check; the socket's handshake calls
//! [`authenticate_handshake`].

use axum::extract::FromRequestParts;
use axum::http::header::{AUTHORIZATION, COOKIE, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};

use super::GatewayState;
use super::access::Peer;
use super::error::ApiError;
use super::key_scopes;
use super::proxy;
use crate::agent::require_scope;
use crate::config::AuthMode;
use crate::domain::{Caller, Code, KeyScope, Right, Scope};
use crate::session::Refusal;
use crate::store::audit::acting;
use crate::tenancy::{self, AuthenticatedCaller, Credential, SignedIn, Visitor};

/// The header with the CSRF token that a page sends with its cookie on every unsafe method.
const CSRF: HeaderName = HeaderName::from_static("x-csrf-token");

/// The cookie's name over https: browsers accept a `__Host-` cookie only with `Secure`, for one host, and
/// from that host.
const SECURE_COOKIE: &str = "__Host-sepal";
/// The cookie's name without https; the page then says that the connection is not encrypted.
const PLAIN_COOKIE: &str = "sepal";
/// The maximum lifetime of a sign-in.
const COOKIE_SECONDS: u64 = 90 * 24 * 60 * 60;
const NO_PROVIDER_ADMIN: &str =
    "only an admin of the tenant, or somebody with the right `providers.manage`, may do this";
/// The names of the cookie that binds a sign-in at an OpenID provider to the browser that began it.
const SECURE_FLOW_COOKIE: &str = "__Host-sepal-oidc";
const PLAIN_FLOW_COOKIE: &str = "sepal-oidc";
/// The names of the cookie by which a browser is known in which somebody signed in before.
const SECURE_DEVICE_COOKIE: &str = "__Host-sepal-device";
const PLAIN_DEVICE_COOKIE: &str = "sepal-device";
/// The lifetime of that cookie: browsers keep none for longer.
const DEVICE_SECONDS: u64 = 400 * 24 * 60 * 60;

/// An authenticated caller, with the CSRF token that their page needs.
#[derive(Debug, Clone)]
pub struct AuthenticatedPage {
    pub authenticated: AuthenticatedCaller,
    /// The CSRF token of the cookie; empty if the caller used no cookie.
    pub csrf: String,
}

/// Somebody who manages the model providers of their tenant or of the installation. Handlers that change one
/// check [`ProviderAdmin::scope`].
#[derive(Debug, Clone)]
pub(super) struct ProviderAdmin(pub(super) Caller);

impl ProviderAdmin {
    /// Returns the scope of a change, or an error if this user may not change that scope.
    pub(super) fn scope(&self, is_for_all: bool) -> Result<Scope, ApiError> {
        let user = &self.0.user;
        match (
            is_for_all,
            user.installation_admin,
            self.0.may(Right::ManageProviders),
        ) {
            (true, true, _) => Ok(Scope::Installation),
            (false, _, true) => Ok(Scope::Tenant(self.0.tenant.id.clone())),
            (true, false, _) => Err(ApiError::new(
                Code::NotAllowed,
                "only an administrator of the installation may do this",
            )),
            (false, _, false) => Err(ApiError::new(Code::NotAllowed, NO_PROVIDER_ADMIN)),
        }
    }
}

impl FromRequestParts<GatewayState> for AuthenticatedPage {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &GatewayState,
    ) -> Result<Self, Self::Rejection> {
        // A layer around the handler may have asked before.
        if let Some(page) = parts.extensions.get::<Self>() {
            return Ok(page.clone());
        }
        let page = Self::authenticate(parts, state).await?;
        let caller = &page.authenticated.caller;
        state
            .limits
            .pace
            .count(&caller.user.id, parts.extensions.get())?;
        key_scopes::check(caller, parts)?;
        parts.extensions.insert(page.clone());
        Ok(page)
    }
}

impl AuthenticatedPage {
    async fn authenticate(parts: &Parts, state: &GatewayState) -> Result<Self, ApiError> {
        let peer = state.access.peer(parts);
        if state.auth_mode == AuthMode::None {
            let authenticated = enter_locally(state, peer).await?;
            acting::identify(&authenticated.caller);
            return Ok(Self {
                authenticated,
                csrf: String::new(),
            });
        }
        let credential = shown(&parts.headers, peer).ok_or_else(signed_out)??;
        let mut csrf = String::new();
        if let Credential::Cookie(cookie) = &credential {
            if !parts.method.is_safe() {
                let token = parts
                    .headers
                    .get(CSRF)
                    .and_then(|token| token.to_str().ok());
                state
                    .tenancy
                    .check_csrf(cookie, token.unwrap_or_default())
                    .map_err(|error| {
                        ApiError::of_field(error.code(), "X-CSRF-Token", error.to_string())
                    })?;
            }
            csrf = tenancy::csrf_of(cookie);
        }
        let authenticated = state
            .tenancy
            .authenticate(&credential)
            .await
            .map_err(refused)?;
        proxy::check(state, parts, &authenticated)?;
        acting::identify(&authenticated.caller);
        Ok(Self {
            authenticated,
            csrf,
        })
    }
}

impl FromRequestParts<GatewayState> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &GatewayState,
    ) -> Result<Self, Self::Rejection> {
        let entered = AuthenticatedPage::from_request_parts(parts, state).await?;
        Ok(entered.authenticated.caller)
    }
}

impl FromRequestParts<GatewayState> for ProviderAdmin {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &GatewayState,
    ) -> Result<Self, Self::Rejection> {
        let caller = Caller::from_request_parts(parts, state).await?;
        if !caller.may(Right::ManageProviders) && !caller.user.installation_admin {
            return Err(ApiError::new(Code::NotAllowed, NO_PROVIDER_ADMIN));
        }
        Ok(Self(caller))
    }
}

/// Authenticates a socket's handshake by the key in `auth.token`, a Bearer key, the ticket of the query, or
/// the cookie (whose origin was checked before). An API key in the address is ignored.
pub async fn authenticate_handshake(
    state: &GatewayState,
    parts: &Parts,
    token: Option<&str>,
) -> Result<AuthenticatedCaller, Refusal> {
    let peer = state.access.peer(parts);
    if state.auth_mode == AuthMode::None {
        return enter_locally(state, peer)
            .await
            .map_err(ApiError::into_refusal);
    }
    let credential = match (token.filter(|token| !token.is_empty()), ticket(parts)) {
        (Some(key), _) => Credential::ApiKey(key.to_owned().into()),
        (None, shown_ticket) => match (shown(&parts.headers, peer), shown_ticket) {
            // A browser always sends its cookie, so an explicit ticket takes precedence over the cookie.
            (Some(Ok(Credential::Cookie(_))) | None, Some(ticket)) => Credential::Ticket(ticket),
            (Some(credential), _) => credential.map_err(ApiError::into_refusal)?,
            (None, None) => return Err(signed_out().into_refusal()),
        },
    };
    let entered = state.tenancy.authenticate(&credential).await;
    let entered = entered.map_err(|error| refused(error).into_refusal())?;
    proxy::check(state, parts, &entered).map_err(ApiError::into_refusal)?;
    // Whoever connects is shown something.
    require_scope(&entered.caller, KeyScope::Read)?;
    Ok(entered)
}

/// Returns the owner for `auth.mode none`, which only requests from this machine may use.
async fn enter_locally(state: &GatewayState, peer: Peer) -> Result<AuthenticatedCaller, ApiError> {
    if !peer.is_local {
        let text = "without sign-in (`auth.mode`, SPL_AUTH) only this machine itself is answered, \
                    and no proxy";
        return Err(ApiError::new(Code::NotAllowed, text));
    }
    Ok(state.tenancy.setup().anonymous_caller().await?)
}

/// Reads the credential from the headers: a Bearer key, otherwise the cookie.
pub(super) fn shown(headers: &HeaderMap, peer: Peer) -> Option<Result<Credential, ApiError>> {
    if let Some(value) = headers.get(AUTHORIZATION) {
        let key = value.to_str().ok().and_then(|value| value.split_once(' '));
        let key = key.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        return Some(match key {
            Some((_, key)) => Ok(Credential::ApiKey(key.trim().to_owned().into())),
            None => Err(ApiError::new(
                Code::Unauthorized,
                "`Authorization` needs `Bearer <key>`",
            )),
        });
    }
    cookie(headers, peer).map(|secret| Ok(Credential::Cookie(secret)))
}

/// Reads the sign-in cookie. Over https, only the protected cookie counts: a neighbouring host or a plain
/// connection may have set the other one.
pub(super) fn cookie(headers: &HeaderMap, peer: Peer) -> Option<SecretString> {
    cookie_named(headers, cookie_name(peer))
}

/// Reads the cookie of a sign-in that the browser began at an OpenID provider.
pub(super) fn flow_cookie(headers: &HeaderMap, peer: Peer) -> Option<SecretString> {
    cookie_named(headers, flow_cookie_name(peer))
}

/// Reads the cookie of a browser in which somebody signed in before.
fn device_cookie(headers: &HeaderMap, peer: Peer) -> Option<SecretString> {
    cookie_named(headers, device_cookie_name(peer))
}

/// Reads that cookie from a request.
pub(super) fn visiting_device(state: &GatewayState, parts: &Parts) -> Option<SecretString> {
    device_cookie(&parts.headers, state.access.peer(parts))
}

/// The client who asks to be let in, with the cookie of [`visiting_device`].
pub(super) fn visitor<'d>(
    state: &GatewayState,
    parts: &Parts,
    device: Option<&'d SecretString>,
) -> Visitor<'d> {
    Visitor {
        peer: state.access.peer(parts).address,
        device,
    }
}

/// Builds the `Set-Cookie` headers for a sign-in: its cookie, and the one by which its browser is known later.
pub(super) fn sign_in_cookies(
    state: &GatewayState,
    parts: &Parts,
    signed_in: &SignedIn,
) -> Result<Vec<(HeaderName, HeaderValue)>, ApiError> {
    let peer = state.access.peer(parts);
    let mut cookies = vec![(SET_COOKIE, set_cookie(&signed_in.secret, peer)?)];
    let known = device_cookie(&parts.headers, peer);
    let user = &signed_in.entered.caller.user.id;
    if let Some(cookie) = state.tenancy.device_cookie(user, known.as_ref()) {
        let name = device_cookie_name(peer);
        let cookie = cookie_header(name, cookie.expose_secret(), DEVICE_SECONDS, peer)?;
        cookies.push((SET_COOKIE, cookie));
    }
    Ok(cookies)
}

fn cookie_named(headers: &HeaderMap, wanted: &str) -> Option<SecretString> {
    let values = headers
        .get_all(COOKIE)
        .into_iter()
        .filter_map(|value| value.to_str().ok());
    let mut pairs = values
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.split_once('='));
    let (_, secret) = pairs.find(|(name, _)| name.trim() == wanted)?;
    Some(secret.trim().to_owned().into())
}

/// Builds the `Set-Cookie` header for a sign-in.
pub(super) fn set_cookie(secret: &SecretString, peer: Peer) -> Result<HeaderValue, ApiError> {
    let name = cookie_name(peer);
    cookie_header(name, secret.expose_secret(), COOKIE_SECONDS, peer)
}

/// Builds the `Set-Cookie` header that deletes the sign-in cookie.
pub(super) fn clear_cookie(peer: Peer) -> Result<HeaderValue, ApiError> {
    cookie_header(cookie_name(peer), "", 0, peer)
}

/// Builds the `Set-Cookie` header that binds a sign-in at an OpenID provider to this browser.
pub(super) fn set_flow_cookie(secret: &SecretString, peer: Peer) -> Result<HeaderValue, ApiError> {
    let seconds = tenancy::FLOW_LIFE_MS.div_euclid(1_000);
    let name = flow_cookie_name(peer);
    cookie_header(name, secret.expose_secret(), seconds, peer)
}

/// Builds the `Set-Cookie` header that deletes that cookie.
pub(super) fn clear_flow_cookie(peer: Peer) -> Result<HeaderValue, ApiError> {
    cookie_header(flow_cookie_name(peer), "", 0, peer)
}

fn cookie_header(
    name: &str,
    value: &str,
    seconds: u64,
    peer: Peer,
) -> Result<HeaderValue, ApiError> {
    let secure = if peer.is_encrypted { "; Secure" } else { "" };
    let text = format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
    let header = HeaderValue::try_from(text);
    let mut header =
        header.map_err(|_| ApiError::new(Code::Internal, "a cookie is not printable"))?;
    header.set_sensitive(true);
    Ok(header)
}

fn cookie_name(peer: Peer) -> &'static str {
    if peer.is_encrypted {
        SECURE_COOKIE
    } else {
        PLAIN_COOKIE
    }
}

fn flow_cookie_name(peer: Peer) -> &'static str {
    if peer.is_encrypted {
        SECURE_FLOW_COOKIE
    } else {
        PLAIN_FLOW_COOKIE
    }
}

fn device_cookie_name(peer: Peer) -> &'static str {
    if peer.is_encrypted {
        SECURE_DEVICE_COOKIE
    } else {
        PLAIN_DEVICE_COOKIE
    }
}

pub(super) fn ticket(parts: &Parts) -> Option<SecretString> {
    let query = parts.uri.query()?;
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    let (_, ticket) = pairs.find(|(name, value)| name == "ticket" && !value.is_empty())?;
    Some(ticket.into_owned().into())
}

fn signed_out() -> ApiError {
    ApiError::new(Code::Unauthorized, "not signed in")
}

/// Maps an authentication error to a 401 if the credential is invalid.
fn refused(error: tenancy::Error) -> ApiError {
    if matches!(error, tenancy::Error::NotValid) {
        let text = "the sign-in, key or ticket is not valid (any more)";
        return ApiError::new(Code::Unauthorized, text);
    }
    error.into()
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use axum::http::{HeaderMap, HeaderName, HeaderValue};
    use secrecy::ExposeSecret as _;

    use super::{clear_cookie, cookie, set_cookie, shown};
    use crate::gateway::access::Peer;
    use crate::tenancy::Credential;

    fn peer(is_encrypted: bool) -> Peer {
        let address: IpAddr = "192.0.2.1".parse().unwrap();
        Peer {
            address,
            is_local: false,
            is_encrypted,
        }
    }

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let line = |(name, value): &(&str, &str)| {
            let name: HeaderName = name.parse().unwrap();
            (name, HeaderValue::try_from(*value).unwrap())
        };
        let mut headers = HeaderMap::new();
        for (name, value) in lines.iter().map(line) {
            headers.append(name, value);
        }
        headers
    }

    #[test]
    fn a_key_goes_before_a_cookie() {
        fn check(lines: &[(&str, &str)], is_encrypted: bool, expected: &str) {
            let found = match shown(&headers(lines), peer(is_encrypted)) {
                None => "nothing".to_owned(),
                Some(Err(error)) => error.code().as_str().to_owned(),
                Some(Ok(Credential::ApiKey(key))) => format!("key {}", key.expose_secret()),
                Some(Ok(Credential::Cookie(cookie))) => {
                    format!("cookie {}", cookie.expose_secret())
                }
                Some(Ok(Credential::Ticket(_))) => "ticket".to_owned(),
            };
            assert_eq!(found, expected, "{lines:?}");
        }
        check(&[], false, "nothing");
        check(&[("authorization", "Bearer spl_1")], false, "key spl_1");
        check(&[("authorization", "bearer  spl_1 ")], false, "key spl_1");
        check(&[("authorization", "Basic YTpi")], false, "unauthorized");
        check(&[("authorization", "Bearer")], false, "unauthorized");
        check(
            &[("authorization", "Bearer spl_1"), ("cookie", "sepal=c")],
            false,
            "key spl_1",
        );
        check(&[("cookie", "a=b; sepal=c; d")], false, "cookie c");
        check(
            &[("cookie", "a=b"), ("cookie", "sepal=c")],
            false,
            "cookie c",
        );
        check(&[("cookie", "sepal=c")], true, "nothing");
        check(&[("cookie", "sepal=c; __Host-sepal=d")], true, "cookie d");
        check(&[("cookie", "__Host-sepal=d")], false, "nothing");
        check(&[("cookie", "xsepal=c; sepal")], false, "nothing");
    }

    #[test]
    fn the_cookie_is_protected_as_far_as_the_connection_allows() {
        let text = |is_encrypted| {
            let header = set_cookie(&"abc".to_owned().into(), peer(is_encrypted)).unwrap();
            assert!(header.is_sensitive());
            header.to_str().unwrap().to_owned()
        };
        assert_eq!(
            text(false),
            "sepal=abc; Path=/; Max-Age=7776000; HttpOnly; SameSite=Lax"
        );
        assert_eq!(
            text(true),
            "__Host-sepal=abc; Path=/; Max-Age=7776000; HttpOnly; SameSite=Lax; Secure"
        );
        let cleared = clear_cookie(peer(false)).unwrap();
        assert!(
            cleared
                .to_str()
                .unwrap()
                .starts_with("sepal=; Path=/; Max-Age=0")
        );
        assert!(cookie(&headers(&[]), peer(false)).is_none());
    }
}
