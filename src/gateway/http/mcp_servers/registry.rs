//! Lists all servers, and adds new ones.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use super::body::{AddServerRequest, AddServerResponse, MayAdd, Server, ServerList};
use crate::domain::{Caller, McpTransport};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, Query};
use crate::gateway::paging::PageQuery;
use crate::servers::ServerAudience;

/// Lists the MCP servers that the caller's sessions are offered.
#[utoipa::path(get, path = "/api/mcp", tag = "mcp", params(PageQuery), responses(
    (status = 200, body = ServerList), (status = 401, body = Problem),
))]
pub(in crate::gateway) async fn list_mcp_servers(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Json<ServerList>, ApiError> {
    let reports = state.servers.reports(&caller);
    let items = reports.list().await?.into_iter().map(Server::from);
    let page = query.page(items.collect(), |server| server.name.clone())?;
    let addable = |audience| {
        let transports = reports.addable(audience).into_iter();
        transports.map(McpTransport::as_str).collect()
    };
    let problems = if caller.user.installation_admin {
        state.servers.file_problems()
    } else {
        Vec::new()
    };
    Ok(Json(ServerList {
        items: page.items,
        next_cursor: page.next_cursor,
        problems,
        may_add: MayAdd {
            installation: addable(ServerAudience::Installation),
            tenant: addable(ServerAudience::Tenant),
            person: addable(ServerAudience::Person),
        },
    }))
}

/// Adds a server.
///
/// Installation admins may add it for all tenants, tenant admins for everybody in their tenant, and people
/// for themselves alone (`scope`).
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
