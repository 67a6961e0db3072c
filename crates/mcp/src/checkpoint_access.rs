//! Scans the workspace, reads file contents and restores an earlier state, through the server that runs in
//! every sandbox. These requests are not tools, so no model can call them.
//!
//! Answers come from inside the sandbox, so each one is validated before it is used.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::file_access::{FileAccess, FileError, is_version, nonsense};
use sepal_core::domain::FileKind;

/// The methods that `mcp-server` implements for this.
const SCAN: &str = "sepal/scanWorkspace";
const CONTENTS: &str = "sepal/readContents";
const RESTORE: &str = "sepal/restoreFiles";

/// The most entries of a whole workspace, and the most removed paths.
const MAX_ENTRIES: usize = 100_000;
/// The longest path and the longest link target, with every byte written as `\x..`.
const MAX_PATH: usize = 4096 * 4 + 3;
/// Most bytes of one file that the server reads.
const MAX_CONTENT: usize = 1 << 20;
/// The most files in one contents request.
const MAX_ASKED: usize = 500;

/// An entry that a scan found.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// The path relative to the workspace, in bash's quoted form if it is not plain text.
    pub path: String,
    pub kind: FileKind,
    pub mode: u32,
    pub bytes: u64,
    /// The version of a file's content.
    #[serde(default)]
    pub version: Option<String>,
    /// True if the file was changed so recently that it may change again without a new version.
    #[serde(default)]
    pub is_fresh: bool,
    /// The target of a link.
    #[serde(default)]
    pub target: Option<String>,
}

/// The entries of a workspace, or its differences from the previous scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// Identifies the scan, to be passed as `base` of the next one.
    pub id: String,
    /// True if this lists all entries instead of the differences.
    pub is_whole: bool,
    pub found: Vec<Found>,
    /// Paths that no longer exist; empty if `is_whole`.
    pub removed: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageAnswer {
    id: String,
    is_whole: bool,
    entries: Vec<Found>,
    removed: Vec<String>,
    #[serde(default)]
    next: Option<usize>,
}

#[derive(Deserialize)]
struct ContentsAnswer {
    contents: Vec<Option<String>>,
}

/// One step in restoring an earlier state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase")]
pub enum RestoreStep {
    /// Deletes a file, a link, or an empty folder.
    Remove { path: String },
    /// Creates a folder, which stays writable for its owner until its mode is set.
    Folder { path: String },
    /// Writes a file, replacing any file or link of that name.
    File {
        path: String,
        mode: u32,
        /// The content, as base64.
        data: String,
    },
    /// Creates a link.
    Link { path: String, target: String },
    /// Sets the permission bits of a file or folder.
    Mode { path: String, mode: u32 },
}

/// A path that a step could not restore, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Unrestored {
    pub path: String,
    pub text: String,
}

#[derive(Deserialize)]
struct RestoreAnswer {
    failed: Vec<Unrestored>,
}

impl FileAccess<'_> {
    /// Scans the whole workspace without reading any file. Returns the differences from the scan `base` if
    /// the server still knows that scan, and all entries otherwise.
    pub async fn scan(self, base: Option<&str>) -> Result<Scan, FileError> {
        let page: PageAnswer = self.ask(SCAN, json!({ "base": base })).await?;
        let mut next = page.next;
        let mut scan = Scan {
            id: page.id,
            is_whole: page.is_whole,
            found: page.entries,
            removed: page.removed,
        };
        if !is_version(&scan.id) || (scan.is_whole && !scan.removed.is_empty()) {
            return Err(nonsense());
        }
        while let Some(from) = next {
            let asked = json!({ "base": scan.id, "from": from });
            let page: PageAnswer = self.ask(SCAN, asked).await?;
            let is_progress = !page.entries.is_empty() || !page.removed.is_empty();
            if page.id != scan.id || !is_progress || page.next.is_some_and(|next| next <= from) {
                return Err(nonsense());
            }
            scan.found.extend(page.entries);
            scan.removed.extend(page.removed);
            next = page.next;
            if scan.found.len() + scan.removed.len() > MAX_ENTRIES {
                return Err(nonsense());
            }
        }
        let is_sound = scan.found.iter().all(is_sound) && scan.removed.iter().all(|it| is_path(it));
        is_sound.then_some(scan).ok_or_else(nonsense)
    }

    /// Reads the contents of the first of the given (path, version) pairs, at least of one. `None` stands for
    /// a file that has changed since, is too long or cannot be read.
    pub async fn contents(self, files: &[(&str, &str)]) -> Result<Vec<Option<Vec<u8>>>, FileError> {
        let asked = files.iter().take(MAX_ASKED);
        let asked = asked.map(|(path, version)| json!({ "path": path, "version": version }));
        let asked = json!({ "files": asked.collect::<Vec<_>>() });
        let answer: ContentsAnswer = self.ask(CONTENTS, asked).await?;
        let told = answer.contents.len();
        if told > files.len() || (told == 0 && !files.is_empty()) {
            return Err(nonsense());
        }
        let contents = answer.contents.into_iter().map(|content| {
            let Some(content) = content else {
                return Ok(None);
            };
            let content = STANDARD.decode(content).map_err(|_| nonsense())?;
            (content.len() <= MAX_CONTENT)
                .then_some(Some(content))
                .ok_or_else(nonsense)
        });
        contents.collect()
    }

    /// Takes the steps in order, and returns those that failed.
    pub async fn restore(self, steps: &[RestoreStep]) -> Result<Vec<Unrestored>, FileError> {
        let answer: RestoreAnswer = self.ask(RESTORE, json!({ "steps": steps })).await?;
        let failed = answer.failed.into_iter().take(steps.len());
        let plain = |text: &str| {
            let plain = text.chars().filter(|letter| !letter.is_control());
            plain.take(MAX_PATH).collect()
        };
        let failed = failed.map(|it| Unrestored {
            path: plain(&it.path),
            text: plain(&it.text),
        });
        Ok(failed.collect())
    }
}

fn is_sound(found: &Found) -> bool {
    let is_target =
        |target: &String| target.len() <= MAX_PATH && !target.chars().any(char::is_control);
    is_path(&found.path)
        && found.mode <= 0o7777
        && (found.kind == FileKind::File) == found.version.is_some()
        && found.version.as_deref().is_none_or(is_version)
        && (found.kind == FileKind::Link) == found.target.is_some()
        && found.target.iter().all(is_target)
}

/// Bash's quoted form does not escape separators, so the parts of both forms are names.
fn is_path(path: &str) -> bool {
    let is_name = |name: &str| !matches!(name, "" | "." | "..");
    let parts = path
        .strip_prefix("$'")
        .and_then(|rest| rest.strip_suffix('\''));
    path.len() <= MAX_PATH
        && !path.chars().any(char::is_control)
        && parts.unwrap_or(path).split('/').all(is_name)
}

#[cfg(test)]
mod tests {
    use super::{FileKind, Found, is_path, is_sound};

    #[test]
    fn only_an_entry_that_can_be_is_sound() {
        for path in ["a", "a/b c", "żółw", r"$'a/caf\xe9'", "..a/b"] {
            assert!(is_path(path), "{path}");
        }
        for path in ["", "/a", "a//b", "a/", "../a", "a/./b", "$'../a'", "a\nb"] {
            assert!(!is_path(path), "{path}");
        }
        let file = Found {
            path: "a".to_owned(),
            kind: FileKind::File,
            mode: 0o644,
            bytes: 1,
            version: Some("1-1-1".to_owned()),
            is_fresh: false,
            target: None,
        };
        assert!(is_sound(&file));
        let link = Found {
            kind: FileKind::Link,
            ..file.clone()
        };
        assert!(!is_sound(&link));
        let mode = 0o10_000;
        assert!(!is_sound(&Found { mode, ..file }));
    }
}
