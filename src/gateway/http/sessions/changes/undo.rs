//! Undoes changes of the workspace: plans an undo first, then makes exactly the changes of that plan.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::super::key_of;
use super::body::ChangedPath;
use super::{MOST_FILES, StepPath};
use crate::agent::{FilePurpose, SessionFiles};
use crate::domain::Caller;
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, required};

/// The changes that an undo would make.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct PlannedUndo {
    /// The step to undo: the workspace would be restored to its state before that step.
    number: u64,
    /// The digest of exactly these changes, which the undo requires.
    digest: String,
    /// The paths that would change, sorted, 1000 at most.
    files: Vec<PlannedPath>,
    /// The number of all paths that would change.
    total: u64,
}

/// A path that an undo would change. `before` is its current entry.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct PlannedPath {
    #[serde(flatten)]
    path: ChangedPath,
    /// True if the path can be restored; otherwise it stays as it is.
    is_possible: bool,
}

/// The plan that was shown.
#[derive(Debug, Deserialize, ToSchema)]
pub(in crate::gateway::http) struct UndoChangeRequest {
    /// The `digest` of the plan.
    #[schema(required, nullable = false, max_length = 64)]
    digest: Option<String>,
}

/// The result of an undo.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct UndoneChange {
    /// The number of the step that the undo itself made, by which it can be undone; `null` if nothing had to
    /// change.
    number: Option<u64>,
    /// The number of paths that were restored.
    restored: u64,
    /// The paths that could not be restored, 1000 at most.
    unrestored: Vec<UnrestoredPath>,
}

/// A path that could not be restored.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct UnrestoredPath {
    /// The path below the workspace.
    path: String,
    /// The reason, for people.
    reason: String,
}

/// Returns the changes that an undo would make: from the workspace's current state to its state before this
/// step.
///
/// The session's sandbox is started to read the workspace.
#[utoipa::path(get, path = "/api/sessions/{id}/changes/{number}/undo", tag = "sessions",
    params(("id" = String, Path), ("number" = u64, Path)),
    responses((status = 200, body = PlannedUndo), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem),
        (status = 413, body = Problem), (status = 503, body = Problem)),
)]
pub(in crate::gateway::http) async fn plan_undo(
    State(state): State<GatewayState>,
    caller: Caller,
    StepPath { session, number }: StepPath,
) -> Result<Json<PlannedUndo>, ApiError> {
    let key = key_of(&caller, session);
    let files = SessionFiles::open(&state.sessions, &key, &caller, FilePurpose::Change).await?;
    let plan = files.plan_undo(number).await?;
    Ok(Json(PlannedUndo {
        number: plan.number,
        digest: plan.digest,
        total: plan.changes.len() as u64,
        files: plan
            .changes
            .into_iter()
            .take(MOST_FILES)
            .map(|planned| PlannedPath {
                path: ChangedPath::of(planned.change),
                is_possible: planned.is_possible,
            })
            .collect(),
    }))
}

/// Restores the workspace to its state before this step, which also undoes all later steps.
///
/// The undo is a step itself, and can be undone. It is refused while calls run, and if it would change
/// anything other than what was shown.
#[utoipa::path(post, path = "/api/sessions/{id}/changes/{number}/undo", tag = "sessions",
    params(("id" = String, Path), ("number" = u64, Path)), request_body = UndoChangeRequest,
    responses((status = 200, body = UndoneChange), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem),
        (status = 413, body = Problem), (status = 503, body = Problem)),
)]
pub(in crate::gateway::http) async fn undo_change(
    State(state): State<GatewayState>,
    caller: Caller,
    StepPath { session, number }: StepPath,
    Body(body): Body<UndoChangeRequest>,
) -> Result<Json<UndoneChange>, ApiError> {
    let key = key_of(&caller, session);
    let files = SessionFiles::open(&state.sessions, &key, &caller, FilePurpose::Change).await?;
    let shown = required("digest", body.digest)?;
    let undone = files.undo(number, &shown).await?;
    let unrestored = undone.unrestored.into_iter().take(MOST_FILES);
    Ok(Json(UndoneChange {
        number: undone.number,
        restored: undone.restored,
        unrestored: unrestored
            .map(|it| UnrestoredPath {
                path: it.path,
                reason: it.text,
            })
            .collect(),
    }))
}
