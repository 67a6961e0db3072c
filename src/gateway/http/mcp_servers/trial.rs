//! Tests and restarts servers: start, handshake and list of tools, each with its duration.

use axum::Json;
use axum::extract::{Path, State};
use serde::Serialize;
use utoipa::ToSchema;

use super::body::{AddServerRequest, TestServerResponse};
use crate::domain::Caller;
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::Body;

/// Tests a stored server by starting it in a temporary place, which is deleted afterwards.
#[utoipa::path(post, path = "/api/mcp/{name}/test", tag = "mcp", params(("name" = String, Path)), responses(
    (status = 200, body = TestServerResponse), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem),
))]
pub(in crate::gateway) async fn test_mcp_server(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<TestServerResponse>, ApiError> {
    Ok(Json(
        state.servers.trials(&caller).test(&name).await?.into(),
    ))
}

/// Tests a server entry that is not stored, by starting it in a temporary place, which is deleted afterwards.
#[utoipa::path(post, path = "/api/mcp/test", tag = "mcp", request_body = AddServerRequest, responses(
    (status = 200, body = TestServerResponse), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem),
))]
pub(in crate::gateway) async fn test_new_mcp_server(
    State(state): State<GatewayState>,
    caller: Caller,
    Body(request): Body<AddServerRequest>,
) -> Result<Json<TestServerResponse>, ApiError> {
    let new = request.read(Some("new"))?;
    Ok(Json(
        state.servers.trials(&caller).test_new(new).await?.into(),
    ))
}

/// The result of a server's restart.
#[derive(Serialize, ToSchema)]
pub(in crate::gateway) struct RestartServerResponse {
    /// The number of running connections that ended at the gateway that handled the request.
    ended: usize,
    #[serde(flatten)]
    start: TestServerResponse,
}

/// Ends the connections that sessions of the caller's tenant have to a server, and lists its tools again.
///
/// Other gateways are told to do the same. A running call fails; the next call starts the server again.
#[utoipa::path(post, path = "/api/mcp/{name}/restart", tag = "mcp", params(("name" = String, Path)), responses(
    (status = 200, body = RestartServerResponse), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem),
))]
pub(in crate::gateway) async fn restart_mcp_server(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<RestartServerResponse>, ApiError> {
    let (ended, report) = state.servers.trials(&caller).restart(&name).await?;
    Ok(Json(RestartServerResponse {
        ended,
        start: report.into(),
    }))
}
