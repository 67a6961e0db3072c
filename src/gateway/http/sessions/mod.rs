//! Sessions (`/api/sessions`). Reading and telling goes through `agent::Sessions`, lists through
//! the records.

mod attachments;
mod commands;
mod events;
mod export;
mod fork;
mod import;
mod list;
mod one;
mod search;
mod shares;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::domain::{Caller, SessionId, SessionKey};
use crate::gateway::GatewayState;

/// The routes of sessions.
pub(super) fn routes() -> OpenApiRouter<GatewayState> {
    OpenApiRouter::new()
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
        .routes(routes!(shares::share_session, shares::list_shares))
        .routes(routes!(shares::stop_sharing))
        .routes(routes!(fork::fork_session))
        .routes(routes!(fork::list_forks))
        .routes(routes!(attachments::attach_file))
        .routes(routes!(attachments::read_attachment))
        .routes(routes!(commands::send_message))
        .routes(routes!(commands::decide_call))
        .routes(routes!(commands::reset_context))
}

/// The address of a session as this caller means it: always in their own tenant.
fn key_of(caller: &Caller, session: SessionId) -> SessionKey {
    SessionKey {
        tenant: caller.tenant.id.clone(),
        session,
    }
}
