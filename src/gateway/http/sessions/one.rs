//! One session: read, rename, delete.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;

use super::key_of;
use crate::agent::SessionRequest;
use crate::domain::{Caller, Code, SessionKey, Timestamp};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, SessionPath, required};
use crate::gateway::wire::SessionItem;
use crate::session::Command;

/// A new name.
#[derive(Debug, Deserialize, ToSchema)]
pub(in crate::gateway::http) struct RenameSessionRequest {
    /// The title.
    #[schema(
        required,
        nullable = false,
        min_length = 1,
        max_length = 200,
        pattern = r"\S"
    )]
    title: Option<String>,
}

/// One session of mine.
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

/// Rename a session.
#[utoipa::path(patch, path = "/api/sessions/{id}", tag = "sessions", params(("id" = String, Path)),
    request_body = RenameSessionRequest,
    responses((status = 200, body = SessionItem), (status = 404, body = Problem)),
)]
pub(in crate::gateway::http) async fn rename_session(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    Body(body): Body<RenameSessionRequest>,
) -> Result<Json<SessionItem>, ApiError> {
    let title = required("title", body.title)?;
    let key = key_of(&caller, session);
    let ask = SessionRequest::Command(Command::Rename {
        title: title.clone(),
    });
    state.sessions.tell(&key, &caller, ask).await?;
    let mut item = find(&state, &caller, &key).await?;
    // The row follows a moment later.
    let view = state.sessions.join(&key, &caller).await?.view;
    item.title = view.title;
    Ok(Json(item))
}

/// Delete a session with its journal and workspace.
#[utoipa::path(delete, path = "/api/sessions/{id}", tag = "sessions", params(("id" = String, Path)),
    responses((status = 204), (status = 404, body = Problem)),
)]
pub(in crate::gateway::http) async fn delete_session(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
) -> Result<StatusCode, ApiError> {
    state
        .sessions
        .delete(&key_of(&caller, session), &caller)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A session of the caller, from its row; from the session itself while the row is on its way.
pub(super) async fn find(
    state: &GatewayState,
    caller: &Caller,
    key: &SessionKey,
) -> Result<SessionItem, ApiError> {
    if let Some(row) = state.sessions.row(key, caller).await? {
        return Ok(SessionItem::of(&row));
    }
    let view = state.sessions.join(key, caller).await?.view;
    if !view.is_stored {
        let text = "there is no such session";
        return Err(ApiError::new(Code::SessionNotFound, text));
    }
    // It was stored just now, or its row would be there.
    let now = Timestamp(jiff::Timestamp::now().as_millisecond()).to_rfc3339();
    Ok(SessionItem {
        id: key.session.to_string(),
        title: view.title,
        created_at: now.clone(),
        updated_at: now,
        state: if view.turn.is_some() {
            "running"
        } else {
            "idle"
        },
        waiting: 0,
        forked_from: None,
        version: 0,
    })
}
