//! Servers that others publish (`/api/mcp-registry`): searches the registry, and makes server entries from
//! its items, which are added like typed ones.

mod body;

use axum::Json;
use axum::extract::State;

pub(super) use self::body::FilledEntryResponse;
use self::body::{FillRequest, PublishedServers, RegistryQuery};
use crate::domain::{Caller, Code};
use crate::gateway::GatewayState;
use crate::gateway::api_router::{ApiRouter, routes};
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, Query};
use crate::servers::{MOST_LISTED, RegistrySearch};

/// The default number of servers in a page.
const LISTED: usize = 20;

/// The routes of the registry of published servers.
pub(super) fn routes() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(search_mcp_registry))
        .routes(routes!(fill_mcp_registry_entry))
}

/// Searches the registry of published MCP servers. Only for callers who may add servers.
#[utoipa::path(get, path = "/api/mcp-registry/servers", tag = "mcp", params(RegistryQuery), responses(
    (status = 200, body = PublishedServers), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem),
    (status = 503, body = Problem),
))]
pub(in crate::gateway) async fn search_mcp_registry(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(search): Query<RegistryQuery>,
) -> Result<Json<PublishedServers>, ApiError> {
    let limit = search.limit.unwrap_or(LISTED);
    if !(1..=MOST_LISTED).contains(&limit) {
        let text = format!("possible are 1 to {MOST_LISTED}");
        return Err(ApiError::of_field(Code::InvalidArguments, "limit", text));
    }
    let search = RegistrySearch {
        text: search.search,
        cursor: search.cursor,
        limit,
    };
    let listing = state.servers.published().search(&caller, &search).await?;
    Ok(Json(listing.into()))
}

/// Makes a server entry from a published server and the answers to its questions. The entry is not stored.
#[utoipa::path(post, path = "/api/mcp-registry/entry", tag = "mcp", request_body = FillRequest, responses(
    (status = 200, body = FilledEntryResponse), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem),
    (status = 503, body = Problem),
))]
pub(in crate::gateway) async fn fill_mcp_registry_entry(
    State(state): State<GatewayState>,
    caller: Caller,
    Body(request): Body<FillRequest>,
) -> Result<Json<FilledEntryResponse>, ApiError> {
    let registry = state.servers.published();
    let FillRequest {
        name,
        version,
        way,
        values,
    } = &request;
    let entry = registry.entry(&caller, name, version, way, values);
    Ok(Json(entry.await?.into()))
}
