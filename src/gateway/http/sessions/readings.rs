//! Reads sessions of other people (`/api/readings`): whoever has the right states a reason and may read one
//! session for an hour, and its owner is told.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::export::{ExportQuery, headers};
use super::key_of;
use crate::domain::{Caller, Timestamp};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::export::{Document, Form};
use crate::gateway::extract::{Body, Query, SessionPath, required};
use crate::gateway::paging::PageQuery;
use crate::store::records::ListedReading;

/// A person by their name.
#[derive(Serialize, ToSchema)]
struct ReadingPerson {
    /// The person's id.
    id: String,
    /// The person's sign-in name.
    name: String,
}

/// A permission to read the session of another person.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct ReadingItem {
    /// The id of the permission.
    id: String,
    /// The id of the session.
    session: String,
    /// The owner of the session.
    owner: ReadingPerson,
    /// The person who may read it.
    reader: ReadingPerson,
    /// True if the caller is the reader; false if the caller is the owner of the session.
    mine: bool,
    /// Why, in the words of the reader.
    reason: String,
    /// When the permission began (RFC 3339).
    created_at: String,
    /// When it ends, or ended (RFC 3339).
    expires_at: String,
    /// True while the session may be read.
    open: bool,
    /// When the owner said that they have seen it (RFC 3339); `null` if they have not.
    seen_at: Option<String>,
}

/// Permissions to read sessions.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct ReadingList {
    /// Those for the caller's sessions and those of the caller, newest first.
    items: Vec<ReadingItem>,
    /// The cursor of the next page; `null` if there is none.
    next_cursor: Option<String>,
}

/// The reason to read a session.
#[derive(Deserialize, ToSchema)]
pub(in crate::gateway::http) struct BeginReadingRequest {
    /// Why the caller has to read the session. Its owner and the audit are told.
    #[schema(required, nullable = false, min_length = 1, max_length = 500)]
    reason: Option<String>,
}

impl ReadingItem {
    fn of(listed: ListedReading, caller: &Caller, now: Timestamp) -> Self {
        let reading = listed.reading;
        Self {
            id: reading.id,
            session: reading.key.session.to_string(),
            mine: reading.reader == caller.user.id,
            owner: ReadingPerson {
                id: reading.owner.to_string(),
                name: listed.owner_name,
            },
            reader: ReadingPerson {
                id: reading.reader.to_string(),
                name: listed.reader_name,
            },
            reason: reading.reason,
            created_at: reading.created_at.to_rfc3339(),
            expires_at: reading.expires_at.to_rfc3339(),
            open: reading.expires_at > now,
            seen_at: reading.seen_at.map(Timestamp::to_rfc3339),
        }
    }
}

/// Lets the caller read a session of somebody else for one hour. Needs the right `sessions.read_content`; to
/// everybody else the session does not exist. Its owner is told, and the audit.
#[utoipa::path(post, path = "/api/sessions/{id}/readings", tag = "sessions",
    params(("id" = String, Path)), request_body = BeginReadingRequest,
    responses((status = 201, body = ReadingItem), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 429, body = Problem)))]
pub(in crate::gateway::http) async fn begin_reading(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    Body(body): Body<BeginReadingRequest>,
) -> Result<(StatusCode, Json<ReadingItem>), ApiError> {
    let reason = required("reason", body.reason)?;
    let (key, now) = (key_of(&caller, session), state.tenancy.now());
    let readings = state.sessions.readings();
    let listed = readings.begin(&key, &caller, &reason, now).await?;
    let item = ReadingItem::of(listed, &caller, now);
    Ok((StatusCode::CREATED, Json(item)))
}

/// Lists who may read, or could read, the caller's sessions, and the sessions that the caller may read.
#[utoipa::path(get, path = "/api/readings", tag = "sessions", params(PageQuery), responses(
    (status = 200, body = ReadingList), (status = 401, body = Problem),
))]
pub(in crate::gateway::http) async fn list_readings(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Json<ReadingList>, ApiError> {
    let now = state.tenancy.now();
    let listed = state.sessions.readings().list(&caller).await?.into_iter();
    let items = listed.map(|listed| ReadingItem::of(listed, &caller, now));
    let page = query.page(items.collect(), |item: &ReadingItem| item.id.clone())?;
    Ok(Json(ReadingList {
        items: page.items,
        next_cursor: page.next_cursor,
    }))
}

/// Returns the session that the caller may read, as it is now: its transcript and its attachments.
#[utoipa::path(get, path = "/api/readings/{id}/session", tag = "sessions",
    params(("id" = String, Path), ExportQuery),
    responses((status = 200, description = "The file.", content(
        (String = "text/markdown"), (String = "text/html"), (serde_json::Value = "application/json"),
    )), (status = 400, body = Problem), (status = 404, body = Problem), (status = 413, body = Problem),
        (status = 429, body = Problem)),
)]
pub(in crate::gateway::http) async fn read_session_of_other(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<ExportQuery>,
) -> Result<Response, ApiError> {
    let (format, is_shown) = query.checked()?;
    let now = state.tenancy.now();
    let view = state.sessions.readings().open(&id, &caller, now).await?;
    let reader = state.documents.begin_export(&caller)?;
    let document = Document::new(view.session().clone(), now);
    let (sessions, of) = (&state.sessions, &view);
    let fetch = move |after, limit| async move { sessions.readings().page(of, after, limit).await };
    let form = Form::Export(format);
    let written = state.documents.write(document, form, fetch).await?;
    let headers = headers(&written.title, format, is_shown);
    let sessions = state.sessions.clone();
    let content = move |id| {
        let (sessions, view) = (sessions.clone(), view.clone());
        async move {
            let found = sessions.readings().attachment(&view, &id).await?;
            Ok(found.map(|(_, content)| content))
        }
    };
    let body = state.documents.send(written, reader, content);
    Ok((headers, body).into_response())
}

/// Notes that the caller has seen that a session of theirs was read.
#[utoipa::path(post, path = "/api/readings/{id}/seen", tag = "sessions", params(("id" = String, Path)),
    responses((status = 204), (status = 404, body = Problem)))]
pub(in crate::gateway::http) async fn see_reading(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    let now = state.tenancy.now();
    state.sessions.readings().see(&id, &caller, now).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Ends the caller's permission to read a session before its time.
#[utoipa::path(delete, path = "/api/readings/{id}", tag = "sessions", params(("id" = String, Path)),
    responses((status = 204), (status = 404, body = Problem)))]
pub(in crate::gateway::http) async fn end_reading(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    let now = state.tenancy.now();
    state.sessions.readings().end(&id, &caller, now).await?;
    Ok(StatusCode::NO_CONTENT)
}
