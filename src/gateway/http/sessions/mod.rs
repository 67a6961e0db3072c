//! The routes of sessions (`/api/sessions`). They read, list and change sessions through `agent::Sessions`.

mod attachments;
mod changes;
mod commands;
mod decisions;
mod events;
mod export;
mod files;
mod fork;
mod import;
mod list;
mod offers;
mod one;
mod readings;
mod search;
mod shares;
mod stream;

use axum::http::HeaderName;

use crate::domain::{Caller, Code, SessionId, SessionKey, Timestamp};
use crate::gateway::GatewayState;
use crate::gateway::api_router::{ApiRouter, routes};
use crate::gateway::error::ApiError;
use crate::gateway::wire::SessionItem;

/// The header with the hosts that a document of foreign markup may look up and connect to. A content security
/// policy blocks a load only after the browser has looked up the host's name, which already informs the owner
/// of that name.
const CONNECTION_ALLOWLIST: HeaderName = HeaderName::from_static("connection-allowlist");
/// The header that keeps older browsers from looking up the hosts of links in advance.
const DNS_PREFETCH: HeaderName = HeaderName::from_static("x-dns-prefetch-control");

/// The routes of sessions.
pub(super) fn routes() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(list::list_sessions, list::create_session))
        .routes(routes!(
            one::read_session,
            one::change_session,
            one::delete_session
        ))
        .routes(routes!(list::bulk::change_sessions))
        .routes(routes!(import::import_sessions))
        .routes(routes!(search::search_sessions))
        .routes(routes!(search::search_session))
        .routes(routes!(events::list_events))
        .routes(routes!(export::export_session))
        .routes(routes!(decisions::export_decisions))
        .routes(routes!(stream::stream_session))
        .routes(routes!(stream::stream_sessions))
        .routes(routes!(shares::share_session, shares::list_shares))
        .routes(routes!(shares::stop_sharing))
        .routes(routes!(readings::begin_reading))
        .routes(routes!(readings::list_readings))
        .routes(routes!(readings::read_session_of_other))
        .routes(routes!(readings::see_reading))
        .routes(routes!(readings::end_reading))
        .routes(routes!(fork::fork_session))
        .routes(routes!(fork::list_forks))
        .routes(routes!(attachments::attach_file))
        .routes(routes!(attachments::read_attachment))
        .merge(offers::routes())
        .merge(files::routes())
        .merge(changes::routes())
        .routes(routes!(commands::send_message))
        .routes(routes!(commands::decide_call))
        .routes(routes!(commands::begin_dry_run))
        .routes(routes!(commands::drop_dry_run))
        .routes(routes!(commands::answer_elicitation))
        .routes(routes!(commands::reset_context))
        .routes(routes!(commands::stop_turn))
        .routes(routes!(commands::retry_turn))
        .routes(routes!(commands::withdraw_message))
        .routes(routes!(commands::stop_call))
        .routes(routes!(commands::resolve_call))
        .routes(routes!(commands::call_for_view))
        .routes(routes!(commands::close_view))
        .routes(routes!(commands::choose_model))
        .routes(routes!(commands::update_session_assistant))
        .routes(routes!(commands::choose_window))
        .routes(routes!(commands::choose_compaction))
}

/// Returns the key of a session, always in the caller's own tenant.
fn key_of(caller: &Caller, session: SessionId) -> SessionKey {
    SessionKey {
        tenant: caller.tenant.id.clone(),
        session,
    }
}

/// Returns a session of the caller from its row, or from the live session if the row is not written yet.
async fn find(
    state: &GatewayState,
    caller: &Caller,
    key: &SessionKey,
) -> Result<SessionItem, ApiError> {
    if let Some(row) = state.sessions.row(key, caller).await? {
        return Ok(SessionItem::of(&row));
    }
    let view = state.sessions.join(key, caller).await?.view;
    if !view.is_stored {
        let text = "there is no such session";
        return Err(ApiError::new(Code::SessionNotFound, text));
    }
    // A stored session without a row was stored just now.
    let now = Timestamp(jiff::Timestamp::now().as_millisecond()).to_rfc3339();
    Ok(SessionItem {
        id: key.session.to_string(),
        title: view.title,
        created_at: now.clone(),
        updated_at: now,
        state: if view.turn.is_some() {
            "running"
        } else {
            "idle"
        },
        waiting: 0,
        forked_from: None,
        version: 0,
        is_pinned: false,
        is_archived: false,
        tags: Vec::new(),
    })
}
