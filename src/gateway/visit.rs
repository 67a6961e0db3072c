//! Says for each request who acts, so that the audit knows, and records requests that a role does not allow.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;

use super::GatewayState;
use crate::store::audit::acting::{self, Door};
use crate::tenancy::RefusedRequest;

/// The paths at which clients of the MCP server open streams.
pub(super) const STREAMS: [&str; 2] = ["/mcp", "/sse"];

/// Serves a request for whoever the authentication will find behind it.
pub(super) async fn visit(
    State(state): State<GatewayState>,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    let address = state.access.peer(&parts).address;
    let path = parts.uri.path();
    let door = if is_of_agent(path) {
        Door::Mcp
    } else {
        Door::Http
    };
    let is_change = !parts.method.is_safe();
    let asked = is_change.then(|| format!("{} {}", parts.method, told(path)));
    let request = Request::from_parts(parts, body);
    acting::through(door, Some(address), async {
        let response = next.run(request).await;
        if response.status() == StatusCode::FORBIDDEN
            && let (Some(asked), Some(person)) = (asked, acting::person())
        {
            let refused = RefusedRequest { person, asked };
            state.tenancy.note_refused_request(refused).await;
        }
        response
    })
    .await
}

/// Returns the path as it is logged: without the secret of a share link.
pub(super) fn told(path: &str) -> &str {
    let links = ["/shared/", "/api/shared/"];
    let link = links.into_iter().find(|link| path.starts_with(link));
    link.unwrap_or(path)
}

/// Returns true if the path is one of the agent as an MCP server.
pub(super) fn is_of_agent(path: &str) -> bool {
    STREAMS.contains(&path) || path == "/message"
}
