//! Forks a session, and lists the sessions that share its past.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{find, key_of};
use crate::agent;
use crate::domain::{Caller, Code, Effort};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, Query, SessionPath};
use crate::gateway::paging::PageQuery;
use crate::gateway::wire::{self, ParsedCommand, SessionItem};

/// The past that the new session shares, and the way it continues.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what `wire::parse` reads")]
pub(in crate::gateway::http) struct ForkSessionRequest {
    /// The `seq` of the last event that both sessions have; if absent, the last event of the session. If this
    /// event is a message that nobody has answered, and `text` is absent, the model answers it.
    #[schema(minimum = 0, maximum = 9_007_199_254_740_991_u64)]
    from_seq: Option<u64>,
    /// A message to send in the new session at once, at most 256 KiB.
    #[schema(max_length = 262_144)]
    text: Option<String>,
    /// The ids of attachments of the session that is forked, for that message.
    #[schema(max_items = 10)]
    attachments: Option<Vec<String>>,
    /// The idempotency key of that message, at most 128 bytes.
    #[schema(max_length = 128)]
    client_message_id: Option<String>,
    /// The model that answers; if absent, the model of the session that is forked.
    #[schema(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    model: Option<String>,
    /// The name of the model's provider; if absent, the provider that serves the model.
    provider: Option<String>,
    /// The reasoning effort of the new session: `off`, `minimal`, `low`, `medium`, `high`, `max`, or a number
    /// of tokens; if absent, that of the session that is forked.
    #[schema(value_type = Option<String>)]
    effort: Option<Effort>,
}

/// The sessions that share a part of their past.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct SessionFamily {
    /// The sessions, oldest first, 200 at most, including the session itself.
    items: Vec<SessionItem>,
    /// The cursor of the next page; `null` if there is none.
    next_cursor: Option<String>,
}

/// Forks a session: creates a new session that shares the past of this one up to an event.
///
/// The new session's workspace becomes a copy of this session's current workspace, and its transcript says
/// so.
#[utoipa::path(post, path = "/api/sessions/{id}/fork", tag = "sessions",
    params(("id" = String, Path)), request_body = ForkSessionRequest,
    responses((status = 201, body = SessionItem), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem), (status = 413, body = Problem), (status = 429, body = Problem)),
)]
pub(in crate::gateway::http) async fn fork_session(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    Body(body): Body<Value>,
) -> Result<(StatusCode, Json<SessionItem>), ApiError> {
    let ParsedCommand::Fork(request) = wire::parse(&caller, "session:fork", &[body])? else {
        return Err(ApiError::new(
            Code::Internal,
            "`session:fork` makes no fork",
        ));
    };
    let key = key_of(&caller, session);
    // A request that a crash interrupted must not make a second fork.
    state.idempotency_keys.note_change().await?;
    let forked = Box::pin(agent::fork(&state.sessions, &key, &caller, request)).await?;
    let item = find(&state, &caller, &forked).await?;
    Ok((StatusCode::CREATED, Json(item)))
}

/// Lists the caller's sessions that share a part of their past with this one.
#[utoipa::path(get, path = "/api/sessions/{id}/forks", tag = "sessions",
    params(("id" = String, Path), PageQuery),
    responses((status = 200, body = SessionFamily), (status = 404, body = Problem)),
)]
pub(in crate::gateway::http) async fn list_forks(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    Query(query): Query<PageQuery>,
) -> Result<Json<SessionFamily>, ApiError> {
    let key = key_of(&caller, session);
    let family = agent::family(&state.sessions, &key, &caller).await?;
    let family = family.iter().map(SessionItem::of).collect();
    let page = query.page(family, |item: &SessionItem| item.id.clone())?;
    Ok(Json(SessionFamily {
        items: page.items,
        next_cursor: page.next_cursor,
    }))
}
