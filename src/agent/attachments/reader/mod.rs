//! Decides which attachments a model reads itself, and writes the text that replaces the others. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use crate::domain::{Attachment, BlobId, CountedEntry, Entry, MediaType};
use crate::llm::tokens::CHARACTERS_PER_TOKEN;

/// A text may take at most one part in this many of the model's input, to leave room for everything else.
const SHARE_OF_TEXT: u64 = 4;
/// The most bytes of a name in the workspace, with room for a number.
const MAX_NAME_BYTES: usize = 120;

/// The paths of attachments in the workspace, according to the journal.
pub(in crate::agent) type AttachmentPaths = BTreeMap<BlobId, Arc<str>>;

/// The kinds of files that a model can read, besides texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::agent) enum Sight {
    /// None.
    Nothing,
    /// Pictures.
    Images,
    /// Pictures and PDF.
    Documents,
    /// Pictures, PDF and sounds.
    Sounds,
}

impl Sight {
    /// Returns the reason the model is not sent a file of this type; `None` if it is.
    pub(super) fn lack(self, media_type: MediaType) -> Option<&'static str> {
        match (media_type, self) {
            (MediaType::Png | MediaType::Jpeg, Self::Nothing) => {
                Some("this model cannot see images")
            }
            (MediaType::Pdf, Self::Nothing | Self::Images) => {
                Some("this model cannot read PDF; models of OpenAI, Anthropic and Gemini can")
            }
            (
                MediaType::Wav | MediaType::Mp3 | MediaType::Ogg | MediaType::Flac,
                Self::Nothing | Self::Images | Self::Documents,
            ) => Some("this model cannot hear; models of Gemini can"),
            (MediaType::Binary, _) => Some("no model can read this kind of file"),
            (
                MediaType::Png | MediaType::Jpeg | MediaType::Pdf,
                Self::Images | Self::Documents | Self::Sounds,
            )
            | (MediaType::Wav | MediaType::Mp3 | MediaType::Ogg | MediaType::Flac, Self::Sounds)
            | (MediaType::Text, _) => None,
        }
    }
}

/// A model's ability to read attachments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::agent) struct Reader {
    sight: Sight,
    /// The longest text that the model is sent, in bytes.
    longest_text: u64,
}

impl Reader {
    /// Makes a reader with this sight and an input limit of `tokens`.
    pub(in crate::agent) fn new(sight: Sight, tokens: u64) -> Self {
        Self {
            sight,
            longest_text: (tokens / SHARE_OF_TEXT).saturating_mul(CHARACTERS_PER_TOKEN),
        }
    }

    pub(in crate::agent) fn sight(self) -> Sight {
        self.sight
    }

    /// Returns the reason the model cannot read the attachment; `None` if it can.
    fn lack(self, attachment: &Attachment) -> Option<&'static str> {
        match attachment.media_type {
            MediaType::Png
            | MediaType::Jpeg
            | MediaType::Wav
            | MediaType::Mp3
            | MediaType::Ogg
            | MediaType::Flac
            | MediaType::Binary => self.sight.lack(attachment.media_type),
            MediaType::Pdf => {
                let lack = self.sight.lack(attachment.media_type);
                lack.map(|_| "this model cannot read PDF by itself")
            }
            MediaType::Text => {
                let is_long = attachment.bytes > self.longest_text;
                is_long.then_some("it is too long for this model to read at once")
            }
        }
    }

    /// Returns the attachments of people that the model cannot read and the workspace does not have yet; each
    /// content once.
    pub(in crate::agent) fn missing(
        self,
        entries: &[Arc<CountedEntry>],
        placed: &AttachmentPaths,
    ) -> Vec<Attachment> {
        let mut seen = BTreeSet::new();
        let attached = entries.iter().flat_map(|entry| said(entry));
        let unread = attached.filter(|it| self.lack(it).is_some() && !placed.contains_key(&it.id));
        let unread = unread.filter(|it| seen.insert(&it.id));
        unread.cloned().collect()
    }

    /// Returns the entries as the model reads them: an attachment that it cannot read is replaced by its path
    /// in the workspace. The text is the same in every request, because it follows from the journal alone.
    pub(in crate::agent) fn entries(
        self,
        entries: &[Arc<CountedEntry>],
        placed: &AttachmentPaths,
    ) -> Vec<Arc<CountedEntry>> {
        let read = |entry: &Arc<CountedEntry>| {
            let worded = (!placed.is_empty()).then(|| self.worded(entry, placed));
            worded.flatten().unwrap_or_else(|| Arc::clone(entry))
        };
        entries.iter().map(read).collect()
    }

    fn worded(self, entry: &CountedEntry, placed: &AttachmentPaths) -> Option<Arc<CountedEntry>> {
        let Entry::User {
            seq,
            text,
            attachments,
        } = &**entry
        else {
            return None;
        };
        let (mut text, mut read) = (text.clone(), Vec::new());
        for attachment in attachments {
            let Some((lack, path)) = self.lack(attachment).zip(placed.get(&attachment.id)) else {
                read.push(attachment.clone());
                continue;
            };
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            // Writing into a text cannot fail.
            let _ = write!(text, "[{attachment}: {lack}; the file is at `{path}`]");
        }
        (read.len() < attachments.len()).then(|| {
            entry.reworded(Entry::User {
                seq: *seq,
                text,
                attachments: read,
            })
        })
    }
}

/// Returns the attachments of an entry that are in the workspace, and that text may replace.
pub(in crate::agent) fn placed<'a>(
    entry: &'a Entry,
    placed: &'a AttachmentPaths,
) -> impl Iterator<Item = &'a Attachment> {
    let attached = said(entry).iter();
    attached.filter(|attachment| placed.contains_key(&attachment.id))
}

/// Returns the attachments of a person's message. Pictures that tools return do not count: the model asked
/// for them.
fn said(entry: &Entry) -> &[Attachment] {
    match entry {
        Entry::User { attachments, .. } => attachments,
        Entry::ToolResult { .. } | Entry::Assistant { .. } | Entry::Note { .. } => &[],
    }
}

/// Returns the name of a file in the workspace: one word in a shell, neither hidden nor an option.
pub(in crate::agent) fn file_name(attachment: &Attachment) -> String {
    let plain = |c: char| if is_plain(c) { c } else { '_' };
    let name: String = attachment.name.chars().map(plain).collect();
    let name = name.trim_start_matches(['.', '-', '_']);
    if name.is_empty() {
        return attachment.media_type.usual_name().to_owned();
    }
    if name.len() <= MAX_NAME_BYTES {
        return name.to_owned();
    }
    // Keep the extension when shortening.
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    let extension = if extension.len() < 16 { extension } else { "" };
    let stem = stem.get(..stem.floor_char_boundary(MAX_NAME_BYTES - 16));
    let stem = stem.unwrap_or_default();
    if extension.is_empty() {
        return stem.to_owned();
    }
    format!("{stem}.{extension}")
}

/// Returns true if the name may come from [`file_name`], with or without a number.
pub(in crate::agent) fn is_file_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with(['.', '-']) && name.chars().all(is_plain)
}

fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '-' | '_')
}

#[cfg(test)]
mod tests;
