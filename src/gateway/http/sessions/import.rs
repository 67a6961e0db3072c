//! Imports conversations from the exports of other programs and from our own.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest as _, Request, State};
use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::agent::{ImportResult, Importing};
use crate::domain::{Caller, Code};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::import::{FileEntry, left_out_of, read};

/// The largest file, in bytes.
const MAX_FILE: usize = 64 * 1024 * 1024;

/// The result of an import.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct ImportDone {
    /// The new sessions.
    imported: Vec<ImportedItem>,
    /// The sessions of conversations that were imported before; they are unchanged.
    already_there: Vec<ImportedItem>,
    /// The conversations that were not imported.
    skipped: Vec<SkippedItem>,
}

/// A session that was made from a conversation.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct ImportedItem {
    /// The session's id.
    session_id: String,
    /// The conversation's title.
    title: String,
    /// The parts that were left out or could not be read; its messages say so at their places too. Absent if it is
    /// whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
}

/// A conversation that was not imported.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct SkippedItem {
    /// The conversation's title, as far as it has one.
    title: String,
    /// The reason it was not imported, for people.
    reason: String,
}

/// Imports conversations from a file, which is the body.
///
/// The file is ChatGPT's `conversations.json` or the zip archive that contains it, or a JSON export of
/// LibreChat, Open WebUI or Sepal. Each conversation becomes a session with its title, times and messages;
/// conversations of Sepal also keep people's attachments. A conversation that is sent again is not imported
/// again.
#[utoipa::path(post, path = "/api/sessions/import", tag = "sessions",
    request_body(content = Vec<u8>, content_type = "application/octet-stream",
        description = "The file, 64 MiB at most."),
    responses((status = 200, body = ImportDone), (status = 400, body = Problem),
        (status = 413, body = Problem), (status = 429, body = Problem)),
)]
pub(in crate::gateway::http) async fn import_sessions(
    State(state): State<GatewayState>,
    caller: Caller,
    mut request: Request,
) -> Result<Json<ImportDone>, ApiError> {
    let mut importing = Importing::begin(&state.sessions, &caller)?;
    DefaultBodyLimit::max(MAX_FILE).apply(&mut request);
    let file = Bytes::from_request(request, &state).await;
    let file = file.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            let text = "a file to import may have 64 MiB; export fewer conversations at once";
            ApiError::of_field(Code::TooLarge, "file", text)
        }
        _ => ApiError::new(Code::InvalidArguments, "the body did not arrive whole"),
    })?;
    let found = importing.read(move |watch| read(&file, watch)).await?;
    let found = found
        .map_err(|error| ApiError::of_field(Code::InvalidArguments, "file", error.to_string()))?;
    let mut done = ImportDone::default();
    for item in found {
        let conversation = match item {
            FileEntry::Conversation(conversation) => conversation,
            FileEntry::Unusable { title, why } => {
                let reason = why.to_owned();
                done.skipped.push(SkippedItem { title, reason });
                continue;
            }
        };
        let title = conversation.title.clone();
        let left_out = left_out_of(&conversation);
        let imported = importing.take(conversation).await;
        let item = |session: crate::domain::SessionId, title| ImportedItem {
            session_id: session.to_string(),
            title,
            left_out,
        };
        match imported {
            Ok(ImportResult::New(key)) => done.imported.push(item(key.session, title)),
            Ok(ImportResult::There(key)) => done.already_there.push(item(key.session, title)),
            // The rest would fail as well. Imported sessions stay, and a retry with the same file continues.
            Err(refusal) if refusal.code == Code::StoreUnavailable => return Err(refusal.into()),
            Err(refusal) => {
                let reason = refusal.message;
                done.skipped.push(SkippedItem { title, reason });
            }
        }
    }
    state.sessions.listed().await;
    Ok(Json(done))
}
