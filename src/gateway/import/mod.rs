//! Reads exports of other programs, and our own, as conversations. Pure.

mod archive;
mod chatgpt;
mod citations;
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

pub(in crate::gateway) use self::parts::left_out_of;
use self::parts::{Items, has_too_many_values};
use crate::agent::Conversation;
use crate::jobs::Watch;

/// The maximum number of conversations in one file.
const MAX_CONVERSATIONS: usize = 10_000;
/// The maximum number of unpacked bytes that are read from an archive.
const MAX_UNPACKED: u64 = 128 * 1024 * 1024;
/// The maximum number of bytes of text taken from one file. Notes about omitted parts can be longer than the
/// parts.
const MAX_TAKEN: usize = 192 * 1024 * 1024;

/// An entry of a file, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::gateway) enum FileEntry {
    Conversation(Conversation),
    /// An entry that is not a conversation, or an empty one.
    Unusable {
        title: String,
        why: &'static str,
    },
}

/// The reason a file cannot be imported.
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
    #[error("nobody waits for the import any more")]
    Abandoned,
}

/// Reads the conversations of a file in their order. Each part of the file is scanned a fixed number of
/// times, regardless of its nesting. Reading stops when the request is abandoned.
pub(in crate::gateway) fn read(file: &[u8], watch: &Watch) -> Result<Vec<FileEntry>, Error> {
    let mut reader = Reader {
        watch,
        found: Vec::new(),
        taken: 0,
    };
    if archive::is_archive(file) {
        archive::read_conversations(file, MAX_UNPACKED, |text| reader.read_json(text))?;
    } else {
        reader.read_json(file)?;
    }
    Ok(reader.found)
}

struct Reader<'w> {
    watch: &'w Watch,
    found: Vec<FileEntry>,
    /// The number of bytes of the messages found so far.
    taken: usize,
}

impl Reader<'_> {
    fn read_json(&mut self, text: &[u8]) -> Result<(), Error> {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let text = str::from_utf8(text).map_err(|error| Error::NotJson(error.to_string()))?;
        let not_json = |error: serde_json::Error| Error::NotJson(error.to_string());
        if !text.trim_start().starts_with('[') {
            let entry: &RawValue = serde_json::from_str(text).map_err(not_json)?;
            let found = read_entry(entry).ok_or(Error::Unknown)?;
            return self.take(found);
        }
        let entries: Items<'_, MAX_CONVERSATIONS> = serde_json::from_str(text).map_err(not_json)?;
        if entries.has_more || self.found.len() + entries.items.len() > MAX_CONVERSATIONS {
            return Err(Error::TooMuch("10,000 conversations"));
        }
        let mut is_known = entries.items.is_empty();
        for entry in entries.items {
            let read = read_entry(entry);
            is_known |= read.is_some();
            self.take(read.unwrap_or_else(|| FileEntry::Unusable {
                title: parts::title_of(entry),
                why: "it is no conversation of a known form",
            }))?;
        }
        is_known.then_some(()).ok_or(Error::Unknown)
    }

    fn take(&mut self, found: FileEntry) -> Result<(), Error> {
        if self.watch.is_abandoned() {
            return Err(Error::Abandoned);
        }
        if let FileEntry::Conversation(conversation) = &found {
            let said = conversation.said.iter().map(|said| said.text.len());
            self.taken = self.taken.saturating_add(said.sum());
        }
        if self.taken > MAX_TAKEN {
            return Err(Error::TooMuch("192 MiB of messages"));
        }
        self.found.push(found);
        Ok(())
    }
}

/// The members that identify an entry's form. A conversation of LibreChat is nested as deep as it is long,
/// so the members' contents are not parsed yet.
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

/// Reads the conversation of an entry; `None` if the entry has no known form.
fn read_entry(entry: &RawValue) -> Option<FileEntry> {
    let head: Head<'_> = serde_json::from_str(entry.get()).ok()?;
    if has_too_many_values(entry) {
        return Some(FileEntry::Unusable {
            title: parts::title_of(entry),
            why: "it has more than 500,000 values; export it in parts",
        });
    }
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
