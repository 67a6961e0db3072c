//! Lists the calls that wait for the caller's decision in all sessions (`/api/approvals`). Each decision goes
//! to its session.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::agent::WaitingSession;
use crate::domain::{Caller, Code, SessionId, Timestamp};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::Query;
use crate::gateway::wire;
use crate::store::records::WaitingCursor;

const PAGE: usize = 20;
/// The most sessions of a page: each may have to be read from its journal.
const MAX_PAGE: usize = 50;

/// A page of sessions with calls that wait for the caller's decision.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct ApprovalsPage {
    /// The sessions, the one that has waited longest first. A page may have fewer than `limit` and still not
    /// be the last.
    items: Vec<WaitingItem>,
    /// The `cursor` of the next page; `null` on the last page.
    next_cursor: Option<String>,
}

/// A session with calls that wait for the caller's decision.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct WaitingItem {
    /// The session's id.
    session_id: String,
    /// The session's title; `null` until a person or the first answer sets it, and always `null` in another
    /// person's session.
    title: Option<String>,
    /// The session's owner, if that is another person; absent for the caller's own sessions. In another
    /// person's session, `queue` has only the calls that wait for the caller, and the caller may see nothing
    /// else of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<WaitingOwner>,
    /// The person's message that led to the calls; absent for the caller's own sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    /// When the oldest waiting call was requested (RFC 3339).
    waiting_since: String,
    /// The session's calls, as in `tool:queue`.
    #[schema(value_type = QueueItem)]
    queue: Value,
}

/// The owner of a session.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct WaitingOwner {
    /// The owner's user id.
    id: String,
    /// The owner's name.
    name: String,
}

/// The calls of a batch.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what `wire::queue_value` writes")]
pub(in crate::gateway::http) struct QueueItem {
    /// Cards with every field of `tool:approval_required`, including place and digest, and a `status`. No
    /// call of the batch runs while the status of any card is `pending`.
    #[schema(value_type = Vec<Object>)]
    calls: Vec<Value>,
    /// The `seq` of the event that the queue is up to date with.
    seq: u64,
}

/// The number of calls that wait for the caller's decision.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct WaitingCount {
    /// The number of waiting calls.
    calls: u64,
    /// The number of sessions that have waiting calls.
    sessions: u64,
    /// When a person last decided a call in the caller's sessions (RFC 3339); `null` if that never happened.
    last_decided_at: Option<String>,
}

/// The page of waiting calls to read.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::gateway::http) struct ApprovalsQuery {
    /// The `nextCursor` of the previous page; absent or empty for the first page.
    #[param(pattern = r"^(-?[0-9]{1,18}\.ses_[0-9a-f]{32})?$")]
    cursor: Option<String>,
    /// The number of sessions in the page, 1 to 50; 20 if absent.
    #[param(minimum = 1, maximum = 50)]
    limit: Option<usize>,
    /// The id of a session, to list only that session, if calls wait in it.
    #[param(pattern = "^(ses_[0-9a-f]{32})?$")]
    session: Option<String>,
}

impl WaitingItem {
    fn of(waiting: &WaitingSession) -> Self {
        Self {
            session_id: waiting.row.key.session.to_string(),
            title: Some(waiting.row.title.clone())
                .filter(|title| !title.is_empty() && waiting.others.is_none()),
            owner: waiting.others.as_ref().map(|others| WaitingOwner {
                id: others.owner.id.to_string(),
                name: others.owner.name.clone(),
            }),
            prompt: waiting.others.as_ref().map(|others| others.prompt.clone()),
            waiting_since: waiting.since.to_rfc3339(),
            queue: wire::queue_value(&waiting.queue),
        }
    }
}

/// Lists the calls that wait for the caller's decision in all sessions, oldest first.
#[utoipa::path(get, path = "/api/approvals", tag = "sessions", params(ApprovalsQuery), responses(
    (status = 200, body = ApprovalsPage), (status = 400, body = Problem),
    (status = 401, body = Problem),
))]
pub(in crate::gateway::http) async fn list_approvals(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(query): Query<ApprovalsQuery>,
) -> Result<Json<ApprovalsPage>, ApiError> {
    let wrong = |field, text| ApiError::of_field(Code::InvalidArguments, field, text);
    let cursor = query.cursor.filter(|cursor| !cursor.is_empty());
    let cursor = cursor.map(|text| {
        let cursor = WaitingCursor::parse(&text);
        cursor.ok_or_else(|| wrong("cursor", "`cursor` is not one of ours"))
    });
    let session = query.session.filter(|session| !session.is_empty());
    let session = session.map(|text| {
        let session = SessionId::parse(&text);
        session.ok_or_else(|| wrong("session", "`session` is not an id of a session"))
    });
    let limit = query.limit.unwrap_or(PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(wrong("limit", "`limit` is 1 to 50"));
    }
    let (cursor, session) = (cursor.transpose()?, session.transpose()?);
    let approvals = state.sessions.approvals();
    let page = approvals.waiting(&caller, session.as_ref(), cursor.as_ref(), limit);
    let page = page.await?;
    Ok(Json(ApprovalsPage {
        items: page.sessions.iter().map(WaitingItem::of).collect(),
        next_cursor: page.next.map(|cursor| cursor.to_wire()),
    }))
}

/// Counts the calls that wait for the caller's decision in all sessions.
#[utoipa::path(get, path = "/api/approvals/count", tag = "sessions", responses(
    (status = 200, body = WaitingCount), (status = 401, body = Problem),
))]
pub(in crate::gateway::http) async fn count_approvals(
    State(state): State<GatewayState>,
    caller: Caller,
) -> Result<Json<WaitingCount>, ApiError> {
    let totals = state.sessions.approvals().totals(&caller).await?;
    Ok(Json(WaitingCount {
        calls: totals.calls,
        sessions: totals.sessions,
        last_decided_at: totals.decided_at.map(Timestamp::to_rfc3339),
    }))
}
