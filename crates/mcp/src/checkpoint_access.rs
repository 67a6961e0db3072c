//! The states of a workspace, asked of the server that runs in every sandbox: what is there, what files
//! hold, and an earlier state brought back. Requests that are no tools, so that no model asks for them.
//!
//! Answers come from inside the sandbox, so each is looked at before anything believes it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::file_access::{FileAccess, FileError, is_version, nonsense};
use sepal_core::domain::FileKind;

/// The methods, as `mcp-server` answers them.
const SCAN: &str = "sepal/scanWorkspace";
const CONTENTS: &str = "sepal/readContents";
const RESTORE: &str = "sepal/restoreFiles";

/// Entries of a whole workspace, and as many that are gone.
const MAX_ENTRIES: usize = 100_000;
/// The longest path and the longest target of a link, with every byte of it written as `\x..`.
const MAX_PATH: usize = 4096 * 4 + 3;
/// Bytes of one file, as the server reads it.
const MAX_CONTENT: usize = 1 << 20;
/// Files that one question for contents names.
const MAX_ASKED: usize = 500;

/// An entry that a scan found.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// From the workspace down, in bash's form where it is no plain text.
    pub path: String,
    pub kind: FileKind,
    pub mode: u32,
    pub bytes: u64,
    /// Which content a file has.
    #[serde(default)]
    pub version: Option<String>,
    /// Whether the file was changed so lately that it may change again without another version.
    #[serde(default)]
    pub is_fresh: bool,
    /// Where a link leads.
    #[serde(default)]
    pub target: Option<String>,
}

/// What a workspace has, or what is other than at the scan before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// Names it, for the next one.
    pub id: String,
    /// Whether all entries are told, and not the differences.
    pub is_whole: bool,
    pub found: Vec<Found>,
    /// Paths of what is gone; none where all entries are told.
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

/// One step back to an earlier state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase")]
pub enum RestoreStep {
    /// Deletes a file, a link, or a folder that is empty.
    Remove { path: String },
    /// Makes a folder, which its owner may write to until its mode is set.
    Folder { path: String },
    /// Writes a file in the place of whatever file or link has the name.
    File {
        path: String,
        mode: u32,
        /// The content, as base64.
        data: String,
    },
    /// Makes a link.
    Link { path: String, target: String },
    /// Sets who may use a file or folder.
    Mode { path: String, mode: u32 },
}

/// A path that a step could not bring back, and why.
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
    /// Looks at the whole workspace, without reading any file. The differences from the scan `base` are
    /// told where the server knows it.
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

    /// The contents of the first of those files of those versions, at least of one; none of a file that was
    /// changed meanwhile, is too long or cannot be read.
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

    /// Takes these steps, in their order; what could not be done.
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

/// Bash's form escapes no separator, so the parts of both forms are names.
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
