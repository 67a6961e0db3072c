//! The tools of a server, and what a tenant decides about each.

use axum::Json;
use axum::extract::{Path, State};

use super::body::{ServerTool, ServerTools, ToolRequest};
use super::history::ToolHistory;
use crate::domain::Caller;
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::Body;

/// What a server offers, and what was decided about it.
#[utoipa::path(get, path = "/api/mcp/{name}/tools", tag = "mcp", params(("name" = String, Path)), responses(
    (status = 200, body = ServerTools), (status = 401, body = Problem), (status = 404, body = Problem),
))]
pub(in crate::gateway) async fn list_mcp_tools(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<ServerTools>, ApiError> {
    let tools = state.servers.reports(&caller).tools(&name).await?;
    Ok(Json(ServerTools {
        items: tools.into_iter().map(ServerTool::from).collect(),
    }))
}

/// Decides about a tool for the caller's tenant. An `effect` says yes to the tool's definition, so that
/// a changed one counts as known again; `hash` names the definition that was read. `enabled` alone says
/// nothing about it.
#[utoipa::path(put, path = "/api/mcp/{name}/tools/{tool}", tag = "mcp",
    params(("name" = String, Path), ("tool" = String, Path)), request_body = ToolRequest, responses(
    (status = 200, body = ServerTool), (status = 400, body = Problem), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem),
    (status = 409, body = Problem, description = "`changed_since_shown`: the definition is another \
        than the one that `hash` names, or it has changed and the request names none. `hash` is that \
        of now, `tool` the tool as it is now."),
))]
pub(in crate::gateway) async fn set_mcp_tool(
    State(state): State<GatewayState>,
    caller: Caller,
    Path((name, tool)): Path<(String, String)>,
    Body(request): Body<ToolRequest>,
) -> Result<Json<ServerTool>, ApiError> {
    let which = (name.as_str(), tool.as_str());
    let tool = state
        .servers
        .administration(&caller)
        .set_tool(which, request.into())
        .await?;
    Ok(Json(tool.into()))
}

/// The definitions of a tool that the caller's tenant was offered, newest first: when each was first seen,
/// and what was changed from the one before. The newest 20 are kept.
#[utoipa::path(get, path = "/api/mcp/{name}/tools/{tool}/history", tag = "mcp",
    params(("name" = String, Path), ("tool" = String, Path)), responses(
    (status = 200, body = ToolHistory), (status = 401, body = Problem), (status = 404, body = Problem),
))]
pub(in crate::gateway) async fn read_mcp_tool_history(
    State(state): State<GatewayState>,
    caller: Caller,
    Path((name, tool)): Path<(String, String)>,
) -> Result<Json<ToolHistory>, ApiError> {
    let reports = state.servers.reports(&caller);
    let history = reports.tool_history(&name, &tool).await?;
    Ok(Json(history.into()))
}
