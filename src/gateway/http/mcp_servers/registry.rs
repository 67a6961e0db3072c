//! All servers, and new ones.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use super::body::{AddServerRequest, AddServerResponse, Server, ServerList};
use crate::domain::Caller;
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::Body;

/// The MCP servers that the caller's sessions are offered.
#[utoipa::path(get, path = "/api/mcp", tag = "mcp", responses(
    (status = 200, body = ServerList), (status = 401, body = Problem),
))]
pub(in crate::gateway) async fn list_mcp_servers(
    State(state): State<GatewayState>,
    caller: Caller,
) -> Result<Json<ServerList>, ApiError> {
    let items = state.servers.reports(&caller).list().await?;
    let problems = if caller.user.installation_admin {
        state.servers.file_problems()
    } else {
        Vec::new()
    };
    Ok(Json(ServerList {
        items: items.into_iter().map(Server::from).collect(),
        problems,
    }))
}

/// Adds a server: for all tenants by an installation admin, else for the caller's own.
#[utoipa::path(post, path = "/api/mcp/add", tag = "mcp", request_body = AddServerRequest, responses(
    (status = 201, body = AddServerResponse), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem), (status = 409, body = Problem),
    (status = 500, body = Problem),
))]
pub(in crate::gateway) async fn add_mcp_server(
    State(state): State<GatewayState>,
    caller: Caller,
    Body(request): Body<AddServerRequest>,
) -> Result<(StatusCode, Json<AddServerResponse>), ApiError> {
    let new = request.read(None)?;
    let name = new.name.clone();
    state.servers.administration(&caller).add(new).await?;
    Ok((StatusCode::CREATED, Json(AddServerResponse { name })))
}
