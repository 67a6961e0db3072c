//! Lists the tools of a server, and sets a tenant's decision about each.

use axum::Json;
use axum::extract::{Path, State};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::history::ToolHistory;
use crate::domain::{Caller, Digest, ToolAnnotations};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::Body;
use crate::gateway::word_list;
use crate::servers::{ToolChange, ToolReport};
use crate::session::PolicyEffect;

/// A tool as people see it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct ServerTool {
    /// The server's own name for it.
    name: String,
    /// The name that the model uses.
    model_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// As the model reads it.
    description: String,
    /// JSON Schema of its arguments.
    schema: Value,
    /// Claims of the server.
    #[schema(value_type = Object)]
    annotations: ToolAnnotations,
    /// Names this definition, for a decision about it.
    hash: String,
    /// Whether the model is told of it.
    enabled: bool,
    /// Whether it works only as a task: then the model is not told of it, enabled or not.
    needs_tasks: bool,
    /// Whether only views may call it: then the model is not told of it either.
    app_only: bool,
    /// The address of its view at the server, `ui://…`.
    #[serde(skip_serializing_if = "Option::is_none")]
    view: Option<String>,
    /// What is done with its calls.
    #[schema(value_type = word_list::ToolEffect)]
    effect: PolicyEffect,
    /// Since when it is another than the one that the tenant said yes to.
    #[serde(skip_serializing_if = "Option::is_none")]
    drift: Option<Drift>,
}

#[derive(Serialize, ToSchema)]
struct Drift {
    since: String,
}

impl From<ToolReport> for ServerTool {
    fn from(report: ToolReport) -> Self {
        Self {
            model_name: report.model_name.unwrap_or_else(|| report.name.clone()),
            name: report.name,
            title: report.title,
            description: report.description,
            schema: report.schema,
            annotations: report.annotations,
            hash: report.hash.as_str().to_owned(),
            enabled: report.enabled,
            needs_tasks: report.needs_tasks,
            app_only: report.view.as_ref().is_some_and(|view| view.is_app_only),
            view: report.view.and_then(|view| view.uri.clone()),
            effect: report.effect,
            drift: report.drift.map(|since| Drift {
                since: since.to_rfc3339(),
            }),
        }
    }
}

/// The tools of a server.
#[derive(Serialize, ToSchema)]
pub(in crate::gateway) struct ServerTools {
    items: Vec<ServerTool>,
}

/// What is decided about a tool; what is left out stays.
#[derive(Deserialize, ToSchema)]
pub(in crate::gateway) struct ToolRequest {
    enabled: Option<bool>,
    /// `ask`, `allow` or `deny`.
    #[schema(value_type = Option<String>, pattern = "^(ask|allow|deny)$")]
    effect: Option<PolicyEffect>,
    /// The `hash` of the definition that was read. It is needed to let a tool run or ask whose
    /// definition has changed; where it is given, it has to be that of now.
    hash: Option<String>,
}

impl From<ToolRequest> for ToolChange {
    fn from(request: ToolRequest) -> Self {
        Self {
            enabled: request.enabled,
            effect: request.effect,
            hash: request.hash.map(Digest::from_wire),
        }
    }
}

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
