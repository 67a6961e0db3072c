//! Searches the caller's sessions, and one of them.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::key_of;
use crate::agent::{FoundSession, FoundText, SnippetPiece};
use crate::domain::{Caller, Code, SearchQuery};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Query, SessionPath, required};
use crate::gateway::word_list;

/// The most events that a search in one session returns.
const MAX_EVENTS: usize = 1_000;

/// A page of search results.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct SearchPage {
    /// The sessions with hits, newest hit first.
    items: Vec<FoundSessionItem>,
    /// The `cursor` of the next page, which may have more hits in the same sessions; `null` on the last page.
    next_cursor: Option<String>,
    /// True while older sessions are still being indexed, so that the search may miss some of them.
    is_indexing: bool,
}

/// A session with hits.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct FoundSessionItem {
    /// The session's id.
    session_id: String,
    /// The session's title; `null` until a person or the first answer sets it.
    title: Option<String>,
    /// True if the session is archived.
    is_archived: bool,
    /// The hits, newest first, 3 at most.
    hits: Vec<HitItem>,
    /// True if this page has more hits in the session than these.
    has_more: bool,
}

/// A text that matches the search.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct HitItem {
    /// The `seq` of the event with the text; `null` for the session's title.
    seq: Option<u64>,
    /// The kind of text.
    #[schema(value_type = word_list::TextKind)]
    kind: &'static str,
    /// The time of the text (RFC 3339).
    at: String,
    /// The text around the match, in pieces of plain text without markup.
    snippet: Vec<PieceItem>,
}

/// A piece of a snippet.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct PieceItem {
    /// The text of the piece.
    text: String,
    /// True if the piece matches the search.
    is_match: bool,
}

impl FoundSessionItem {
    fn of(found: FoundSession) -> Self {
        Self {
            session_id: found.key.session.to_string(),
            title: Some(found.title).filter(|title| !title.is_empty()),
            is_archived: found.is_archived,
            hits: found.hits.into_iter().map(HitItem::of).collect(),
            has_more: found.has_more,
        }
    }
}

impl HitItem {
    fn of(text: FoundText) -> Self {
        let piece = |SnippetPiece { text, is_match }| PieceItem { text, is_match };
        Self {
            seq: text.seq,
            kind: text.kind.as_str(),
            at: text.at.to_rfc3339(),
            snippet: text.snippet.into_iter().map(piece).collect(),
        }
    }
}

/// A search in all sessions.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::gateway::http) struct SearchQueryParams {
    /// The words that a text must have, at most 256 characters. The last one may be the beginning of a word;
    /// words in double quotes must occur exactly as written.
    #[param(required, min_length = 1, max_length = 256, pattern = r"[0-9A-Za-z]")]
    q: Option<String>,
    /// The `nextCursor` of the previous page; absent or empty for the first page.
    #[param(pattern = r"^([0-9]{1,19})?$")]
    cursor: Option<String>,
}

/// A search in one session (`GET /api/sessions/{id}/search`).
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::gateway::http) struct FindQueryParams {
    /// The words that a text must have, at most 256 characters. The last one may be the beginning of a word;
    /// words in double quotes must occur exactly as written.
    #[param(required, min_length = 1, max_length = 256, pattern = r"[0-9A-Za-z]")]
    q: Option<String>,
}

/// The events of one session that match a search.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct FoundEvents {
    /// The `seq` of each event, oldest first, 1000 at most.
    items: Vec<u64>,
}

/// Searches all sessions of the caller: titles, messages, answers, calls with their arguments, and results of
/// calls.
#[utoipa::path(get, path = "/api/search", tag = "sessions", params(SearchQueryParams), responses(
    (status = 200, body = SearchPage), (status = 400, body = Problem), (status = 401, body = Problem),
))]
pub(in crate::gateway::http) async fn search_sessions(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(params): Query<SearchQueryParams>,
) -> Result<Json<SearchPage>, ApiError> {
    let query = parse(params.q)?;
    let unreadable = || {
        let text = "`cursor` is not one of ours";
        ApiError::of_field(Code::InvalidArguments, "cursor", text)
    };
    let cursor = params.cursor.filter(|cursor| !cursor.is_empty());
    let below = cursor.map(|cursor| cursor.parse().map_err(|_| unreadable()));
    let below = below.transpose()?;
    let page = state.sessions.search(&caller, &query, below).await?;
    Ok(Json(SearchPage {
        items: page
            .sessions
            .into_iter()
            .map(FoundSessionItem::of)
            .collect(),
        next_cursor: page.next.map(|id| id.to_string()),
        is_indexing: page.is_indexing,
    }))
}

/// Searches one session.
#[utoipa::path(get, path = "/api/sessions/{id}/search", tag = "sessions",
    params(("id" = String, Path), FindQueryParams),
    responses((status = 200, body = FoundEvents), (status = 400, body = Problem),
        (status = 404, body = Problem)),
)]
pub(in crate::gateway::http) async fn search_session(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    Query(params): Query<FindQueryParams>,
) -> Result<Json<FoundEvents>, ApiError> {
    let key = key_of(&caller, session);
    // The owner is checked first: nobody else learns anything about the session, not even whether the query
    // is valid.
    state.sessions.admit(&key, &caller).await?;
    let query = parse(params.q)?;
    let items = state
        .sessions
        .search_in(&key, &caller, &query, MAX_EVENTS)
        .await?;
    Ok(Json(FoundEvents { items }))
}

fn parse(text: Option<String>) -> Result<SearchQuery, ApiError> {
    let text = required("q", text)?;
    let wrong = "`q` is 1 to 32 words in 256 characters at most";
    let refuse = || ApiError::of_field(Code::InvalidArguments, "q", wrong);
    SearchQuery::parse(&text).ok_or_else(refuse)
}
