//! What of the attachments a model is sent: the newest, as many as fit a request.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Attachments, Sight};
use crate::domain::{Attachment, BlobId, Entry, MediaType, SessionKey, TenantId};
use crate::llm::{Content, Contents, Encoded, Entries};
use crate::session::Refusal;

/// Bytes of pictures and documents in one request. As base64 they are a third more, and the vendors
/// take 20 MB and more.
const MAX_REQUEST_BYTES: u64 = 14_000_000;
/// Pictures and documents in one request; vendors take 100 and more.
const MAX_REQUEST_COUNT: usize = 50;
/// Bytes that the cache keeps.
const MAX_CACHED: usize = 64 * 1024 * 1024;

/// Contents as they are sent, the least used first.
#[derive(Default)]
pub(super) struct Cache(Mutex<VecDeque<((TenantId, BlobId), Content)>>);

impl Cache {
    fn get(&self, of: &(TenantId, BlobId)) -> Option<Content> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(key, _)| key == of)?;
        let found = kept.remove(at)?;
        let content = found.1.clone();
        kept.push_back(found);
        Some(content)
    }

    fn put(&self, of: (TenantId, BlobId), content: Content) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back((of, content));
        while kept.iter().map(|(_, content)| size(content)).sum::<usize>() > MAX_CACHED {
            kept.pop_front();
        }
    }
}

fn size(content: &Content) -> usize {
    match content {
        Content::Encoded(encoded) => encoded.url().len(),
        Content::Text(text) => text.len(),
        Content::LeftOut(_) => 0,
    }
}

impl Attachments {
    /// The contents of a request. What is left out for want of room is older than what is sent.
    pub(in crate::agent) async fn contents(
        &self,
        key: &SessionKey,
        entries: &Entries,
        sight: Sight,
    ) -> Result<Contents, Refusal> {
        let mut contents = HashMap::new();
        let attached: Vec<&Attachment> = entries.iter().flat_map(attached).collect();
        let (mut room, mut count) = (MAX_REQUEST_BYTES, MAX_REQUEST_COUNT);
        for attachment in attached.into_iter().rev() {
            if contents.contains_key(&attachment.id) {
                continue;
            }
            let is_text = attachment.media_type == MediaType::Text;
            let content = if let Some(lack) = sight.lack(attachment.media_type) {
                Content::LeftOut(lack)
            } else if is_text {
                self.content(key, attachment).await?
            } else if count == 0 || attachment.bytes > room {
                // Nothing older either: what is sent is one piece of the conversation.
                (room, count) = (0, 0);
                Content::LeftOut("left out, because newer attachments fill the request")
            } else {
                (room, count) = (room - attachment.bytes, count - 1);
                self.content(key, attachment).await?
            };
            contents.insert(attachment.id.clone(), content);
        }
        Ok(Contents::new(contents))
    }

    async fn content(&self, key: &SessionKey, of: &Attachment) -> Result<Content, Refusal> {
        let cached = (key.tenant.clone(), of.id.clone());
        if let Some(content) = self.0.cache.get(&cached) {
            return Ok(content);
        }
        let bytes = self.0.records.attachments().content(key, &of.id).await;
        let Some(bytes) = bytes.map_err(|error| super::away(key, &error))? else {
            return Ok(Content::LeftOut("its content is gone"));
        };
        let content = match of.media_type {
            MediaType::Text => Content::Text(String::from_utf8_lossy(&bytes).into()),
            MediaType::Png
            | MediaType::Jpeg
            | MediaType::Pdf
            | MediaType::Wav
            | MediaType::Mp3
            | MediaType::Ogg
            | MediaType::Flac
            | MediaType::Binary => Content::Encoded(Arc::new(Encoded::new(of.media_type, &bytes))),
        };
        self.0.cache.put(cached, content.clone());
        Ok(content)
    }
}

fn attached(entry: &Entry) -> &[Attachment] {
    match entry {
        Entry::User { attachments, .. } | Entry::ToolResult { attachments, .. } => attachments,
        Entry::Assistant { .. } | Entry::Note { .. } => &[],
    }
}
