//! Gives out everything that a person wrote as one file (`/api/people/{id}/archive`).

use axum::extract::{Path, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{IntoResponse as _, Response};
use serde_json::json;

use super::person_id;
use crate::domain::{Caller, Timestamp};
use crate::gateway::GatewayState;
use crate::gateway::api_router::{ApiRouter, routes};
use crate::gateway::archive;
use crate::gateway::error::{ApiError, Problem};

pub(super) fn routes() -> ApiRouter {
    ApiRouter::new().routes(routes!(archive_person))
}

/// Returns a zip file with who a person is (`person.json`) and their sessions with attachments
/// (`sessions/<id>.json`, each as the export of one session), which can be imported again. Everybody may have their
/// own. That of somebody whose access has ended needs `people.manage` and `sessions.read_content`.
#[utoipa::path(get, path = "/api/people/{id}/archive", tag = "people",
    params(("id" = String, Path)),
    responses((status = 200, description = "The file.", body = Vec<u8>, content_type = "application/zip"),
        (status = 403, body = Problem), (status = 404, body = Problem), (status = 429, body = Problem)))]
async fn archive_person(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let owner = state
        .tenancy
        .people(&caller)
        .find_archived(&person_id(&id)?)
        .await?;
    let reader = state.documents.begin_export(&caller)?;
    state.audit.note_archive(&owner).await?;
    let now = state.tenancy.now();
    let keys = state.tenancy.people(&owner).keys(false).await?.into_iter();
    let keys = keys.map(|key| {
        json!({
            "name": key.name,
            "createdAt": key.created_at.to_rfc3339(),
            "expiresAt": key.expires_at.map(Timestamp::to_rfc3339),
        })
    });
    let person = json!({
        "sepal": { "export": "person", "version": 1 },
        "id": owner.user.id,
        "name": owner.user.name,
        "role": owner.user.role.as_str(),
        "tenant": owner.tenant.name,
        "exportedAt": now.to_rfc3339(),
        "keys": keys.collect::<Vec<_>>(),
    });
    let headers = [
        (CONTENT_TYPE, "application/zip"),
        (
            CONTENT_DISPOSITION,
            "attachment; filename=\"sepal-archive.zip\"",
        ),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CACHE_CONTROL, "no-store"),
    ];
    let body = archive::send(state, owner, reader, format!("{person:#}\n"));
    Ok((headers, body).into_response())
}
