//! Loads the contents of the attachments that a model request carries: the newest, as many as fit.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Attachments, Sight};
use crate::domain::{Attachment, BlobId, Entry, MediaType, SessionKey, TenantId};
use crate::llm::{Content, Contents, Encoded, Entries};
use crate::session::Refusal;

/// The most bytes of pictures and documents in one request. Base64 adds a third, and vendors accept 20 MB or
/// more.
const MAX_REQUEST_BYTES: u64 = 14_000_000;
/// The most pictures and documents in one request; vendors accept 100 or more.
const MAX_REQUEST_COUNT: usize = 50;
/// The capacity of the cache in bytes.
const MAX_CACHED: usize = 64 * 1024 * 1024;

/// An LRU cache of contents in the form in which they are sent, the least recently used first.
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
    /// Loads the contents of a request's attachments. If not all fit, the oldest are left out.
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
                // Leave out everything older too, so that the attachments that are sent are consecutive.
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
