//! Bundles of MCP servers (`/api/mcp-bundles`): uploads and inspects bundles, makes server entries from them,
//! which are added like typed ones, and replaces the bundle that a server runs.

mod body;

use std::sync::LazyLock;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Request, State};
use futures::StreamExt as _;

use self::body::{Bundle, BundleEntryRequest, BundleReplaceRequest};
use super::mcp_registry::FilledEntryResponse;
use crate::domain::{Caller, Code};
use crate::gateway::GatewayState;
use crate::gateway::api_router::{ApiRouter, routes};
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, required};
use crate::jobs::Pool;
use crate::servers::Bundles;

/// Limits the bundles that are in memory at the same time, over all tenants.
static UPLOADS: LazyLock<Pool> = LazyLock::new(|| Pool::new("uploads of bundles", 4));
/// The longest time of an upload, so that a slow connection does not block the others.
const PATIENCE: Duration = Duration::from_mins(5);

/// The routes of bundles.
pub(super) fn routes() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(upload_mcp_bundle))
        .routes(routes!(read_mcp_bundle))
        .routes(routes!(fill_mcp_bundle_entry))
        .routes(routes!(replace_mcp_bundle))
}

/// Uploads a bundle (`.mcpb`, `.dxt`) and inspects it. Nothing in it runs. Only for admins.
///
/// The tenant keeps a bundle while a server runs it, and an unused bundle for an hour.
#[utoipa::path(post, path = "/api/mcp-bundles", tag = "mcp",
    request_body(content = Vec<u8>, content_type = "application/octet-stream",
        description = "The file; at most `sandbox.packages.bundle_mb`."),
    responses((status = 200, body = Bundle), (status = 400, body = Problem),
        (status = 401, body = Problem), (status = 403, body = Problem), (status = 409, body = Problem),
        (status = 413, body = Problem)),
)]
pub(in crate::gateway) async fn upload_mcp_bundle(
    State(state): State<GatewayState>,
    caller: Caller,
    request: Request,
) -> Result<Json<Bundle>, ApiError> {
    let bundles = Bundles::new(&state.servers, &caller);
    let most = bundles.admit()?;
    let broken = |_| ApiError::new(Code::Internal, "the file cannot be taken in now");
    let place = UPLOADS.place().await.map_err(broken)?;
    let file = tokio::time::timeout(PATIENCE, read(request, most)).await;
    let late = |_| {
        let text = "the file took longer than five minutes: try again on a faster line";
        ApiError::of_field(Code::RequestTimeout, "file", text)
    };
    let file = file.map_err(late)??;
    Ok(Json(bundles.take_in(file, place).await?.into()))
}

/// Reads a body piece by piece; an error if it has more than `most` bytes.
async fn read(request: Request, most: u64) -> Result<Vec<u8>, ApiError> {
    let mut pieces = request.into_body().into_data_stream();
    let mut file = Vec::new();
    while let Some(piece) = pieces.next().await {
        let broken = |_| ApiError::new(Code::InvalidArguments, "the body did not arrive whole");
        let piece = piece.map_err(broken)?;
        if (file.len() + piece.len()) as u64 > most {
            let text = format!(
                "a bundle may have {} MiB; an operator can raise `sandbox.packages.bundle_mb`",
                most >> 20
            );
            return Err(ApiError::of_field(Code::TooLarge, "file", text));
        }
        file.extend_from_slice(&piece);
    }
    Ok(file)
}

/// Returns a bundle that the tenant keeps. Only for admins.
#[utoipa::path(get, path = "/api/mcp-bundles/{sha256}", tag = "mcp", params(("sha256" = String, Path)),
    responses((status = 200, body = Bundle), (status = 401, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem)),
)]
pub(in crate::gateway) async fn read_mcp_bundle(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(sha256): Path<String>,
) -> Result<Json<Bundle>, ApiError> {
    let bundles = Bundles::new(&state.servers, &caller);
    Ok(Json(bundles.report(&sha256).await?.into()))
}

/// Makes a server entry from a bundle and the answers to its questions. The entry is not stored. Only for
/// admins.
#[utoipa::path(post, path = "/api/mcp-bundles/{sha256}/entry", tag = "mcp",
    params(("sha256" = String, Path)), request_body = BundleEntryRequest, responses(
    (status = 200, body = FilledEntryResponse), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem),
))]
pub(in crate::gateway) async fn fill_mcp_bundle_entry(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(sha256): Path<String>,
    Body(request): Body<BundleEntryRequest>,
) -> Result<Json<FilledEntryResponse>, ApiError> {
    let bundles = Bundles::new(&state.servers, &caller);
    let hosts = Some(request.network.as_slice()).filter(|hosts| !hosts.is_empty());
    let entry = bundles.entry(&sha256, &request.values, hosts);
    Ok(Json(entry.await?.into()))
}

/// Replaces the bundle that a server runs. Only for the server's admins.
///
/// The time limit, the lists of tools and similar settings stay; the secrets of the old bundle are deleted.
#[utoipa::path(post, path = "/api/mcp-bundles/{sha256}/replace", tag = "mcp",
    params(("sha256" = String, Path)), request_body = BundleReplaceRequest, responses(
    (status = 200, body = Bundle), (status = 400, body = Problem), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem),
))]
pub(in crate::gateway) async fn replace_mcp_bundle(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(sha256): Path<String>,
    Body(request): Body<BundleReplaceRequest>,
) -> Result<Json<Bundle>, ApiError> {
    let server = required("server", request.server)?;
    let seen = required("seen", request.seen)?;
    let bundles = Bundles::new(&state.servers, &caller);
    let filled = bundles
        .entry(&sha256, &request.values, request.network.as_deref())
        .await?;
    let servers = state.servers.administration(&caller);
    servers.replace_bundle(&server, &seen, filled).await?;
    Ok(Json(bundles.report(&sha256).await?.into()))
}
