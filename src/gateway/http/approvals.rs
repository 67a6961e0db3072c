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

/// A page of what waits.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct ApprovalsPage {
    /// Sessions in which calls wait, the one that has waited longest first. A page may have fewer than
    /// were asked for and still not be the last.
    items: Vec<WaitingItem>,
    /// For `cursor`, if there is more.
    next_cursor: Option<String>,
}

/// A session in which calls wait for the caller.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct WaitingItem {
    /// Its id.
    session_id: String,
    /// What it is about; `null` until somebody or the first answer names it.
    title: Option<String>,
    /// Whose session it is, where it is another's: then `queue` has only the calls that wait for the caller,
    /// and nothing else of the session is theirs to see.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<WaitingOwner>,
    /// The message of a person that led to the calls, where the session is another's.
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    /// When the oldest call that waits was asked for (RFC 3339).
    waiting_since: String,
    /// Its calls, as `tool:queue` tells them.
    #[schema(value_type = QueueItem)]
    queue: Value,
}

/// A person.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct WaitingOwner {
    id: String,
    name: String,
}

/// The calls of a batch.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what `wire::queue_value` writes")]
pub(in crate::gateway::http) struct QueueItem {
    /// Cards with every field of `tool:approval_required`, its place and its digest among them, and a
    /// `status`: nothing of the batch runs until none is `pending`.
    #[schema(value_type = Vec<Object>)]
    calls: Vec<Value>,
    /// The `seq` that this reflects.
    seq: u64,
}

/// How much waits.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct WaitingCount {
    /// Calls that wait for the caller.
    calls: u64,
    /// Sessions that they are in.
    sessions: u64,
    /// When a call in the caller's sessions was last decided by a person (RFC 3339); `null` if none was.
    last_decided_at: Option<String>,
}

/// Which part.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::gateway::http) struct ApprovalsQuery {
    /// `nextCursor` of the page before.
    #[param(pattern = r"^(-?[0-9]{1,18}\.ses_[0-9a-f]{32})?$")]
    cursor: Option<String>,
    /// Sessions in the page, 1 to 50.
    #[param(minimum = 1, maximum = 50)]
    limit: Option<usize>,
    /// Only that session, if it waits.
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

/// What waits for my decision in all sessions, the oldest first.
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

/// How much waits for my decision in all sessions.
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
