//! Lists the caller's sessions, and creates new ones.

pub(super) mod bulk;
pub(super) mod tag;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::find;
use crate::domain::{Caller, Code, Effort};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, Query};
use crate::gateway::http::assistants::ServerToolsBody;
use crate::gateway::idempotency::RequestKey;
use crate::gateway::wire::{SessionItem, assistant_choice};
use crate::providers::WantedModel;
use crate::store::records::{Cursor, ListFilter, SessionState};

const PAGE: usize = 50;
const MAX_PAGE: usize = 200;

/// A page of sessions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct SessionsPage {
    /// The sessions: pinned ones first, then newest first.
    items: Vec<SessionItem>,
    /// The `cursor` of the next page; `null` on the last page.
    next_cursor: Option<String>,
}

/// The page, and the sessions to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::gateway::http) struct SessionsQuery {
    /// The `nextCursor` of the previous page; absent or empty for the first page.
    #[param(pattern = r"^(p?-?[0-9]{1,18}\.ses_[0-9a-f]{32})?$")]
    cursor: Option<String>,
    /// The number of sessions in the page, 1 to 200; 50 if absent.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// Selects the sessions in this state: `idle`, `running`, `waiting` or `failed`.
    #[param(pattern = "^(idle|running|waiting|failed)?$")]
    state: Option<String>,
    /// True to list archived sessions instead of those that are not archived; false if absent.
    archived: Option<bool>,
    /// Selects the sessions with this tag.
    #[param(max_length = 32)]
    tag: Option<String>,
}

/// A session to create.
#[derive(Debug, Deserialize, ToSchema)]
pub(in crate::gateway::http) struct CreateSessionRequest {
    /// The session's title; if absent, the first answer sets it.
    #[schema(min_length = 1, max_length = 200, pattern = r"\S")]
    title: Option<String>,
    /// The model that answers; if absent, the caller's default.
    #[schema(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    model: Option<String>,
    /// The name of the model's provider; if absent, the provider that serves the model.
    provider: Option<String>,
    /// The reasoning effort: `off`, `minimal`, `low`, `medium`, `high`, `max`, or a number of tokens; if
    /// absent, the effort that the settings define for the model.
    #[schema(value_type = Option<String>)]
    effort: Option<Effort>,
    /// A name of the caller's own for the session. If the caller has a session of this name, it is answered,
    /// and stays as it is.
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9_-]+$")]
    name: Option<String>,
    /// The id of the assistant that the session is started with; if absent, none.
    #[schema(pattern = "^ast_[0-9a-f]{32}$")]
    assistant: Option<String>,
    /// With `assistant`: the tools that the session may use, fewer than the assistant's; if absent, all of the
    /// assistant's.
    #[schema(max_items = 100)]
    tools: Option<Vec<ServerToolsBody>>,
    /// With `assistant`: the names of the skills that the session may use, fewer than the assistant's; if absent,
    /// all of the assistant's.
    #[schema(max_items = 100)]
    skills: Option<Vec<String>>,
}

/// Lists the caller's sessions: pinned ones first, then newest first.
#[utoipa::path(get, path = "/api/sessions", tag = "sessions", params(SessionsQuery), responses(
    (status = 200, body = SessionsPage), (status = 401, body = Problem),
))]
pub(in crate::gateway::http) async fn list_sessions(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(query): Query<SessionsQuery>,
) -> Result<Json<SessionsPage>, ApiError> {
    let unreadable = || {
        ApiError::of_field(
            Code::InvalidArguments,
            "cursor",
            "`cursor` is not one of ours",
        )
    };
    let cursor = query.cursor.filter(|cursor| !cursor.is_empty());
    let cursor = cursor
        .map(|text| Cursor::parse(&text).ok_or_else(unreadable))
        .transpose()?;
    let limit = query.limit.unwrap_or(PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        let text = "`limit` is 1 to 200";
        return Err(ApiError::of_field(Code::InvalidArguments, "limit", text));
    }
    let wanted = query.state.filter(|state| !state.is_empty());
    let is_in = wanted.map(|state| SessionState::parse(&state).ok_or_else(no_state));
    let tag = query.tag.filter(|tag| !tag.is_empty());
    let filter = ListFilter {
        state: is_in.transpose()?,
        is_archived: query.archived.unwrap_or(false),
        tag: tag.map(|text| tag::read("tag", &text)).transpose()?,
        within: None,
    };
    let page = state
        .sessions
        .list(&caller, &filter, cursor.as_ref(), limit)
        .await?;
    Ok(Json(SessionsPage {
        items: page.rows.iter().map(SessionItem::of).collect(),
        next_cursor: page.next.map(|cursor| cursor.to_wire()),
    }))
}

fn no_state() -> ApiError {
    let text = "`state` is `idle`, `running`, `waiting` or `failed`";
    ApiError::of_field(Code::InvalidArguments, "state", text)
}

/// Creates a session, or returns the caller's own session of a name.
#[utoipa::path(post, path = "/api/sessions", tag = "sessions", request_body = CreateSessionRequest,
    responses((status = 200, body = SessionItem), (status = 201, body = SessionItem),
        (status = 400, body = Problem), (status = 403, body = Problem),
        (status = 404, body = Problem)),
)]
pub(in crate::gateway::http) async fn create_session(
    State(state): State<GatewayState>,
    caller: Caller,
    request_key: Option<Extension<RequestKey>>,
    Body(body): Body<CreateSessionRequest>,
) -> Result<(StatusCode, Json<SessionItem>), ApiError> {
    let wanted = WantedModel::new(body.provider, body.model).with_effort(body.effort.into());
    let sessions = &state.sessions;
    let tools = body.tools.map(ServerToolsBody::selection);
    let choice = assistant_choice(body.assistant.as_deref(), tools, body.skills)?;
    let assistants = sessions.assistants();
    let start = assistants.start(&caller, &wanted, choice).await?;
    // A request that a crash interrupted is carried out again, and must not make a second session.
    let name = body
        .name
        .or_else(|| request_key.map(|Extension(key)| key.session_name()));
    let (key, is_new) = if let Some(name) = name {
        let named = sessions.create_named(&caller, &name, body.title, start);
        named.await?
    } else {
        let created = sessions.create(&caller, body.title, start);
        (created.await?, true)
    };
    let status = if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, Json(find(&state, &caller, &key).await?)))
}
