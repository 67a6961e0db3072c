//! Wire forms of a session in lists, for REST and for sockets that follow the list.

use serde::Serialize;
use utoipa::ToSchema;

use super::frame::{Frame, frame_in};
use crate::agent::ListUpdate;
use crate::domain::SessionKey;
use crate::gateway::word_list;
use crate::store::records::SessionRow;

/// The namespace of news for a user, regardless of the session shown.
pub const PERSON: &str = "/person";

/// A session as lists show it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionItem {
    /// Its id.
    pub(in crate::gateway) id: String,
    /// The title; `null` until a person or the first answer gives one.
    pub(in crate::gateway) title: Option<String>,
    /// The time at which the session began (RFC 3339).
    pub(in crate::gateway) created_at: String,
    /// The time of the last event.
    pub(in crate::gateway) updated_at: String,
    /// The state of the session.
    #[schema(value_type = word_list::SessionState)]
    pub(in crate::gateway) state: &'static str,
    /// The number of calls that wait for a person.
    pub(in crate::gateway) waiting: u64,
    /// The version of the item; of two items of one session, the one with the higher version is newer.
    pub(in crate::gateway) version: u64,
    /// True if the session is listed before all that are not pinned.
    pub(in crate::gateway) is_pinned: bool,
    /// True if the session is left out of the list; searches still find it.
    pub(in crate::gateway) is_archived: bool,
    /// The tags that the owner gave.
    pub(in crate::gateway) tags: Vec<String>,
    /// The origin of a fork; `null` if the session is not a fork.
    pub(in crate::gateway) forked_from: Option<ForkItem>,
}

/// The origin of a forked session.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct ForkItem {
    /// The session whose past it shares; it may be gone by now.
    pub(in crate::gateway) session_id: String,
    /// `seq` of the last event that both have.
    pub(in crate::gateway) seq: u64,
}

impl SessionItem {
    /// Builds the item of a row.
    pub fn of(row: &SessionRow) -> Self {
        Self {
            id: row.key.session.to_string(),
            title: Some(row.title.clone()).filter(|title| !title.is_empty()),
            created_at: row.created_at.to_rfc3339(),
            updated_at: row.updated_at.to_rfc3339(),
            state: row.state.as_str(),
            waiting: row.waiting,
            forked_from: row.forked_from.as_ref().map(|origin| ForkItem {
                session_id: origin.session.to_string(),
                seq: origin.seq,
            }),
            version: row.version.saturating_add(row.marks.changes),
            is_pinned: row.marks.is_pinned,
            is_archived: row.marks.is_archived,
            tags: row.marks.tags.iter().cloned().collect(),
        }
    }
}

/// Builds the frame of an update to a user's session list.
pub fn row_frame(news: &ListUpdate) -> Frame {
    match news {
        ListUpdate::Changed(row) | ListUpdate::Unlisted(row) => {
            frame_in(PERSON, "sessions:changed", &[&SessionItem::of(row)])
        }
        ListUpdate::GivenUp { key, .. } | ListUpdate::Removed { key, .. } => {
            let gone = serde_json::json!({ "id": key.session });
            frame_in(PERSON, "sessions:removed", &[&gone])
        }
    }
}

/// Builds the frame that says that the calls of another user's session that wait for the reader changed.
pub fn asking_frame(session: &SessionKey) -> Frame {
    let asking = serde_json::json!({ "id": session.session });
    frame_in(PERSON, "approvals:changed", &[&asking])
}

/// Builds the frame that says that updates may be missing, so that the client has to read the list again.
pub fn missed_frame() -> Frame {
    frame_in(PERSON, "sessions:missed", &[&serde_json::json!({})])
}
