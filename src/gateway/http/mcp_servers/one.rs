//! Reads, changes and removes one server, sets its secrets and reads its log.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde_json::Value;

use super::body::{RemoveServerResponse, SecretRequest, Server, ServerLogs};
use crate::domain::Caller;
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, required};

/// Returns one MCP server.
#[utoipa::path(get, path = "/api/mcp/{name}", tag = "mcp", params(("name" = String, Path)), responses(
    (status = 200, body = Server), (status = 401, body = Problem), (status = 404, body = Problem),
))]
pub(in crate::gateway) async fn read_mcp_server(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<Server>, ApiError> {
    Ok(Json(
        state.servers.reports(&caller).one(&name).await?.into(),
    ))
}

/// Changes the entry of a server by a JSON merge patch of its fields.
///
/// `null` removes a field; `••••` keeps a value that was shown masked. Open sessions use the change from
/// their next model request on.
#[utoipa::path(patch, path = "/api/mcp/{name}", tag = "mcp", params(("name" = String, Path)),
    request_body = Object, responses(
    (status = 200, body = Server), (status = 400, body = Problem), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem),
))]
pub(in crate::gateway) async fn change_mcp_server(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(name): Path<String>,
    Body(patch): Body<Value>,
) -> Result<Json<Server>, ApiError> {
    state
        .servers
        .administration(&caller)
        .change(&name, &patch)
        .await?;
    Ok(Json(
        state.servers.reports(&caller).one(&name).await?.into(),
    ))
}

/// Removes a server with its secrets and all decisions about its tools. Open sessions lose their connections
/// to it.
#[utoipa::path(delete, path = "/api/mcp/{name}", tag = "mcp", params(("name" = String, Path)), responses(
    (status = 200, body = RemoveServerResponse), (status = 401, body = Problem), (status = 403, body = Problem),
    (status = 404, body = Problem), (status = 409, body = Problem),
))]
pub(in crate::gateway) async fn delete_mcp_server(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<RemoveServerResponse>, ApiError> {
    state.servers.administration(&caller).remove(&name).await?;
    Ok(Json(RemoveServerResponse { ok: true, name }))
}

/// Sets the value of `${secret:NAME}` in a server's entry.
///
/// The value is stored sealed and never returned. Connections that use the old value are replaced.
#[utoipa::path(put, path = "/api/mcp/{name}/secrets/{secret}", tag = "mcp",
    params(("name" = String, Path), ("secret" = String, Path)), request_body = SecretRequest,
    responses(
    (status = 204), (status = 400, body = Problem), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem),
))]
pub(in crate::gateway) async fn set_mcp_secret(
    State(state): State<GatewayState>,
    caller: Caller,
    Path((name, secret)): Path<(String, String)>,
    Body(request): Body<SecretRequest>,
) -> Result<StatusCode, ApiError> {
    // Checked first: a caller who may not see the server learns only that.
    state.servers.reports(&caller).one(&name).await?;
    let value = required("value", request.value)?;

    state
        .servers
        .administration(&caller)
        .set_secret(name.as_str(), secret.as_str(), &value)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes a secret of a server.
#[utoipa::path(delete, path = "/api/mcp/{name}/secrets/{secret}", tag = "mcp",
    params(("name" = String, Path), ("secret" = String, Path)), responses(
    (status = 204), (status = 401, body = Problem), (status = 403, body = Problem),
    (status = 404, body = Problem), (status = 409, body = Problem),
))]
pub(in crate::gateway) async fn delete_mcp_secret(
    State(state): State<GatewayState>,
    caller: Caller,
    Path((name, secret)): Path<(String, String)>,
) -> Result<StatusCode, ApiError> {
    state
        .servers
        .administration(&caller)
        .remove_secret(name.as_str(), secret.as_str())
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the last lines that a server wrote to stderr in sessions of the caller's tenant. Only for the
/// server's admins.
#[utoipa::path(get, path = "/api/mcp/{name}/logs", tag = "mcp", params(("name" = String, Path)), responses(
    (status = 200, body = ServerLogs), (status = 401, body = Problem), (status = 403, body = Problem),
    (status = 404, body = Problem),
))]
pub(in crate::gateway) async fn read_mcp_logs(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<ServerLogs>, ApiError> {
    Ok(Json(
        state.servers.reports(&caller).logs(&name).await?.into(),
    ))
}
