//! The archive that ChatGPT's export comes in. What it unpacks to is bounded, whatever it says of itself.

use std::borrow::Cow;
use std::io::{Cursor, Read as _};

use zip::ZipArchive;

use super::Error;

/// Files of one archive.
const MAX_FILES: usize = 100_000;

pub(super) fn is_archive(file: &[u8]) -> bool {
    file.starts_with(b"PK\x03\x04") || file.starts_with(b"PK\x05\x06")
}

/// Gives the texts of the files that hold conversations one after the other, by their names: large exports
/// have several.
pub(super) fn read_conversations(
    file: &[u8],
    most: u64,
    mut read: impl FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let broken = |error: zip::result::ZipError| Error::Archive(error.to_string());
    // Its directory is read whole before its length is known.
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
        // One more, to see that there is more.
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

/// The number of entries that the directory of an archive can have: one for each of its headers.
fn headers(file: &[u8]) -> usize {
    let marks = file.windows(4).filter(|four| *four == b"PK\x01\x02");
    marks.count()
}

/// `conversations.json`, or `conversations-000.json` and so on, wherever they lie.
fn is_wanted(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or_default();
    let number = file
        .strip_prefix("conversations")
        .and_then(|rest| rest.strip_suffix(".json"));
    number.is_some_and(|number| {
        let digits = number.trim_start_matches(['-', '_']);
        digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}
