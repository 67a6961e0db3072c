//! The wire form of changes.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::{FileChange, FileKind, FileState, WorkspaceChange};

/// One step of the history of a workspace.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct ChangeItem {
    /// Counts the steps of the session, from 1.
    pub(super) number: u64,
    /// When it was noticed (RFC 3339, UTC).
    at: String,
    /// The calls that ran; more than one ran side by side, and which of them changed what is not known.
    calls: Vec<String>,
    /// The people who changed files, by their ids.
    people: Vec<String>,
    /// The step before which an undo brought the workspace back; null for anything else.
    undoes: Option<u64>,
    /// Whether the workspace could not be looked at right afterwards, so that whatever came until the next
    /// look is counted with it.
    is_late: bool,
    /// Files, folders and links that were made.
    created: u64,
    /// Those that are others now.
    modified: u64,
    /// Those that are gone.
    deleted: u64,
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
        }
    }
}

/// An entry of a workspace at one time.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct ChangedEntry {
    /// `folder`, `file` or `link`.
    kind: &'static str,
    /// Who may read, write and run it, in octal digits as in `chmod`.
    mode: String,
    /// Of a file; 0 for anything else.
    bytes: u64,
    /// Where a link leads.
    target: Option<String>,
    /// Whether the content of a file is kept: not of one above 1 MiB, nor where the limit of the session's
    /// history left no room for it.
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
    /// From the workspace down; one that is no plain text stands in bash's `$'...'` form.
    path: String,
    /// Null where there was none.
    before: Option<ChangedEntry>,
    /// Null where it is gone.
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
