//! Lists the steps in a workspace's history, and the changes of one step.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::super::key_of;
use super::body::{ChangeItem, ChangedPath};
use super::{MOST_FILES, StepPath};
use crate::agent::WorkspaceHistory;
use crate::domain::Caller;
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::SessionPath;

/// The history of a workspace.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct ChangeList {
    /// The steps that are kept, newest first.
    items: Vec<ChangeItem>,
}

/// A step with the paths that it changed.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct ChangeDetails {
    #[serde(flatten)]
    change: ChangeItem,
    /// The changed paths, sorted, 1000 at most.
    files: Vec<ChangedPath>,
    /// The number of all changed paths.
    total: u64,
}

/// Lists the changes of the session's workspace, with the calls and people that made them. No sandbox is
/// started for it.
#[utoipa::path(get, path = "/api/sessions/{id}/changes", tag = "sessions",
    params(("id" = String, Path)),
    responses((status = 200, body = ChangeList), (status = 404, body = Problem)),
)]
pub(in crate::gateway::http) async fn list_changes(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
) -> Result<Json<ChangeList>, ApiError> {
    let key = key_of(&caller, session);
    let history = WorkspaceHistory::open(&state.sessions, &key, &caller).await?;
    let steps = history.steps().await?;
    Ok(Json(ChangeList {
        items: steps.iter().map(ChangeItem::of).collect(),
    }))
}

/// Returns the changes of one step.
#[utoipa::path(get, path = "/api/sessions/{id}/changes/{number}", tag = "sessions",
    params(("id" = String, Path), ("number" = u64, Path)),
    responses((status = 200, body = ChangeDetails), (status = 400, body = Problem),
        (status = 404, body = Problem)),
)]
pub(in crate::gateway::http) async fn read_change(
    State(state): State<GatewayState>,
    caller: Caller,
    StepPath { session, number }: StepPath,
) -> Result<Json<ChangeDetails>, ApiError> {
    let key = key_of(&caller, session);
    let history = WorkspaceHistory::open(&state.sessions, &key, &caller).await?;
    let (change, files) = history.step(number).await?;
    Ok(Json(ChangeDetails {
        change: ChangeItem::of(&change),
        total: files.len() as u64,
        files: files
            .into_iter()
            .take(MOST_FILES)
            .map(ChangedPath::of)
            .collect(),
    }))
}
