//! Signs people in whom a proxy in front of the gateway has signed in (`/api/auth/proxy`).

use axum::Json;
use axum::extract::State;
use axum::http::header::SET_COOKIE;
use axum::http::request::Parts;
use axum::response::AppendHeaders;

use super::auth::{Me, WithCookie, me};
use crate::domain::Code;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::{GatewayState, auth, proxy};
use crate::tenancy::Credential;

/// Signs in by the account that the sign-in proxy names with this request.
///
/// The sign-in counts only together with the same account: each later request with its cookie has to come through
/// the proxy. A refusal also carries `reason`: one word for the page.
#[utoipa::path(post, path = "/api/auth/proxy", tag = "auth", security(()), responses(
    (status = 200, body = Me), (status = 401, body = Problem), (status = 403, body = Problem),
    (status = 404, body = Problem), (status = 429, body = Problem),
))]
pub(in crate::gateway) async fn sign_in_by_proxy(
    State(state): State<GatewayState>,
    parts: Parts,
) -> Result<WithCookie<Json<Me>>, ApiError> {
    let Some(door) = &state.proxy else {
        let text = "no proxy signs people in here";
        return Err(ApiError::new(Code::NotFound, text));
    };
    let account = proxy::account(&state, &parts).ok_or_else(|| {
        let text = "the sign-in proxy names no account with this request: open Sepal at the \
                    proxy's address, and sign in there";
        ApiError::new(Code::Unauthorized, text)
    })?;
    let peer = state.access.peer(&parts);
    let tenancy = &state.tenancy;
    let signed_in = tenancy
        .sign_in_by_proxy(&account, &door.rules, peer.address)
        .await?;
    // The person who used this browser before leaves it, with their sockets.
    if let Some(cookie) = auth::cookie(&parts.headers, peer)
        && let Ok(former) = tenancy.authenticate(&Credential::Cookie(cookie)).await
        && former.proxied.is_some()
    {
        tenancy.sign_out(&former).await?;
    }
    let cookie = auth::set_cookie(&signed_in.secret, peer)?;
    let sign_out_url = proxy::logout_url(&state, &signed_in.entered);
    let me = me(&state, signed_in.entered.caller, signed_in.csrf, &parts);
    Ok((
        AppendHeaders(vec![(SET_COOKIE, cookie)]),
        Json(me.leaving_to(sign_out_url)),
    ))
}
