//! Reads the archives of ChatGPT's export and of our own. The unpacked size is bounded, regardless of the sizes that the
//! archive declares.

use std::borrow::Cow;
use std::io::{Cursor, Read as _};

use zip::ZipArchive;

use super::Error;
use crate::domain::SessionId;

/// The maximum number of files in one archive.
const MAX_FILES: usize = 100_000;

pub(super) fn is_archive(file: &[u8]) -> bool {
    file.starts_with(b"PK\x03\x04") || file.starts_with(b"PK\x05\x06")
}

/// Passes the text of each conversation file to `read`, in the order of their names: large exports have
/// several files.
pub(super) fn read_conversations(
    file: &[u8],
    most: u64,
    mut read: impl FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let broken = |error: zip::result::ZipError| Error::Archive(error.to_string());
    // `ZipArchive::new` reads the whole directory before its length is known.
    if headers(file) > MAX_FILES {
        return Err(Error::TooMuch("100,000 files"));
    }
    let mut archive = ZipArchive::new(Cursor::new(file)).map_err(broken)?;
    if archive.len() > MAX_FILES {
        return Err(Error::TooMuch("100,000 files"));
    }
    let names = archive.file_names().flatten();
    let names = names.filter(|name| is_wanted(name));
    let mut names: Vec<String> = names.map(Cow::into_owned).collect();
    names.sort_unstable();
    if names.is_empty() {
        return Err(Error::NoConversations);
    }
    let mut left = most;
    for name in &names {
        let packed = archive.by_name(name).map_err(broken)?;
        let mut text = Vec::new();
        // Reads one more byte to detect a larger file.
        let mut unpacked = packed.take(left.saturating_add(1));
        let bytes = unpacked.read_to_end(&mut text);
        let bytes = bytes.map_err(|error| Error::Archive(error.to_string()))?;
        left = left
            .checked_sub(bytes as u64)
            .ok_or(Error::TooMuch("128 MiB of conversations"))?;
        read(&text)?;
    }
    Ok(())
}

/// Counts the directory headers, an upper bound for the number of entries in the archive.
fn headers(file: &[u8]) -> usize {
    let marks = file.windows(4).filter(|four| *four == b"PK\x01\x02");
    marks.count()
}

/// True for `conversations.json`, `conversations-000.json` and so on, in any folder, and for the sessions of our own
/// archive.
fn is_wanted(name: &str) -> bool {
    let (folder, file) = name.rsplit_once('/').unwrap_or(("", name));
    let is_of_sessions = folder == "sessions" || folder.ends_with("/sessions");
    let session = file.strip_suffix(".json").and_then(SessionId::parse);
    if is_of_sessions && session.is_some() {
        return true;
    }
    let number = file
        .strip_prefix("conversations")
        .and_then(|rest| rest.strip_suffix(".json"));
    number.is_some_and(|number| {
        let digits = number.trim_start_matches(['-', '_']);
        digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}
