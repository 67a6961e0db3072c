//! Lists, reads, uploads and deletes files of a workspace for people, through the server that runs in every
//! sandbox. These requests are not tools, so no model can call them. Other servers never receive them.
//!
//! Answers come from inside the sandbox, so each one is validated before it is used.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::connection::Connection;
use super::error::Error;

/// The methods that `mcp-server` implements for this.
const LIST: &str = "sepal/listFolder";
const READ: &str = "sepal/readFile";
const PUT: &str = "sepal/putFile";
const REMOVE: &str = "sepal/removeFile";

/// Most bytes in one part of a file: a sandbox with little memory takes the part as base64 in a line of JSON.
pub const FILE_PART: usize = 512 * 1024;
/// The most entries in one page of a folder.
pub const FOLDER_PAGE: usize = 1000;
/// The longest name, with every byte written as `\x..`.
const MAX_NAME: usize = 255 * 4 + 3;
/// The longest link target, in the same form.
const MAX_TARGET: usize = 4096 * 4 + 3;
/// The longest version string of a file.
const MAX_VERSION: usize = 100;
/// The longest explanation of a refusal, in characters.
const MAX_TEXT: usize = 1000;

/// The reason that the server refused a file operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileRefusal {
    /// The path does not exist.
    Missing,
    /// The path exists and is not a file.
    NotFile,
    /// The path exists and is not a folder.
    NotFolder,
    /// An entry of that name exists and may not be replaced.
    Exists,
    /// The file has changed since the version that the request named.
    Changed,
    /// The workspace has no room left for the file.
    Full,
    /// The path or the request is invalid.
    Invalid,
    /// The file system denies access.
    Forbidden,
    /// Too many operations run at the same time.
    Busy,
    /// The file system failed.
    #[serde(other)]
    Failed,
}

/// A file operation that failed.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The server refused the operation.
    #[error("{text}")]
    Refused { kind: FileRefusal, text: String },
    /// The server is too old to know the method.
    #[error("the sandbox's image is older than this gateway and knows nothing of files for people")]
    Outdated,
    /// The server did not answer, or sent an invalid answer.
    #[error(transparent)]
    Server(#[from] Error),
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FolderEntry {
    /// The name, in bash's quoted form if it is not plain text.
    pub name: String,
    pub kind: EntryKind,
    /// The size of a file; 0 for anything else.
    pub bytes: u64,
    /// When the content was last changed, in milliseconds since 1970.
    pub modified_ms: i64,
    /// The version of a file's content.
    #[serde(default)]
    pub version: Option<String>,
    /// The target of a link.
    #[serde(default)]
    pub target: Option<String>,
}

/// The type of a folder entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    Folder,
    File,
    /// A symbolic link, which is not followed.
    Link,
    /// A pipe, socket or device.
    Special,
}

/// A page of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FolderPage {
    pub entries: Vec<FolderEntry>,
    /// The number of entries in the whole folder.
    pub total: u64,
    /// The position of the next page; `None` on the last page.
    #[serde(default)]
    pub next: Option<String>,
}

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePart {
    /// The version of the content that the part belongs to.
    pub version: String,
    /// The size of the whole file.
    pub bytes: u64,
    /// When the content was last changed, in milliseconds since 1970.
    pub modified_ms: i64,
    pub data: Vec<u8>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PartAnswer {
    version: String,
    bytes: u64,
    modified_ms: i64,
    data: String,
}

/// One part of an upload.
#[derive(Debug, Clone, Copy)]
pub struct UploadPart<'a> {
    /// Identifies the upload from its first part to its last.
    pub id: &'a str,
    pub path: &'a str,
    pub offset: u64,
    pub data: &'a [u8],
    pub is_last: bool,
    /// The size of the whole file as its sender announced it; 0 if unknown.
    pub bytes: u64,
    /// The version of the file that may be replaced, or `*` for any; `None` if no file may be replaced.
    pub replaces: Option<&'a str>,
    /// The most bytes that the workspace may hold in all.
    pub room: u64,
}

/// An uploaded file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct UploadedFile {
    pub version: String,
    pub bytes: u64,
    /// True if the file did not exist before.
    pub created: bool,
}

#[derive(Deserialize)]
struct Refused {
    kind: FileRefusal,
    text: String,
}

/// Accesses files over an open connection to the server in the sandbox. Each request may take `limit`.
#[derive(Clone, Copy)]
pub struct FileAccess<'c> {
    connection: &'c Connection,
    limit: Duration,
}

impl<'c> FileAccess<'c> {
    /// Creates an accessor for `connection`.
    pub fn new(connection: &'c Connection, limit: Duration) -> Self {
        Self { connection, limit }
    }

    /// Returns one page of a folder; `after` is the `next` of the previous page.
    pub async fn list(
        self,
        path: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<FolderPage, FileError> {
        let asked = json!({ "path": path, "after": after, "limit": limit });
        let page: FolderPage = self.ask(LIST, asked).await?;
        let is_sound = page.entries.len() <= limit.min(FOLDER_PAGE)
            && page.entries.iter().all(is_sound)
            && page
                .next
                .as_ref()
                .is_none_or(|next| next.len() <= MAX_NAME + 1);
        is_sound.then_some(page).ok_or_else(nonsense)
    }

    /// Reads at most [`FILE_PART`] bytes of a file, only of `version` if that is given; no bytes if the
    /// length is 0.
    pub async fn read(
        self,
        path: &str,
        offset: u64,
        length: usize,
        version: Option<&str>,
    ) -> Result<FilePart, FileError> {
        let length = length.min(FILE_PART);
        let asked = json!({ "path": path, "offset": offset, "length": length, "version": version });
        let part: PartAnswer = self.ask(READ, asked).await?;
        let data = STANDARD.decode(&part.data).map_err(|_| nonsense())?;
        let is_sound = data.len() <= length
            && is_version(&part.version)
            && version.is_none_or(|wanted| wanted == part.version);
        is_sound
            .then_some(FilePart {
                version: part.version,
                bytes: part.bytes,
                modified_ms: part.modified_ms,
                data,
            })
            .ok_or_else(nonsense)
    }

    /// Uploads one part of a file. The last part returns the uploaded file.
    pub async fn put(self, part: UploadPart<'_>) -> Result<Option<UploadedFile>, FileError> {
        let asked = json!({
            "id": part.id, "path": part.path, "offset": part.offset,
            "data": STANDARD.encode(part.data), "isLast": part.is_last, "bytes": part.bytes,
            "replaces": part.replaces, "room": part.room,
        });
        if !part.is_last {
            let _: Value = self.ask(PUT, asked).await?;
            return Ok(None);
        }
        let done: UploadedFile = self.ask(PUT, asked).await?;
        let is_sound = is_version(&done.version);
        is_sound.then_some(Some(done)).ok_or_else(nonsense)
    }

    /// Deletes a file or link, only of `version` if that is given; with `is_recursive`, a folder and its
    /// contents.
    pub async fn remove(
        self,
        path: &str,
        version: Option<&str>,
        is_recursive: bool,
    ) -> Result<(), FileError> {
        let asked = json!({ "path": path, "version": version, "isRecursive": is_recursive });
        let _: Value = self.ask(REMOVE, asked).await?;
        Ok(())
    }

    pub(super) async fn ask<T: DeserializeOwned>(
        self,
        method: &str,
        asked: Value,
    ) -> Result<T, FileError> {
        let answer = self.connection.request(method, asked, self.limit).await;
        let mut answer = match answer {
            Ok(answer) => answer,
            // A server that does not know a method answers with the method's name.
            Err(Error::Refused(text)) if text.contains(method) => return Err(FileError::Outdated),
            Err(error) => return Err(error.into()),
        };
        if let Some(refused) = answer.get_mut("refused").map(Value::take) {
            let refused: Refused = serde_json::from_value(refused).map_err(|_| nonsense())?;
            let plain = refused.text.chars().filter(|letter| !letter.is_control());
            return Err(FileError::Refused {
                kind: refused.kind,
                text: plain.take(MAX_TEXT).collect(),
            });
        }
        serde_json::from_value(answer).map_err(|_| nonsense())
    }
}

pub(super) fn nonsense() -> FileError {
    Error::Refused("the answer is not about these files".to_owned()).into()
}

fn is_sound(entry: &FolderEntry) -> bool {
    let is_plain = |text: &str| !text.chars().any(char::is_control);
    let is_name = !entry.name.is_empty() && entry.name.len() <= MAX_NAME && is_plain(&entry.name);
    // A name must not be a path: bash's quoted form does not escape what would make it one.
    is_name
        && !entry.name.contains('/')
        && entry.name != ".."
        && entry.name != "."
        && entry.version.as_deref().is_none_or(is_version)
        && (entry.target.as_deref())
            .is_none_or(|target| target.len() <= MAX_TARGET && is_plain(target))
}

/// Returns true if the text is a valid version: versions are put into headers.
pub(super) fn is_version(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    !text.is_empty() && text.len() <= MAX_VERSION && text.bytes().all(is_letter)
}

#[cfg(test)]
mod tests {
    use super::{EntryKind, FolderEntry, is_sound, is_version};

    #[test]
    fn only_an_entry_that_can_be_is_sound() {
        let entry = |name: &str| FolderEntry {
            name: name.to_owned(),
            kind: EntryKind::File,
            bytes: 1,
            modified_ms: 0,
            version: Some("1f-2-3".to_owned()),
            target: None,
        };
        for name in ["a", "żółw", "..a", r"$'a\x0ab'", "-rf", "a b"] {
            assert!(is_sound(&entry(name)), "{name}");
        }
        for name in ["", ".", "..", "a/b", "../etc", "a\nb", &"x".repeat(2000)] {
            assert!(!is_sound(&entry(name)), "{name}");
        }
        let forged = FolderEntry {
            version: Some("\"\r\nSet-Cookie: x".to_owned()),
            ..entry("a")
        };
        assert!(!is_sound(&forged));
        assert!(is_version("0-0--1") && !is_version("") && !is_version("G"));
    }
}
