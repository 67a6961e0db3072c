//! Shows sessions that others shared (`/shared/{word}`, `/api/shared/{word}`), and sets whether a tenant
//! allows links (`/api/sharing`).

use axum::Json;
use axum::extract::{Path, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::agent::{SharedBy, SharedView};
use crate::config::AuthMode;
use crate::domain::{Caller, Code, Right, SharedSessionId};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::export::{Document, Form};
use crate::gateway::extract::{Body, required};

/// The policy of a shared page: it has an origin of its own, runs nothing and loads nothing; people may save
/// files from it and follow its links.
const POLICY: &str = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; \
    sandbox allow-downloads allow-popups allow-popups-to-escape-sandbox; \
    frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
/// The texts of the pages that replace a shared session, by error code; `NOTHING` for any other code.
const WORDS: [(Code, &str); 2] = [
    (
        Code::TooManyRequests,
        "Too many people read this now, or too many links that open nothing came from here. Wait a minute.",
    ),
    (
        Code::StoreUnavailable,
        "The database does not answer. Try again in a moment.",
    ),
];
const NOTHING: &str =
    "This opens nothing, or nothing any more: it was ended, or the session is gone.";
const ROBOTS: HeaderName = HeaderName::from_static("x-robots-tag");

/// The tenant's setting for share links.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Sharing {
    /// True if links may be created and opened in the tenant.
    links_allowed: bool,
    /// True if the caller may change the setting.
    may_change: bool,
}

/// The new setting for share links.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PutSharingRequest {
    /// True to allow links; false to forbid them, so that existing links open nothing.
    #[schema(required, nullable = false)]
    links_allowed: Option<bool>,
}

/// Returns whether people of the tenant may share sessions by link.
#[utoipa::path(get, path = "/api/sharing", tag = "sessions",
    responses((status = 200, body = Sharing)))]
pub(super) async fn read_sharing(
    State(state): State<GatewayState>,
    caller: Caller,
) -> Result<Json<Sharing>, ApiError> {
    let administration = state.tenancy.administration();
    let may_change = caller.may(Right::ManageSharing) && state.auth_mode != AuthMode::None;
    Ok(Json(Sharing {
        links_allowed: administration.allows_links(&caller.tenant.id).await?,
        may_change,
    }))
}

/// Allows or forbids people of the tenant to share sessions by link. Only for admins.
///
/// While links are forbidden, existing links open nothing.
#[utoipa::path(put, path = "/api/sharing", tag = "sessions", request_body = PutSharingRequest,
    responses((status = 200, body = Sharing), (status = 400, body = Problem)))]
pub(super) async fn put_sharing(
    State(state): State<GatewayState>,
    caller: Caller,
    Body(body): Body<PutSharingRequest>,
) -> Result<Json<Sharing>, ApiError> {
    let links_allowed = required("linksAllowed", body.links_allowed)?;
    if !caller.may(Right::ManageSharing) {
        let text =
            "only an admin of the tenant, or somebody with the right `sharing.manage`, may do this";
        return Err(ApiError::new(Code::NotAllowed, text));
    }
    let tenant = &caller.tenant.id;
    let administration = state.tenancy.administration();
    administration
        .set_allows_links(tenant, links_allowed)
        .await?;
    Ok(Json(Sharing {
        links_allowed,
        may_change: true,
    }))
}

/// Returns a shared session as an HTML page that runs no scripts.
///
/// `word` is the secret of a link, or the id of a session that is shared with the caller's tenant.
#[utoipa::path(get, path = "/api/shared/{word}", tag = "sessions", params(("word" = String, Path)),
    responses((status = 200, description = "The page.", content_type = "text/html", body = String),
        (status = 401, body = Problem), (status = 404, body = Problem), (status = 429, body = Problem)),
)]
pub(super) async fn read_shared(
    State(state): State<GatewayState>,
    caller: Result<Caller, ApiError>,
    Path(word): Path<String>,
    parts: Parts,
) -> Result<Response, ApiError> {
    let view = open(&state, caller, word, &parts).await?;
    let sessions = state.sessions.clone();
    let write = || {
        let document = Document::new(view.session().clone(), view.shared_at());
        let (sessions, view) = (&state.sessions, &view);
        let fetch =
            move |after, limit| async move { sessions.sharing().page(view, after, limit).await };
        state.documents.write(document, Form::Shared, fetch)
    };
    let (written, reader) = state.documents.shared(view.id(), write).await?;
    let content = move |id| {
        let (sessions, view) = (sessions.clone(), view.clone());
        async move {
            let found = sessions.sharing().attachment(&view, &id).await?;
            Ok(found.map(|(_, content)| content))
        }
    };
    let body = state.documents.send(written, reader, content);
    Ok((headers(), body).into_response())
}

/// Serves the same page to browsers: a refusal is a page too.
pub(in crate::gateway) async fn show_shared(
    state: State<GatewayState>,
    caller: Result<Caller, ApiError>,
    word: Path<String>,
    parts: Parts,
) -> Response {
    let base = state.access.base_path();
    let shared = SharedSessionId::parse(&word.0);
    match read_shared(state, caller, word, parts).await {
        Ok(response) => response,
        Err(error) => {
            let body = match shared.filter(|_| error.code() == Code::Unauthorized) {
                Some(id) => sign_in_words(&base, &id),
                None => words(&base, error.code()),
            };
            let page = format!(
                "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
                 <meta name=\"viewport\" content=\"width=device-width\"><title>Sepal</title></head>\
                 <body>{body}</body></html>\n"
            );
            (error.into_response().status(), headers(), page).into_response()
        }
    }
}

fn words(base: &str, code: Code) -> String {
    let words = WORDS.iter().find(|(known, _)| *known == code);
    let words = words.map_or(NOTHING, |(_, words)| words);
    format!("<p>{words}</p><p><a href=\"{base}\">Sepal</a></p>")
}

/// Returns the text with a sign-in link that leads back to the shared session. The id was parsed, so nobody
/// can put another address into the link.
fn sign_in_words(base: &str, id: &SharedSessionId) -> String {
    format!(
        "<p>This is for people of the team. <a href=\"{base}sign-in?to=/shared/{id}\">Sign in to \
         Sepal</a>, and it opens.</p>"
    )
}

/// Opens a shared session: by its secret for anybody, by its id for callers signed in to its tenant.
async fn open(
    state: &GatewayState,
    caller: Result<Caller, ApiError>,
    word: String,
    parts: &Parts,
) -> Result<SharedView, ApiError> {
    let now = state.tenancy.now();
    let found = if let Some(id) = SharedSessionId::parse(&word) {
        let caller = caller?;
        let by = SharedBy::Id(&caller.tenant.id, &id);
        state.sessions.sharing().open(by, now).await?
    } else {
        if state.auth_mode == AuthMode::None {
            // Without sign-in only requests from this machine are answered.
            caller?;
        }
        let secret = SecretString::from(word);
        let by = SharedBy::Link(&secret);
        state.sessions.sharing().open(by, now).await?
    };
    let Some(view) = found else {
        let peer = state.access.peer(parts).address;
        state.tenancy.count_wrong_link(peer)?;
        let text = "there is nothing shared under this address (any more)";
        return Err(ApiError::new(Code::NotFound, text));
    };
    Ok(view)
}

/// The headers of a shared page. Every response also has `Referrer-Policy: no-referrer`.
fn headers() -> HeaderMap {
    let fixed = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, "no-store"),
        (ROBOTS, "noindex, nofollow"),
    ];
    let fixed = fixed.into_iter();
    fixed
        .map(|(name, value)| (name, HeaderValue::from_static(value)))
        .collect()
}
