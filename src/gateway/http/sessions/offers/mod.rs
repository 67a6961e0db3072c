//! Resources and prompts that a session's MCP servers offer beside tools. Lists come from memory; contents
//! are read over the session's own connections.

mod body;
mod views;

use axum::Json;
use axum::extract::State;

pub(super) use self::body::ReadResourceRequest;

use self::body::{
    CompleteArgumentRequest, Completion, GetPromptRequest, Prompt, ResourceContents,
    SessionPrompts, SessionResources,
};
use super::key_of;
use crate::agent::SessionOffers;
use crate::domain::{Caller, ResourceRef};
use crate::gateway::GatewayState;
use crate::gateway::api_router::{ApiRouter, routes};
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, SessionPath};

/// The routes of resources, prompts, completions and views.
pub(super) fn routes() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(list_resources))
        .routes(routes!(read_resource))
        .routes(routes!(list_prompts))
        .routes(routes!(get_prompt))
        .routes(routes!(complete_argument))
        .routes(routes!(views::read_view))
        .routes(routes!(views::read_for_view))
        .routes(routes!(views::read_view_frame))
}

/// Lists the resources that the session's MCP servers offer, as they were last listed. No server is started.
#[utoipa::path(get, path = "/api/sessions/{id}/resources", tag = "sessions",
    params(("id" = String, Path)),
    responses((status = 200, body = SessionResources), (status = 404, body = Problem)),
)]
pub(in crate::gateway::http) async fn list_resources(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
) -> Result<Json<SessionResources>, ApiError> {
    let key = key_of(&caller, session);
    let listed = SessionOffers::of(&state.sessions)
        .list(&key, &caller)
        .await?;
    Ok(Json(listed.into()))
}

/// Reads a resource over the session's own connection, and stores its current content with the session.
///
/// A message names the content in `attachments`.
#[utoipa::path(post, path = "/api/sessions/{id}/resources/read", tag = "sessions",
    params(("id" = String, Path)), request_body = ReadResourceRequest,
    responses((status = 200, body = ResourceContents), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem),
        (status = 413, body = Problem), (status = 502, body = Problem)),
)]
pub(in crate::gateway::http) async fn read_resource(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    Body(request): Body<ReadResourceRequest>,
) -> Result<Json<ResourceContents>, ApiError> {
    let key = key_of(&caller, session);
    let resource: ResourceRef = request.into();
    let offers = SessionOffers::of(&state.sessions);
    let read = offers.read(&key, &caller, &resource).await?;
    Ok(Json(read.into()))
}

/// Lists the prompts that the session's MCP servers offer, as they were last listed. No server is started.
#[utoipa::path(get, path = "/api/sessions/{id}/prompts", tag = "sessions",
    params(("id" = String, Path)),
    responses((status = 200, body = SessionPrompts), (status = 404, body = Problem)),
)]
pub(in crate::gateway::http) async fn list_prompts(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
) -> Result<Json<SessionPrompts>, ApiError> {
    let key = key_of(&caller, session);
    let listed = SessionOffers::of(&state.sessions)
        .list(&key, &caller)
        .await?;
    Ok(Json(listed.into()))
}

/// Gets the messages of a prompt from an MCP server.
///
/// Nothing is said in the session. Files in the messages are stored with the session.
#[utoipa::path(post, path = "/api/sessions/{id}/prompts/get", tag = "sessions",
    params(("id" = String, Path)), request_body = GetPromptRequest,
    responses((status = 200, body = Prompt), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem),
        (status = 502, body = Problem)),
)]
pub(in crate::gateway::http) async fn get_prompt(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    Body(request): Body<GetPromptRequest>,
) -> Result<Json<Prompt>, ApiError> {
    let key = key_of(&caller, session);
    let GetPromptRequest {
        server,
        name,
        arguments,
    } = request;
    let arguments = arguments.into_iter();
    let arguments = arguments
        .map(|(name, value)| (name, value.into()))
        .collect();
    let offers = SessionOffers::of(&state.sessions);
    let given = offers.prompt(&key, &caller, &server, &name, arguments);
    Ok(Json(given.await?.into()))
}

/// Returns values that an argument of a prompt or of a template of addresses may have, as its server suggests
/// them.
#[utoipa::path(post, path = "/api/sessions/{id}/completions", tag = "sessions",
    params(("id" = String, Path)), request_body = CompleteArgumentRequest,
    responses((status = 200, body = Completion), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem),
        (status = 502, body = Problem)),
)]
pub(in crate::gateway::http) async fn complete_argument(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    Body(request): Body<CompleteArgumentRequest>,
) -> Result<Json<Completion>, ApiError> {
    let key = key_of(&caller, session);
    let (server, completing) = request.completing()?;
    let offers = SessionOffers::of(&state.sessions);
    let values = offers.complete(&key, &caller, &server, &completing);
    Ok(Json(Completion {
        values: values.await?,
    }))
}
