//! Exports of other programs, and our own, read as conversations. Pure.

mod archive;
mod chatgpt;
mod librechat;
mod open_webui;
mod parts;
mod sepal;

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::agent::Conversation;

/// Conversations of one file.
const MAX_CONVERSATIONS: usize = 10_000;
/// Bytes that are read of what an archive holds, unpacked.
const MAX_UNPACKED: u64 = 128 * 1024 * 1024;

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::gateway) enum Found {
    Conversation(Conversation),
    /// An entry that is no conversation, or an empty one.
    Unusable {
        title: String,
        why: &'static str,
    },
}

/// Why nothing is read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::gateway) enum Error {
    #[error("the file is neither JSON nor a zip archive: {0}")]
    NotJson(String),
    #[error(
        "the file is none of the exports that are known: ChatGPT's `conversations.json` or its zip \
         archive, a JSON export of LibreChat, Open WebUI or Sepal"
    )]
    Unknown,
    #[error("the archive cannot be read: {0}")]
    Archive(String),
    #[error("the archive holds no `conversations.json`")]
    NoConversations,
    #[error("the file holds more than {0}")]
    TooMuch(&'static str),
}

/// The conversations of a file, in their order.
pub(in crate::gateway) fn read(file: &[u8]) -> Result<Vec<Found>, Error> {
    let mut found = Vec::new();
    if archive::is_archive(file) {
        for text in archive::conversations(file, MAX_UNPACKED)? {
            read_json(&text, &mut found)?;
        }
    } else {
        read_json(file, &mut found)?;
    }
    Ok(found)
}

fn read_json(text: &[u8], found: &mut Vec<Found>) -> Result<(), Error> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let text = str::from_utf8(text).map_err(|error| Error::NotJson(error.to_string()))?;
    let not_json = |error: serde_json::Error| Error::NotJson(error.to_string());
    if !text.trim_start().starts_with('[') {
        let entry: &RawValue = serde_json::from_str(text).map_err(not_json)?;
        found.push(read_entry(entry).ok_or(Error::Unknown)?);
        return Ok(());
    }
    let entries: Vec<&RawValue> = serde_json::from_str(text).map_err(not_json)?;
    if found.len() + entries.len() > MAX_CONVERSATIONS {
        return Err(Error::TooMuch("10,000 conversations"));
    }
    let mut is_known = entries.is_empty();
    for entry in entries {
        let read = read_entry(entry);
        is_known |= read.is_some();
        found.push(read.unwrap_or_else(|| Found::Unusable {
            title: parts::title_of(entry),
            why: "it is no conversation of a known form",
        }));
    }
    is_known.then_some(()).ok_or(Error::Unknown)
}

/// What tells the forms apart. A conversation of LibreChat is as deep as it is long, so what is in it is
/// not read yet.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    sepal: Option<&'a RawValue>,
    #[serde(borrow)]
    mapping: Option<&'a RawValue>,
    #[serde(borrow)]
    chat: Option<&'a RawValue>,
    #[serde(borrow, rename = "messagesTree")]
    messages_tree: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    #[serde(borrow, rename = "conversationId")]
    conversation_id: Option<&'a RawValue>,
}

/// The conversation of an entry; none = it has none of the known forms.
fn read_entry(entry: &RawValue) -> Option<Found> {
    let head: Head<'_> = serde_json::from_str(entry.get()).ok()?;
    let read = if head.sepal.is_some() {
        sepal::read(entry)?
    } else if head.mapping.is_some() {
        chatgpt::read(entry)?
    } else if head.chat.is_some() {
        open_webui::read(entry)?
    } else if let (Some(messages), Some(_)) =
        (head.messages_tree.or(head.messages), head.conversation_id)
    {
        librechat::read(entry, messages)?
    } else {
        return None;
    };
    Some(read.finish())
}
