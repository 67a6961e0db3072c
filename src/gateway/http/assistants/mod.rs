//! Assistants (`/api/assistants`): lists, adds, reads, changes, shares, exports and deletes them.

mod body;

use axum::Json;
use axum::extract::{DefaultBodyLimit, FromRequest as _, Path, Request, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, HeaderMap, HeaderValue};
use serde::Deserialize;
use utoipa::IntoParams;

pub(super) use self::body::ServerToolsBody;
use self::body::{
    AccessList, AccessListBody, AssistantBody, AssistantDefinitionItem, AssistantDetails,
    AssistantFileBody, AssistantItem, AssistantVersionDetails, AssistantVersionItem,
    AssistantVersions, AssistantsPage,
};
use crate::domain::{AssistantId, Caller, Code};
use crate::gateway::GatewayState;
use crate::gateway::api_router::{ApiRouter, routes};
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, Query, required};
use crate::gateway::paging::PageQuery;

/// The largest body, in bytes: files of 4 MiB in base64, and the rest.
const MAX_BODY: usize = 7 * 1024 * 1024;

/// The routes of assistants.
pub(super) fn routes() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(list_assistants, create_assistant))
        .routes(routes!(read_assistant, change_assistant, delete_assistant))
        .routes(routes!(export_assistant))
        .routes(routes!(list_assistant_versions))
        .routes(routes!(read_assistant_version))
        .routes(routes!(restore_assistant_version))
        .routes(routes!(read_assistant_access, set_assistant_access))
}

/// Whose a new assistant is.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct ScopeQuery {
    /// `person` (the caller's own) or `team` (only for admins).
    #[param(pattern = "^(person|team)$", required, nullable = false)]
    scope: Option<String>,
}

fn assistant_id(id: &str) -> Result<AssistantId, ApiError> {
    AssistantId::parse(id)
        .ok_or_else(|| ApiError::new(Code::NotFound, "there is no such assistant"))
}

/// Reads a body, which may bring files along. It counts as an upload of the caller until it is read.
async fn read_body(
    state: &GatewayState,
    caller: &Caller,
    mut request: Request,
) -> Result<AssistantBody, ApiError> {
    let assistants = state.sessions.assistants();
    let _counted = assistants.begin_upload(caller)?;
    DefaultBodyLimit::max(MAX_BODY).apply(&mut request);
    let Body(body) = Body::from_request(request, state).await?;
    Ok(body)
}

/// Lists the assistants that the caller may see, by name.
#[utoipa::path(get, path = "/api/assistants", tag = "assistants", params(PageQuery),
    responses((status = 200, body = AssistantsPage), (status = 401, body = Problem)),
)]
async fn list_assistants(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Json<AssistantsPage>, ApiError> {
    let views = state.sessions.assistants().list(&caller).await?;
    let page = query.page(views, |view| view.row.id.to_string())?;
    Ok(Json(AssistantsPage::of(page)))
}

/// Adds an assistant of the caller or, as an admin, of the team. The body may be an exported assistant.
#[utoipa::path(post, path = "/api/assistants", tag = "assistants", params(ScopeQuery),
    request_body = AssistantBody,
    responses((status = 201, body = AssistantItem), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 413, body = Problem)),
)]
async fn create_assistant(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(query): Query<ScopeQuery>,
    request: Request,
) -> Result<(StatusCode, Json<AssistantItem>), ApiError> {
    let scope = body::scope(&required("scope", query.scope)?)?;
    let draft = read_body(&state, &caller, request).await?.draft()?;
    let assistants = state.sessions.assistants();
    let view = assistants.add(&caller, scope, draft).await?;
    Ok((StatusCode::CREATED, Json(AssistantItem::of(view))))
}

/// Returns an assistant with its newest version.
#[utoipa::path(get, path = "/api/assistants/{id}", tag = "assistants",
    params(("id" = String, Path)),
    responses((status = 200, body = AssistantDetails), (status = 404, body = Problem)),
)]
async fn read_assistant(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<AssistantDetails>, ApiError> {
    let assistants = state.sessions.assistants();
    let (view, definition) = assistants.read(&caller, &assistant_id(&id)?).await?;
    Ok(Json(AssistantDetails {
        item: AssistantItem::of(view),
        definition: AssistantDefinitionItem::of(&definition),
    }))
}

/// Changes an assistant: stores its next version. Sessions keep the version that they have.
#[utoipa::path(put, path = "/api/assistants/{id}", tag = "assistants",
    params(("id" = String, Path)), request_body = AssistantBody,
    responses((status = 200, body = AssistantItem), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem),
        (status = 409, body = Problem), (status = 413, body = Problem)),
)]
async fn change_assistant(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    request: Request,
) -> Result<Json<AssistantItem>, ApiError> {
    let id = assistant_id(&id)?;
    let assistants = state.sessions.assistants();
    // Checked before the body, so that nobody sends megabytes only to be refused.
    assistants.find(&caller, &id).await?;
    let draft = read_body(&state, &caller, request).await?.draft()?;
    let view = assistants.change(&caller, &id, draft).await?;
    Ok(Json(AssistantItem::of(view)))
}

/// Deletes an assistant with all its versions. Its sessions can be read, and start no new turn.
#[utoipa::path(delete, path = "/api/assistants/{id}", tag = "assistants",
    params(("id" = String, Path)),
    responses((status = 204), (status = 403, body = Problem), (status = 404, body = Problem)),
)]
async fn delete_assistant(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    let assistants = state.sessions.assistants();
    assistants.remove(&caller, &assistant_id(&id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the newest version as one JSON file, with its files and without any secret. Posting it makes a copy.
#[utoipa::path(get, path = "/api/assistants/{id}/export", tag = "assistants",
    params(("id" = String, Path)),
    responses((status = 200, body = AssistantBody), (status = 404, body = Problem)),
)]
async fn export_assistant(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<(HeaderMap, Json<AssistantBody>), ApiError> {
    let exported = export(&state, &caller, &assistant_id(&id)?).await?;
    let mut headers = HeaderMap::new();
    let disposition = HeaderValue::from_static("attachment; filename=\"assistant.json\"");
    headers.insert(CONTENT_DISPOSITION, disposition);
    Ok((headers, Json(exported)))
}

/// The newest version of an assistant with its files.
pub(super) async fn export(
    state: &GatewayState,
    caller: &Caller,
    id: &AssistantId,
) -> Result<AssistantBody, ApiError> {
    let assistants = state.sessions.assistants();
    let (_, definition) = assistants.read(caller, id).await?;
    let mut files = Vec::with_capacity(definition.files.len());
    for file in &definition.files {
        let (file, content) = assistants.file(caller, id, &file.id).await?;
        files.push(AssistantFileBody::whole(&file, &content));
    }
    Ok(AssistantBody::export(&definition, files))
}

/// Lists the versions of an assistant, newest first.
#[utoipa::path(get, path = "/api/assistants/{id}/versions", tag = "assistants",
    params(("id" = String, Path), PageQuery),
    responses((status = 200, body = AssistantVersions), (status = 404, body = Problem)),
)]
async fn list_assistant_versions(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<PageQuery>,
) -> Result<Json<AssistantVersions>, ApiError> {
    let assistants = state.sessions.assistants();
    let versions = assistants.versions(&caller, &assistant_id(&id)?).await?;
    let page = query.page(versions, |version| version.version.to_string())?;
    Ok(Json(AssistantVersions {
        items: page.items.iter().map(AssistantVersionItem::of).collect(),
        next_cursor: page.next_cursor,
    }))
}

/// Returns one version of an assistant.
#[utoipa::path(get, path = "/api/assistants/{id}/versions/{version}", tag = "assistants",
    params(("id" = String, Path), ("version" = u64, Path)),
    responses((status = 200, body = AssistantVersionDetails), (status = 404, body = Problem)),
)]
async fn read_assistant_version(
    State(state): State<GatewayState>,
    caller: Caller,
    Path((id, version)): Path<(String, String)>,
) -> Result<Json<AssistantVersionDetails>, ApiError> {
    let (id, version) = (assistant_id(&id)?, number(&version)?);
    let assistants = state.sessions.assistants();
    let definition = assistants.read_version(&caller, &id, version).await?;
    Ok(Json(AssistantVersionDetails {
        version,
        definition: AssistantDefinitionItem::of(&definition),
        name: definition.name,
        description: definition.description,
    }))
}

/// Stores an earlier version again, as the newest one.
#[utoipa::path(post, path = "/api/assistants/{id}/versions/{version}/restore", tag = "assistants",
    params(("id" = String, Path), ("version" = u64, Path)),
    responses((status = 200, body = AssistantItem), (status = 403, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem)),
)]
async fn restore_assistant_version(
    State(state): State<GatewayState>,
    caller: Caller,
    Path((id, version)): Path<(String, String)>,
) -> Result<Json<AssistantItem>, ApiError> {
    let (id, version) = (assistant_id(&id)?, number(&version)?);
    let assistants = state.sessions.assistants();
    let view = assistants.restore(&caller, &id, version).await?;
    Ok(Json(AssistantItem::of(view)))
}

/// Returns who may do what with an assistant, to its owners.
#[utoipa::path(get, path = "/api/assistants/{id}/access", tag = "assistants",
    params(("id" = String, Path)),
    responses((status = 200, body = AccessList), (status = 403, body = Problem),
        (status = 404, body = Problem)),
)]
async fn read_assistant_access(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<AccessList>, ApiError> {
    let assistants = state.sessions.assistants();
    let entries = assistants.access(&caller, &assistant_id(&id)?).await?;
    Ok(Json(AccessList::of(entries)))
}

/// Says anew who may do what with an assistant.
#[utoipa::path(put, path = "/api/assistants/{id}/access", tag = "assistants",
    params(("id" = String, Path)), request_body = AccessListBody,
    responses((status = 200, body = AccessList), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem)),
)]
async fn set_assistant_access(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    Body(body): Body<AccessListBody>,
) -> Result<Json<AccessList>, ApiError> {
    let id = assistant_id(&id)?;
    let assistants = state.sessions.assistants();
    assistants.find(&caller, &id).await?;
    assistants.set_access(&caller, &id, body.entries()?).await?;
    Ok(Json(AccessList::of(assistants.access(&caller, &id).await?)))
}

fn number(text: &str) -> Result<u64, ApiError> {
    let missing = || ApiError::new(Code::NotFound, "the assistant has no such version");
    text.parse().map_err(|_| missing())
}
