//! Lists a folder of the workspace in pages.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::super::key_of;
use super::shown_name::join;
use crate::agent::{FilePurpose, SessionFiles};
use crate::domain::{Caller, Timestamp};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Query, SessionPath};
use crate::mcp::{EntryKind, FOLDER_PAGE, FolderEntry};

/// The folder to list, and the page.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::gateway::http) struct ListFilesQuery {
    /// The folder, as in `path` of its entry; if absent, the workspace itself.
    #[param(max_length = 20_480)]
    path: Option<String>,
    /// The `next` of the previous page; absent for the first page.
    #[param(max_length = 1024)]
    after: Option<String>,
    /// The number of entries in the page, 1 to 1000; 1000 if absent.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// A page of a folder: folders first, each kind sorted by name.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct FolderListing {
    /// The folder; empty for the workspace itself.
    path: String,
    /// The entries of the page.
    items: Vec<FileItem>,
    /// The number of entries in the whole folder.
    total: u64,
    /// The `after` of the next page; `null` on the last page.
    next: Option<String>,
}

/// An entry of a folder.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct FileItem {
    /// The name. A name that is not plain text is in bash's `$'...'` form.
    name: String,
    /// The path below the workspace, in the same form. It names the entry in addresses and queries.
    path: String,
    /// `folder`, `file`, `link` or `special` (a pipe, socket or device).
    kind: &'static str,
    /// The size of a file in bytes; 0 for anything else.
    bytes: u64,
    /// When the entry was last modified (RFC 3339, UTC).
    modified_at: String,
    /// The version of a file's content, for `If-Match`; `null` for anything else.
    version: Option<String>,
    /// The target of a link; `null` for anything else. Links are not followed.
    target: Option<String>,
}

impl FileItem {
    fn of(folder: &str, entry: FolderEntry) -> Self {
        Self {
            path: join(folder, &entry.name),
            name: entry.name,
            kind: match entry.kind {
                EntryKind::Folder => "folder",
                EntryKind::File => "file",
                EntryKind::Link => "link",
                EntryKind::Special => "special",
            },
            bytes: entry.bytes,
            modified_at: Timestamp(entry.modified_ms).to_rfc3339(),
            version: entry.version,
            target: entry.target,
        }
    }
}

/// Lists a folder of the session's workspace.
///
/// If nothing has run in the session, the workspace is empty. Otherwise the session's sandbox is started to
/// read the folder.
#[utoipa::path(get, path = "/api/sessions/{id}/files", tag = "sessions",
    params(("id" = String, Path), ListFilesQuery),
    responses((status = 200, body = FolderListing), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 503, body = Problem)),
)]
pub(in crate::gateway::http) async fn list_files(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    Query(query): Query<ListFilesQuery>,
) -> Result<Json<FolderListing>, ApiError> {
    let key = key_of(&caller, session);
    let files = SessionFiles::open(&state.sessions, &key, &caller, FilePurpose::Read).await?;
    let path = query.path.unwrap_or_default();
    let path = if path == "." { String::new() } else { path };
    let limit = query.limit.unwrap_or(FOLDER_PAGE).clamp(1, FOLDER_PAGE);
    let page = files.list(&path, query.after.as_deref(), limit).await?;
    let entries = page.entries.into_iter();
    Ok(Json(FolderListing {
        items: entries.map(|entry| FileItem::of(&path, entry)).collect(),
        path,
        total: page.total,
        next: page.next,
    }))
}
