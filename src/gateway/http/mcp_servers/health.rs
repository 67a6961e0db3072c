//! Reports the health of MCP servers (S2.56) from memory: nothing is started for a report (O12).

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use serde::Serialize;
use utoipa::ToSchema;

use super::body::{McpHealth, ServerHealth};
use crate::domain::Caller;
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::servers::{HealthStep, Status};

/// The state of all MCP servers, and how many there are of each.
#[utoipa::path(get, path = "/api/mcp/health", tag = "mcp", responses(
    (status = 200, body = McpHealth), (status = 401, body = Problem),
))]
pub(in crate::gateway) async fn read_mcp_health(
    State(state): State<GatewayState>,
    caller: Caller,
) -> Result<Json<McpHealth>, ApiError> {
    let servers = state.servers.reports(&caller).list().await?;
    let mcps: Vec<ServerHealth> = servers.into_iter().map(ServerHealth::from).collect();
    let count = |status: Status| {
        mcps.iter()
            .filter(|it| it.status == status.as_str())
            .count()
    };
    let counted = Status::ALL.map(|status| (status.as_str(), count(status)));
    let mut summary = BTreeMap::from(counted);
    summary.insert("total", mcps.len());
    Ok(Json(McpHealth { summary, mcps }))
}

/// How one server is, and was.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct ServerDay {
    #[serde(flatten)]
    now: ServerHealth,
    /// How long each step is, in seconds.
    step_seconds: i64,
    /// The steps of the last 24 hours in which it was used or looked at, oldest first.
    steps: Vec<ServerStep>,
}

#[derive(Serialize, ToSchema)]
struct ServerStep {
    /// When it began.
    from: String,
    /// How often the server answered.
    well: u32,
    /// How often it did not, or not well.
    badly: u32,
}

/// How one server is, and what was seen of it in the last 24 hours: by this gateway, since it
/// started, in uses by the caller's tenant, in tests and in looks of the installation.
#[utoipa::path(get, path = "/api/mcp/{name}/health", tag = "mcp", params(("name" = String, Path)), responses(
    (status = 200, body = ServerDay), (status = 401, body = Problem), (status = 404, body = Problem),
))]
pub(in crate::gateway) async fn read_mcp_server_health(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<ServerDay>, ApiError> {
    let server = state.servers.reports(&caller).one(&name).await?;
    let steps = state.servers.reports(&caller).day(&name).await?;
    let step = |step: HealthStep| ServerStep {
        from: step.from.to_rfc3339(),
        well: step.well,
        badly: step.badly,
    };
    Ok(Json(ServerDay {
        now: server.into(),
        step_seconds: HealthStep::SECONDS,
        steps: steps.into_iter().map(step).collect(),
    }))
}
