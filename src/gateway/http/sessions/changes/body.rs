//! The wire form of changes.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::{FileChange, FileKind, FileState, WorkspaceChange};

/// One step of a workspace's history.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct ChangeItem {
    /// The number of the step in its session, from 1.
    pub(super) number: u64,
    /// When the change was noticed (RFC 3339, UTC).
    at: String,
    /// The ids of the calls that ran. If several ran at the same time, it is unknown which of them changed
    /// which file.
    calls: Vec<String>,
    /// The user ids of the people who changed files.
    people: Vec<String>,
    /// The step that was undone: the undo restored the workspace to its state before that step; `null` if
    /// this step is not an undo.
    undoes: Option<u64>,
    /// True if the workspace could not be scanned right after the change, so that later changes up to the
    /// next scan are included.
    is_late: bool,
    /// The number of files and links that were created.
    created: u64,
    /// The number of files and links that were modified.
    modified: u64,
    /// The number of files and links that were deleted.
    deleted: u64,
    /// The number of folders that were created, modified or deleted. A step that an earlier release stored
    /// counts them among the files.
    folders: u64,
}

impl ChangeItem {
    pub(super) fn of(change: &WorkspaceChange) -> Self {
        let cause = &change.cause;
        Self {
            number: change.number,
            at: change.at.to_rfc3339(),
            calls: cause.calls.iter().map(ToString::to_string).collect(),
            people: cause.people.iter().map(ToString::to_string).collect(),
            undoes: cause.undoes,
            is_late: cause.is_late,
            created: change.counts.created,
            modified: change.counts.modified,
            deleted: change.counts.deleted,
            folders: change.counts.folders,
        }
    }
}

/// An entry of a workspace at one time.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct ChangedEntry {
    /// `folder`, `file` or `link`.
    kind: &'static str,
    /// The permissions in octal digits, as in `chmod`.
    mode: String,
    /// The size of a file in bytes; 0 for anything else.
    bytes: u64,
    /// The target of a link; `null` for anything else.
    target: Option<String>,
    /// True if the content of a file is kept. The content is not kept for files above 1 MiB, or if the
    /// session's history has no room for it.
    has_content: bool,
}

impl ChangedEntry {
    pub(super) fn of(state: &FileState) -> Self {
        Self {
            kind: match state.kind {
                FileKind::Folder => "folder",
                FileKind::File => "file",
                FileKind::Link => "link",
            },
            mode: format!("{:o}", state.mode),
            bytes: state.bytes,
            target: state.target.clone(),
            has_content: state.content.is_some(),
        }
    }
}

/// A path whose entry changed.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct ChangedPath {
    /// The path below the workspace. A path that is not plain text is in bash's `$'...'` form.
    path: String,
    /// The entry before the change; `null` if there was none.
    before: Option<ChangedEntry>,
    /// The entry after the change; `null` if it was deleted.
    after: Option<ChangedEntry>,
}

impl ChangedPath {
    pub(super) fn of(change: FileChange) -> Self {
        Self {
            before: change.before.as_ref().map(ChangedEntry::of),
            after: change.after.as_ref().map(ChangedEntry::of),
            path: change.path,
        }
    }
}
