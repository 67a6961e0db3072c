//! The caller's own sign-ins (`/api/sign-ins`) and password (`/api/password`).

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain::{Code, CredentialId};
use crate::gateway::GatewayState;
use crate::gateway::api_router::{ApiRouter, routes};
use crate::gateway::auth::AuthenticatedPage;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, Query, required};
use crate::gateway::paging::PageQuery;
use crate::tenancy::Error;

/// A browser in which the caller is signed in.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SignInItem {
    /// The id of the sign-in.
    id: String,
    /// True for the browser that asks.
    current: bool,
    /// When the caller signed in there (RFC 3339).
    created_at: String,
    /// When it was last used, to within five minutes (RFC 3339).
    last_seen_at: String,
}

/// The caller's sign-ins.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SignInList {
    /// The sign-ins, the last seen first.
    items: Vec<SignInItem>,
    /// The cursor of the next page; `null` if there is none.
    next_cursor: Option<String>,
}

/// A new password.
#[derive(Deserialize, ToSchema)]
struct ChangePasswordRequest {
    /// The caller's password until now; not needed if they have none.
    #[schema(value_type = Option<String>)]
    old: Option<SecretString>,
    /// The new password.
    #[schema(value_type = String, required, min_length = 10, max_length = 1024)]
    new: Option<SecretString>,
}

pub(super) fn routes() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(list_sign_ins))
        .routes(routes!(end_sign_in))
        .routes(routes!(change_password))
}

/// Lists the browsers in which the caller is signed in.
#[utoipa::path(get, path = "/api/sign-ins", tag = "people", params(PageQuery), responses(
    (status = 200, body = SignInList), (status = 401, body = Problem),
))]
async fn list_sign_ins(
    State(state): State<GatewayState>,
    entered: AuthenticatedPage,
    Query(query): Query<PageQuery>,
) -> Result<Json<SignInList>, ApiError> {
    let AuthenticatedPage { authenticated, .. } = entered;
    let sign_ins = state.tenancy.people(&authenticated.caller).sign_ins();
    let items = sign_ins.await?.into_iter().map(|sign_in| SignInItem {
        current: authenticated.credential == CredentialId::SignIn(sign_in.id.clone()),
        id: sign_in.id,
        created_at: sign_in.created_at.to_rfc3339(),
        last_seen_at: sign_in.last_seen_at.to_rfc3339(),
    });
    let page = query.page(items.collect(), |item: &SignInItem| item.id.clone())?;
    Ok(Json(SignInList {
        items: page.items,
        next_cursor: page.next_cursor,
    }))
}

/// Signs the caller out of one browser, and closes its sockets.
#[utoipa::path(delete, path = "/api/sign-ins/{id}", tag = "people", params(("id" = String, Path)),
    responses((status = 204), (status = 401, body = Problem), (status = 404, body = Problem)))]
async fn end_sign_in(
    State(state): State<GatewayState>,
    entered: AuthenticatedPage,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    let people = state.tenancy.people(&entered.authenticated.caller);
    people.end_sign_in(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Changes the caller's password, and signs them out of every other browser. API keys cannot do this.
#[utoipa::path(put, path = "/api/password", tag = "people", request_body = ChangePasswordRequest,
    responses((status = 204), (status = 400, body = Problem), (status = 401, body = Problem),
        (status = 403, body = Problem), (status = 429, body = Problem)))]
async fn change_password(
    State(state): State<GatewayState>,
    entered: AuthenticatedPage,
    Body(body): Body<ChangePasswordRequest>,
) -> Result<StatusCode, ApiError> {
    let new = required("new", body.new)?;
    let old = body.old.as_ref();
    let changing = state
        .tenancy
        .change_password(&entered.authenticated, old, &new);
    match changing.await {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        // Not 401: whoever asks is signed in.
        Err(Error::WrongPassword) => {
            let text = "`old` is not the password until now";
            Err(ApiError::of_field(Code::InvalidArguments, "old", text))
        }
        Err(error) => Err(error.into()),
    }
}
