//! Lists the changes in a session's workspace with their authors, and undoes them. These routes are the
//! owner's alone; people with whom the session is shared see no changes.

mod body;
mod file;
mod steps;
mod undo;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;

use crate::domain::{Code, SessionId};
use crate::gateway::api_router::{ApiRouter, routes};
use crate::gateway::error::ApiError;

/// The most paths in one response.
const MOST_FILES: usize = 1000;

pub(super) fn routes() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(steps::list_changes))
        .routes(routes!(steps::read_change))
        .routes(routes!(file::read_changed_file))
        .routes(routes!(undo::plan_undo, undo::undo_change))
}

/// The session and the step of `/api/sessions/{id}/changes/{number}`.
pub(in crate::gateway::http) struct StepPath {
    session: SessionId,
    number: u64,
}

impl<S: Send + Sync> FromRequestParts<S> for StepPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let unknown = || ApiError::new(Code::SessionNotFound, "there is no such session");
        let path = Path::<(String, String)>::from_request_parts(parts, state).await;
        let Path((session, number)) = path.map_err(|_| unknown())?;
        let session = SessionId::parse(&session).ok_or_else(unknown)?;
        // No session has a change that is not a number, so this answer tells nobody anything.
        let missing = |_| ApiError::new(Code::NotFound, "there is no such change");
        let number = number.parse().map_err(missing)?;
        Ok(Self { session, number })
    }
}
