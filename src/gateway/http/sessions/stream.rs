//! Serves live streams: a session, and the caller's session list, as server-sent events.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use utoipa::IntoParams;

use super::key_of;
use crate::gateway::GatewayState;
use crate::gateway::auth::AuthenticatedPage;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Query, SessionPath};
use crate::gateway::socket::stream;

/// The point at which a stream begins.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::gateway::http) struct StreamQuery {
    /// Shows the events after this `seq`; `Last-Event-ID` goes before it. If absent, the stream begins with
    /// the session's current state.
    #[param(minimum = 0, maximum = 9_007_199_254_740_991_u64)]
    after: Option<u64>,
}

/// Shows a session live, as server-sent events.
///
/// The events are those of the socket: `event` is the name, `data` the JSON array of arguments. The first one
/// is `system:ready`. An `id` is the position behind its event: a request with the last one in
/// `Last-Event-ID` continues without a gap, if it is at most 1,000 events and 1 MiB behind; otherwise
/// `system:ready` brings the state. A stream counts as an open socket. It ends with `error`, or without a
/// word if its reader takes nothing for too long.
#[utoipa::path(get, path = "/api/sessions/{id}/stream", tag = "sessions",
    params(("id" = String, Path), StreamQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "The `id` of the last event that the reader has.")),
    responses((status = 200, content_type = "text/event-stream", body = String, description = "The events."),
        (status = 404, body = Problem)),
)]
pub(in crate::gateway::http) async fn stream_session(
    State(state): State<GatewayState>,
    page: AuthenticatedPage,
    SessionPath(session): SessionPath,
    Query(query): Query<StreamQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let entered = page.authenticated;
    let has = stream::resume_point(&headers, query.after)?;
    let key = key_of(&entered.caller, session);
    stream::show_session(&state, entered, key, has).await
}

/// Shows changes of the caller's session list live, as server-sent events.
///
/// The events are those of the socket's namespace `/person`. Changes are not kept: a reader that connects
/// again reads the list again.
#[utoipa::path(get, path = "/api/stream", tag = "sessions",
    responses((status = 200, content_type = "text/event-stream", body = String, description = "The events.")),
)]
pub(in crate::gateway::http) async fn stream_sessions(
    State(state): State<GatewayState>,
    page: AuthenticatedPage,
) -> Result<Response, ApiError> {
    stream::show_list(&state, page.authenticated)
}
