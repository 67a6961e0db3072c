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

/// Returns the health of all MCP servers, and the number of servers by status.
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

/// The health of a server now and in the last 24 hours.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct ServerDay {
    #[serde(flatten)]
    now: ServerHealth,
    /// The length of each step in seconds.
    step_seconds: i64,
    /// The steps of the last 24 hours in which the server was used or checked, oldest first.
    steps: Vec<ServerStep>,
}

/// A step of a server's history.
#[derive(Serialize, ToSchema)]
struct ServerStep {
    /// When the step began (RFC 3339).
    from: String,
    /// The number of times that the server answered well.
    well: u32,
    /// The number of times that the server did not answer, or answered badly.
    badly: u32,
}

/// Returns the health of one server now and in the last 24 hours.
///
/// The history contains what this gateway saw since it started: uses by the caller's tenant, tests, and
/// checks by the installation.
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
