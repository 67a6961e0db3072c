//! Reads, changes and deletes one session.

use axum::Json;
use axum::extract::State;
use axum::http::header::IF_MATCH;
use axum::http::{HeaderMap, StatusCode};
use serde::Deserialize;
use utoipa::ToSchema;

use super::list::tag;
use super::{find, key_of};
use crate::domain::{Caller, Code, SessionKey};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, SessionPath, required};
use crate::gateway::wire::SessionItem;
use crate::session::Command;
use crate::store::records::MarksChange;

/// The changes to make to a session; absent fields stay unchanged.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct ChangeSessionRequest {
    /// The new title.
    #[schema(min_length = 1, max_length = 200, pattern = r"\S")]
    title: Option<String>,
    /// True to list the session before all sessions that are not pinned.
    is_pinned: Option<bool>,
    /// True to remove the session from the list.
    is_archived: Option<bool>,
    /// All tags of the session: at most 8, each at most 32 characters. They are stored in lower case.
    #[schema(max_items = 8)]
    tags: Option<Vec<String>>,
}

/// Returns a session of the caller.
#[utoipa::path(get, path = "/api/sessions/{id}", tag = "sessions", params(("id" = String, Path)),
    responses((status = 200, body = SessionItem), (status = 404, body = Problem)),
)]
pub(in crate::gateway::http) async fn read_session(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
) -> Result<Json<SessionItem>, ApiError> {
    Ok(Json(
        find(&state, &caller, &key_of(&caller, session)).await?,
    ))
}

/// Renames, pins, archives or tags a session. Its `ETag` counts changes of everything but the title.
#[utoipa::path(patch, path = "/api/sessions/{id}", tag = "sessions", params(("id" = String, Path)),
    request_body = ChangeSessionRequest,
    responses((status = 200, body = SessionItem), (status = 404, body = Problem)),
)]
pub(in crate::gateway::http) async fn change_session(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    headers: HeaderMap,
    Body(body): Body<ChangeSessionRequest>,
) -> Result<Json<SessionItem>, ApiError> {
    if body.title.is_some() && names_version(&headers) {
        let text = "the title is a part of the transcript and has no version: change it without `If-Match`";
        return Err(ApiError::of_field(Code::InvalidArguments, "If-Match", text));
    }
    let key = key_of(&caller, session);
    let tags = body.tags.map(|tags| tag::read_all(&tags)).transpose()?;
    let marks = MarksChange {
        is_pinned: body.is_pinned,
        is_archived: body.is_archived,
        tags,
        ..MarksChange::default()
    };
    if marks == MarksChange::default() {
        // Without marks the request can only be a new title, as before marks existed.
        return rename(&state, &caller, &key, required("title", body.title)?).await;
    }
    if let Some(title) = body.title {
        drop(rename(&state, &caller, &key, title).await?);
    }
    let row = state.sessions.mark(&key, &caller, &marks).await?;
    Ok(Json(SessionItem::of(&row)))
}

async fn rename(
    state: &GatewayState,
    caller: &Caller,
    key: &SessionKey,
    title: String,
) -> Result<Json<SessionItem>, ApiError> {
    let rename = Command::Rename { title };
    state.sessions.submit(key, caller, rename.into()).await?;
    let mut item = find(state, caller, key).await?;
    // The row may still have the old title.
    let view = state.sessions.join(key, caller).await?.view;
    item.title = view.title;
    Ok(Json(item))
}

/// True if a request is held to a version of the session's marks.
fn names_version(headers: &HeaderMap) -> bool {
    headers.get(IF_MATCH).is_some_and(|tag| tag != "*")
}

/// Deletes a session with its journal and workspace.
#[utoipa::path(delete, path = "/api/sessions/{id}", tag = "sessions", params(("id" = String, Path)),
    responses((status = 204), (status = 404, body = Problem)),
)]
pub(in crate::gateway::http) async fn delete_session(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    if names_version(&headers) {
        let text = "a session is deleted whatever its marks are: delete it without `If-Match`";
        return Err(ApiError::of_field(Code::InvalidArguments, "If-Match", text));
    }
    state
        .sessions
        .delete(&key_of(&caller, session), &caller)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
