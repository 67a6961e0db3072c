//! Reads a changed file before and after, for a comparison.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::super::key_of;
use super::StepPath;
use super::body::ChangedEntry;
use crate::agent::WorkspaceHistory;
use crate::domain::{Caller, FileState};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Query, required};

/// The changed file to read.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::gateway::http) struct ChangedFileQuery {
    /// The `path` of the change.
    #[param(max_length = 20_480, required)]
    path: Option<String>,
}

/// An entry with its content.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct EntryContent {
    #[serde(flatten)]
    entry: ChangedEntry,
    /// The content of a text file, at most 1 MiB; `null` if the content is not UTF-8 text, or is not kept.
    text: Option<String>,
}

/// A changed file before and after a step.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct ChangedFile {
    /// The path of the file.
    path: String,
    /// The file before the step; `null` if there was none.
    before: Option<EntryContent>,
    /// The file after the step; `null` if it was deleted.
    after: Option<EntryContent>,
}

/// Returns a file that a step changed, with its contents before and after.
///
/// The contents come from inside the sandbox: treat them as hostile.
#[utoipa::path(get, path = "/api/sessions/{id}/changes/{number}/file", tag = "sessions",
    params(("id" = String, Path), ("number" = u64, Path), ChangedFileQuery),
    responses((status = 200, body = ChangedFile), (status = 400, body = Problem),
        (status = 404, body = Problem)),
)]
pub(in crate::gateway::http) async fn read_changed_file(
    State(state): State<GatewayState>,
    caller: Caller,
    StepPath { session, number }: StepPath,
    Query(query): Query<ChangedFileQuery>,
) -> Result<Json<ChangedFile>, ApiError> {
    let key = key_of(&caller, session);
    let history = WorkspaceHistory::open(&state.sessions, &key, &caller).await?;
    let path = required("path", query.path)?;
    let (before, after) = history.file(number, &path).await?;
    Ok(Json(ChangedFile {
        path,
        before: before.map(shown),
        after: after.map(shown),
    }))
}

fn shown((state, content): (FileState, Option<Vec<u8>>)) -> EntryContent {
    // Content with NUL is not text to anybody, though it may be valid UTF-8.
    let text = content.filter(|content| !content.contains(&0));
    EntryContent {
        entry: ChangedEntry::of(&state),
        text: text.and_then(|content| String::from_utf8(content).ok()),
    }
}
