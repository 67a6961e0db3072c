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

/// A page of what was found.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct SearchPage {
    /// Sessions, newest hit first.
    items: Vec<FoundSessionItem>,
    /// For `cursor`, if there is more. The next page may have more of the same sessions.
    next_cursor: Option<String>,
    /// Whether older sessions are still being taken up, so that not all of them are found yet.
    is_indexing: bool,
}

/// A session in which something was found.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct FoundSessionItem {
    /// Its id.
    session_id: String,
    /// What it is about.
    title: Option<String>,
    is_archived: bool,
    /// Newest first; three at most.
    hits: Vec<HitItem>,
    /// Whether this page found more than these in it.
    has_more: bool,
}

/// A text in which something was found.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct HitItem {
    /// Of the event that has it; `null` is the session's title.
    seq: Option<u64>,
    /// What it is.
    #[schema(value_type = word_list::TextKind)]
    kind: &'static str,
    /// When it was said (RFC 3339).
    at: String,
    /// What stands around it, piece by piece: plain text, never markup.
    snippet: Vec<PieceItem>,
}

/// A piece of a snippet.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct PieceItem {
    text: String,
    /// Whether it was looked for.
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

/// What is looked for.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::gateway::http) struct SearchQueryParams {
    /// Words that a text has to have, 256 characters at most. The last may be the beginning of a word;
    /// what stands in double quotes is found as it stands.
    #[param(required, min_length = 1, max_length = 256, pattern = r"[0-9A-Za-z]")]
    q: Option<String>,
    /// `nextCursor` of the page before.
    #[param(pattern = r"^([0-9]{1,19})?$")]
    cursor: Option<String>,
}

/// What is looked for in one session.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::gateway::http) struct FindQueryParams {
    /// As in `GET /api/search`.
    #[param(required, min_length = 1, max_length = 256, pattern = r"[0-9A-Za-z]")]
    q: Option<String>,
}

/// Where one session has what is looked for.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct FoundEvents {
    /// `seq` of the events, oldest first; 1000 at most.
    items: Vec<u64>,
}

/// Look for words in all of my sessions: titles, messages, answers, tools with their arguments, and
/// what they gave.
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

/// Look for words in one session.
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
