//! How the servers are (S2.56). Read from memory: nothing is started for it (O12).

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;

use super::body::{McpHealth, ServerHealth};
use crate::agent::servers::Status;
use crate::domain::Caller;
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};

/// The state of all MCP servers, and how many there are of each.
#[utoipa::path(get, path = "/api/mcp/health", tag = "mcp", responses(
    (status = 200, body = McpHealth), (status = 401, body = Problem),
))]
pub(in crate::gateway) async fn read_mcp_health(
    State(state): State<GatewayState>,
    caller: Caller,
) -> Result<Json<McpHealth>, ApiError> {
    let servers = state.servers.list(&caller).await?;
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
