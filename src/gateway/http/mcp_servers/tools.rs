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
use crate::gateway::extract::{Body, Query};
use crate::gateway::paging::PageQuery;
use crate::gateway::word_list;
use crate::servers::{ToolChange, ToolReport};
use crate::session::PolicyEffect;

/// A tool of a server.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct ServerTool {
    /// The tool's name at its server.
    name: String,
    /// The name that models use; the name at the server if models are not offered the tool.
    model_name: String,
    /// The tool's name for people; absent if the server gives none.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// The description, as models read it.
    description: String,
    /// The JSON Schema of the tool's arguments.
    schema: Value,
    /// The server's claims about the tool.
    #[schema(value_type = Object)]
    annotations: ToolAnnotations,
    /// The hash of this definition, to send with a decision about it.
    hash: String,
    /// True if the tool is enabled.
    enabled: bool,
    /// True if the tool works only as a task, which its server does not support. Such a tool is not offered
    /// to models, even if enabled.
    needs_tasks: bool,
    /// True if only views may call the tool. Such a tool is not offered to models, even if enabled.
    app_only: bool,
    /// The address of the tool's view at the server (`ui://…`); absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    view: Option<String>,
    /// The effect on calls of the tool.
    #[schema(value_type = word_list::ToolEffect)]
    effect: PolicyEffect,
    /// Present if the definition differs from the one that the tenant accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    drift: Option<Drift>,
}

/// A tool's difference from the definition that the tenant accepted.
#[derive(Serialize, ToSchema)]
struct Drift {
    /// When the definition was first seen to differ (RFC 3339).
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
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct ServerTools {
    /// The tools.
    items: Vec<ServerTool>,
    /// The cursor of the next page; `null` if there is none.
    next_cursor: Option<String>,
}

/// A decision about a tool; absent fields stay unchanged.
#[derive(Deserialize, ToSchema)]
pub(in crate::gateway) struct ToolRequest {
    /// True to enable the tool, false to disable it.
    enabled: Option<bool>,
    /// The effect on calls of the tool: `ask`, `allow` or `deny`.
    #[schema(value_type = Option<String>, pattern = "^(ask|allow|deny)$")]
    effect: Option<PolicyEffect>,
    /// The `hash` of the definition that was read; if given, it has to be the current one. It is required for
    /// the effects `ask` and `allow` if the definition has changed.
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

/// Lists the tools of a server, with the tenant's decisions about them.
#[utoipa::path(get, path = "/api/mcp/{name}/tools", tag = "mcp", params(("name" = String, Path), PageQuery), responses(
    (status = 200, body = ServerTools), (status = 401, body = Problem), (status = 404, body = Problem),
))]
pub(in crate::gateway) async fn list_mcp_tools(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(name): Path<String>,
    Query(query): Query<PageQuery>,
) -> Result<Json<ServerTools>, ApiError> {
    let tools = state.servers.reports(&caller).tools(&name).await?;
    let tools = tools.into_iter().map(ServerTool::from).collect();
    let page = query.page(tools, |tool: &ServerTool| tool.name.clone())?;
    Ok(Json(ServerTools {
        items: page.items,
        next_cursor: page.next_cursor,
    }))
}

/// Decides about a tool for the caller's tenant.
///
/// An `effect` also accepts the tool's definition, so that a changed definition counts as known again; `hash`
/// names the definition that was read. `enabled` alone accepts nothing.
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
    let tool = state
        .servers
        .administration(&caller)
        .set_tool(name.as_str(), tool.as_str(), request.into())
        .await?;
    Ok(Json(tool.into()))
}

/// Lists the definitions of a tool that the caller's tenant was offered, newest first: when each was first
/// seen, and how it differs from the previous one. The newest 20 are kept.
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
