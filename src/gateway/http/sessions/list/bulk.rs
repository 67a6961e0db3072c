//! Changes several sessions at once.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::tag;
use crate::agent::RowError;
use crate::domain::{Caller, Code, SessionId, Timestamp};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, required};
use crate::gateway::http::sessions::key_of;
use crate::store::records::MarksChange;

/// The most sessions of one request.
const MAX_SESSIONS: usize = 200;

/// The change to make to sessions.
///
/// `tag` adds a tag, and `untag` removes it. `delete` removes the sessions from every list at once, and
/// deletes them ten seconds later; `restore` cancels the deletion within those ten seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::gateway::http) enum BulkAction {
    Pin,
    Unpin,
    Archive,
    Unarchive,
    /// Adds `tag`.
    Tag,
    /// Removes `tag`.
    Untag,
    /// Removes the sessions from every list at once, and deletes them ten seconds later.
    Delete,
    /// Cancels a deletion, within those ten seconds.
    Restore,
}

/// Sessions, and the change to make to them.
#[derive(Debug, Deserialize, ToSchema)]
pub(in crate::gateway::http) struct BulkRequest {
    /// The ids of the sessions, 1 to 200.
    #[schema(required, nullable = false, min_items = 1, max_items = 200)]
    ids: Option<Vec<String>>,
    /// The change to make.
    #[schema(required, nullable = false)]
    action: Option<BulkAction>,
    /// The tag, for the actions `tag` and `untag`.
    #[schema(min_length = 1, max_length = 32)]
    tag: Option<String>,
}

/// The result of a change to several sessions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct BulkDone {
    /// The ids of the sessions that were changed.
    done: Vec<String>,
    /// The ids that name no session of the caller.
    not_found: Vec<String>,
    /// After `delete`: when the last of the sessions is deleted (RFC 3339); `null` otherwise.
    delete_at: Option<String>,
}

/// Pins, archives, tags, deletes or restores several sessions.
#[utoipa::path(post, path = "/api/sessions/bulk", tag = "sessions", request_body = BulkRequest,
    responses((status = 200, body = BulkDone), (status = 400, body = Problem)),
)]
pub(in crate::gateway::http) async fn change_sessions(
    State(state): State<GatewayState>,
    caller: Caller,
    Body(body): Body<BulkRequest>,
) -> Result<Json<BulkDone>, ApiError> {
    let ids = required("ids", body.ids)?;
    if !(1..=MAX_SESSIONS).contains(&ids.len()) {
        let text = "1 to 200 sessions at once";
        return Err(ApiError::of_field(Code::InvalidArguments, "ids", text));
    }
    let action = required("action", body.action)?;
    let change = marks(action, body.tag.as_deref())?;
    let mut done = BulkDone {
        done: Vec::new(),
        not_found: Vec::new(),
        delete_at: None,
    };
    for id in ids {
        let session = SessionId::parse(&id);
        let answer = match session {
            Some(session) => apply(&state, &caller, session, action, &change).await,
            None => Err(ApiError::new(
                Code::SessionNotFound,
                "there is no such session",
            )),
        };
        match answer {
            Ok(delete_at) => {
                done.done.push(id);
                done.delete_at = delete_at.map(Timestamp::to_rfc3339).or(done.delete_at);
            }
            Err(error) if error.code() == Code::SessionNotFound => done.not_found.push(id),
            Err(error) => return Err(error),
        }
    }
    Ok(Json(done))
}

async fn apply(
    state: &GatewayState,
    caller: &Caller,
    session: SessionId,
    action: BulkAction,
    change: &MarksChange,
) -> Result<Option<Timestamp>, ApiError> {
    let key = key_of(caller, session);
    let sessions = &state.sessions;
    let done: Result<Option<Timestamp>, RowError> = match action {
        BulkAction::Delete => sessions.give_up(&key, caller).await.map(Some),
        BulkAction::Restore => sessions.take_back(&key, caller).await.map(|()| None),
        BulkAction::Pin
        | BulkAction::Unpin
        | BulkAction::Archive
        | BulkAction::Unarchive
        | BulkAction::Tag
        | BulkAction::Untag => sessions.mark(&key, caller, change).await.map(|_| None),
    };
    Ok(done?)
}

fn marks(action: BulkAction, text: Option<&str>) -> Result<MarksChange, ApiError> {
    let mut change = MarksChange::default();
    match action {
        BulkAction::Pin | BulkAction::Unpin => change.is_pinned = Some(action == BulkAction::Pin),
        BulkAction::Archive | BulkAction::Unarchive => {
            change.is_archived = Some(action == BulkAction::Archive);
        }
        BulkAction::Tag => drop(change.add_tags.insert(read_tag(text)?)),
        BulkAction::Untag => drop(change.remove_tags.insert(read_tag(text)?)),
        BulkAction::Delete | BulkAction::Restore => {}
    }
    Ok(change)
}

fn read_tag(text: Option<&str>) -> Result<String, ApiError> {
    tag::read("tag", required("tag", text)?)
}
