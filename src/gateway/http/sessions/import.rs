//! Imports conversations from the exports of other programs and from our own.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest as _, Request, State};
use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::agent::{Imported, Importing};
use crate::domain::{Caller, Code};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::import::{Found, read};

/// The largest file, in bytes.
const MAX_FILE: usize = 64 * 1024 * 1024;

/// What became of the conversations of a file.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct ImportDone {
    /// Sessions that are new.
    imported: Vec<ImportedItem>,
    /// Conversations that were imported before; nothing was changed in their sessions.
    already_there: Vec<ImportedItem>,
    /// What was not imported.
    skipped: Vec<SkippedItem>,
}

/// A session that was made of a conversation.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct ImportedItem {
    session_id: String,
    title: String,
}

/// A conversation that was not imported.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct SkippedItem {
    /// As far as it has one.
    title: String,
    /// Why not.
    reason: String,
}

/// Import conversations: ChatGPT's `conversations.json` or the zip archive it comes in, JSON exports of
/// LibreChat, Open WebUI and Sepal, as the body. Each becomes a session with its title, times and
/// messages, and those of Sepal with what people attached. The same conversation is imported once,
/// however often it comes.
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
            Found::Conversation(conversation) => conversation,
            Found::Unusable { title, why } => {
                let reason = why.to_owned();
                done.skipped.push(SkippedItem { title, reason });
                continue;
            }
        };
        let title = conversation.title.clone();
        let imported = importing.take(conversation).await;
        let item = |session: crate::domain::SessionId, title| ImportedItem {
            session_id: session.to_string(),
            title,
        };
        match imported {
            Ok(Imported::New(key)) => done.imported.push(item(key.session, title)),
            Ok(Imported::There(key)) => done.already_there.push(item(key.session, title)),
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
