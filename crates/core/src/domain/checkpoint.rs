//! Records the states of a workspace and the changes between them, in the same form from the store to the
//! doors.

use serde::{Deserialize, Serialize};

use super::id::{CallId, UserId};
use super::time::Timestamp;

/// The kind of a workspace entry. Pipes, sockets and devices are not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    Folder,
    File,
    /// A symbolic link, which is never followed.
    Link,
}

/// SHA-256 of a file's content, in hex.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContentHash(Box<str>);

impl ContentHash {
    /// Wraps a hash from the store.
    pub fn from_stored(text: String) -> Self {
        Self(text.into())
    }

    /// The hash as stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// An entry of a workspace at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    pub kind: FileKind,
    /// The permissions, as in `chmod`.
    pub mode: u32,
    /// Size of a file; 0 for anything else.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes: u64,
    /// Identifies the content of a file on the disk while it is there; empty if the scan could not
    /// determine it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Hash of a file's content; `None` if the content was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<ContentHash>,
    /// The target of a link, quoted for bash if it is not plain text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

impl FileState {
    /// Returns true if the two states are indistinguishable apart from times. If a content was not read,
    /// the versions are compared.
    pub fn is_like(&self, other: &Self) -> bool {
        let is_same = (self.kind, self.mode, self.bytes, &self.target)
            == (other.kind, other.mode, other.bytes, &other.target);
        let has_same_content = match (&self.content, &other.content) {
            (Some(content), Some(others)) => content == others,
            (None, _) | (_, None) => !self.version.is_empty() && self.version == other.version,
        };
        is_same && (self.kind != FileKind::File || has_same_content)
    }
}

/// A changed entry of a workspace: without `before` it was created, without `after` it was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Path relative to the workspace, quoted for bash if it is not plain text.
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<FileState>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<FileState>,
}

/// The cause of changes. Several causes acted at the same time, and it is unknown which changed which file.
/// No cause = changes between calls, for example by a server that keeps running.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeCause {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallId>,
    /// People who changed files of the session directly or by an undo.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub people: Vec<UserId>,
    /// The change that was undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<u64>,
    /// True if the scan right after the cause failed, so that later changes up to the next scan are
    /// included.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_late: bool,
}

/// Number of changed entries by kind of change. Folders are counted apart, because a new file often brings
/// new folders along.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeCounts {
    /// Files and links that were created.
    pub created: u64,
    /// Files and links that were modified.
    pub modified: u64,
    /// Files and links that were deleted.
    pub deleted: u64,
    /// Folders that were created, modified or deleted.
    #[serde(default)]
    pub folders: u64,
}

impl ChangeCounts {
    /// Counts changes.
    pub fn of(changes: &[FileChange]) -> Self {
        let kind = |state: &Option<FileState>| state.as_ref().map(|state| state.kind);
        let mut counts = Self::default();
        for change in changes {
            counts.count(kind(&change.before), kind(&change.after));
        }
        counts
    }

    /// Counts a changed entry by its kinds before and after the change; `None` = it did not exist.
    pub fn count(&mut self, before: Option<FileKind>, after: Option<FileKind>) {
        let is_file = |kind: &FileKind| *kind != FileKind::Folder;
        match (before.filter(is_file), after.filter(is_file)) {
            (None, None) => self.folders += 1,
            (None, Some(_)) => self.created += 1,
            (Some(_), None) => self.deleted += 1,
            (Some(_), Some(_)) => self.modified += 1,
        }
    }

    /// The sum of all changes, those of folders included.
    pub fn total(self) -> u64 {
        self.created + self.modified + self.deleted + self.folders
    }
}

/// One step of the history of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceChange {
    /// Number of the change in its session, from 1.
    pub number: u64,
    pub at: Timestamp,
    pub cause: ChangeCause,
    pub counts: ChangeCounts,
}

#[cfg(test)]
mod tests {
    use super::{ChangeCounts, ContentHash, FileKind, FileState};

    #[test]
    fn folders_are_counted_apart_from_files_and_links() {
        let (file, folder, link) = (FileKind::File, FileKind::Folder, FileKind::Link);
        let mut counts = ChangeCounts::default();
        for (before, after) in [
            (None, Some(folder)),
            (Some(folder), Some(folder)),
            (Some(folder), None),
            (None, Some(file)),
            (None, Some(link)),
            (Some(file), Some(link)),
            (Some(link), None),
            // One that takes the other's place.
            (Some(folder), Some(file)),
            (Some(file), Some(folder)),
        ] {
            counts.count(before, after);
        }
        let expected = ChangeCounts {
            created: 3,
            modified: 1,
            deleted: 2,
            folders: 3,
        };
        assert_eq!((counts, counts.total()), (expected, 9));
    }

    #[test]
    fn times_do_not_count_where_contents_are_known() {
        let file = |version: &str, content: Option<&str>| FileState {
            kind: FileKind::File,
            mode: 0o644,
            bytes: 1,
            version: version.to_owned(),
            content: content.map(|content| ContentHash::from_stored(content.to_owned())),
            target: None,
        };
        assert!(file("1", Some("a")).is_like(&file("2", Some("a"))));
        assert!(!file("1", Some("a")).is_like(&file("1", Some("b"))));
        assert!(file("1", None).is_like(&file("1", Some("b"))));
        assert!(!file("1", None).is_like(&file("2", None)));
        assert!(!file("", None).is_like(&file("", None)));
        let folder = |mode| FileState {
            kind: FileKind::Folder,
            mode,
            ..file("", None)
        };
        assert!(folder(0o755).is_like(&folder(0o755)) && !folder(0o755).is_like(&folder(0o700)));
    }
}
