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

/// What an undo would change.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct PlannedUndo {
    /// The step before which the workspace is brought back.
    number: u64,
    /// Names exactly these changes; the undo itself asks for it.
    digest: String,
    /// Sorted; the first 1000 of them.
    files: Vec<PlannedPath>,
    /// How many there are.
    total: u64,
}

/// A path that an undo would change: `before` is what is there now.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct PlannedPath {
    #[serde(flatten)]
    path: ChangedPath,
    /// Whether it can be done. What cannot be brought back stays as it is.
    is_possible: bool,
}

/// What was shown.
#[derive(Debug, Deserialize, ToSchema)]
pub(in crate::gateway::http) struct UndoChangeRequest {
    /// The `digest` of the plan.
    #[schema(required, nullable = false, max_length = 64)]
    digest: Option<String>,
}

/// What an undo did.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct UndoneChange {
    /// The step that the undo is itself, by which it can be undone; null where nothing had to change.
    number: Option<u64>,
    /// Paths that are as they were.
    restored: u64,
    /// The first 1000 of those that are not.
    unrestored: Vec<UnrestoredPath>,
}

/// A path that is not as it was.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct UnrestoredPath {
    path: String,
    /// Why, for people.
    reason: String,
}

/// What an undo would change now: the way from the workspace as it is to what it was before this step. The
/// session's sandbox is started to look.
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

/// Bring the workspace back as it was before this step, and with it before all later ones. That is a step
/// too, and can be undone. Refused while calls run, and where something else would change than was shown.
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
