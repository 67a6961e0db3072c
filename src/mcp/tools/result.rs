//! What a tool answered, as text for the model and for people.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

use crate::mcp::mask::Cleaner;

/// Bytes of text that one answer may have; above, head and tail are kept.
const MAX_TEXT_BYTES: usize = 60 * 1024;

/// Images of one answer that are kept.
const MAX_IMAGES: usize = 10;

/// A tool's answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolAnswer {
    /// The text blocks; other blocks as one line each.
    pub text: String,
    pub structured: Option<Value>,
    /// Bytes left out of `text`.
    pub truncated_bytes: Option<u64>,
    /// Whether the tool says that it failed.
    pub is_error: bool,
    /// The contents of its image blocks, the first of them.
    pub images: Vec<Vec<u8>>,
}

impl ToolAnswer {
    /// Secrets go before anything is cut: half of one is none that anybody would know again.
    pub(in crate::mcp) fn from_wire(result: CallToolResult, cleaner: &Cleaner) -> Self {
        let blocks: Vec<String> = result.content.iter().map(block_text).collect();
        let mut text = cleaner.clean(&blocks.join("\n"));
        let images = result.content.iter().filter_map(image);
        let images = images.take(MAX_IMAGES).collect();
        let structured = result.structured_content;
        let structured = structured.map(|value| cleaner.clean_value(value));
        if text.is_empty()
            && let Some(structured) = &structured
        {
            text = structured.to_string();
        }
        let (text, truncated_bytes) = head_and_tail(text, MAX_TEXT_BYTES);
        let is_small = |value: &Value| value.to_string().len() <= MAX_TEXT_BYTES;
        Self {
            text,
            structured: structured.filter(is_small),
            truncated_bytes,
            is_error: result.is_error == Some(true),
            images,
        }
    }
}

/// What it is called is not believed; whoever keeps it looks at the bytes.
fn image(block: &ContentBlock) -> Option<Vec<u8>> {
    let image = block.as_image()?;
    STANDARD.decode(image.data.as_bytes()).ok()
}

fn block_text(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => {
            format!(
                "[image {}, {} bytes of base64]",
                image.mime_type,
                image.data.len()
            )
        }
        ContentBlock::Audio(audio) => {
            format!(
                "[audio {}, {} bytes of base64]",
                audio.mime_type,
                audio.data.len()
            )
        }
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { text, .. } => text.clone(),
            ResourceContents::BlobResourceContents { uri, .. } => {
                format!("[binary resource {uri}]")
            }
            _ => "[resource]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("[resource {}]", link.uri),
        _ => "[content of a kind that this release does not know]".to_owned(),
    }
}

/// Keeps the first and last half of what is allowed, cut between characters.
fn head_and_tail(text: String, most: usize) -> (String, Option<u64>) {
    if text.len() <= most {
        return (text, None);
    }
    let half = most / 2;
    let head = text
        .get(..text.floor_char_boundary(half))
        .unwrap_or_default();
    let tail = text
        .get(text.ceil_char_boundary(text.len() - half)..)
        .unwrap_or_default();
    let left_out = text.len() - head.len() - tail.len();
    (
        format!("{head}\n[{left_out} bytes left out here]\n{tail}"),
        Some(left_out as u64),
    )
}

#[cfg(test)]
mod tests {
    use super::head_and_tail;

    #[test]
    fn long_text_keeps_its_ends_and_says_how_much_is_missing() {
        let (text, left_out) = head_and_tail("ä".repeat(100), 21);
        assert_eq!(left_out, Some(180));
        assert_eq!(
            text,
            format!("{0}\n[180 bytes left out here]\n{0}", "ä".repeat(5))
        );
        assert_eq!(head_and_tail("short".into(), 21), ("short".into(), None));
    }
}
