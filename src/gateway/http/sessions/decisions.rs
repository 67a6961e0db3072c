//! Exports the decisions of a session as one signed document.

use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{IntoResponse as _, Response};

use super::key_of;
use crate::domain::{Caller, Timestamp};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::SessionPath;
use crate::session::proof::DecisionDocument;

/// Exports the decisions of a session as one signed document, which anybody can verify with the public key of
/// the installation (docs/audit.md): who sent, asked, decided, changed and ran what. Its owner may, and admins
/// of the tenant, whose document has no arguments.
#[utoipa::path(get, path = "/api/sessions/{id}/decisions", tag = "sessions",
    params(("id" = String, Path)),
    responses((status = 200, description = "The document.", content(
        (serde_json::Value = "application/json"),
    )), (status = 404, body = Problem), (status = 413, body = Problem), (status = 429, body = Problem),
        (status = 500, body = Problem)),
)]
pub(in crate::gateway::http) async fn export_decisions(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
) -> Result<Response, ApiError> {
    let key = key_of(&caller, session);
    // Checked before the limit of exports: to anybody else the session does not exist, even if we are busy.
    let decisions = state.sessions.decisions(&key, &caller).await?;
    let reader = state.documents.begin_export(&caller)?;
    if !decisions.is_owner() {
        state.audit.note_decisions(&key).await?;
    }
    let has_arguments = decisions.is_owner() && state.audit.has_arguments();
    let document = DecisionDocument::new(&key, has_arguments);
    let now = Timestamp(jiff::Timestamp::now().as_millisecond());
    let signing = (state.audit.clone(), now);
    let written = state.documents.prove(document, &decisions, signing).await?;
    let body = (state.documents).send(written, reader, |_| async { Ok(None) });
    let disposition = format!("attachment; filename=\"decisions-{}.json\"", key.session);
    let disposition = HeaderValue::from_str(&disposition)
        .unwrap_or_else(|_| HeaderValue::from_static("attachment"));
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (CONTENT_DISPOSITION, disposition),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, body).into_response())
}
