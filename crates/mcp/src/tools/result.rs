//! Converts a tool's answer: into text for the model, and into blocks for people.

use std::fmt::Write as _;

use rmcp::model::{Annotations, CallToolResult, ContentBlock, ResourceContents, Role};
use serde_json::Value;

use super::content::{self, AnswerContent, AnswerFile};
use crate::mask::Cleaner;
use sepal_core::domain::Audience;

/// Most bytes of text of one answer; of a longer text, head and tail are kept.
const MAX_TEXT_BYTES: usize = 60 * 1024;
/// The most pictures, sounds and other files of one answer that are kept.
const MAX_FILES: usize = 10;
/// The most blocks of one answer that people see.
const MAX_BLOCKS: usize = 100;

/// A tool's answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolAnswer {
    /// The text that the model reads: the texts, and other blocks as one line each.
    pub text: String,
    pub structured: Option<Value>,
    /// The bytes left out of `text`.
    pub truncated_bytes: Option<u64>,
    /// True if the tool reports a failure.
    pub is_error: bool,
    /// The first blocks of the answer, in order.
    pub blocks: Vec<AnswerBlock>,
    /// True if the blocks say more than `text` and the pictures among them.
    pub is_rich: bool,
}

/// One block of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerBlock {
    pub content: AnswerContent,
    pub audience: Audience,
}

impl ToolAnswer {
    /// Converts an answer. Secrets are masked before anything is cut: half of a secret would not be
    /// recognized.
    pub(crate) fn from_wire(result: CallToolResult, cleaner: &Cleaner) -> Self {
        let is_for_model = |block: &&ContentBlock| audience_of(block) != Audience::User;
        let read = result.content.iter().filter(is_for_model);
        let lines: Vec<String> = read.map(line).collect();
        let is_hidden = lines.is_empty() && !result.content.is_empty();
        let mut text = cleaner.clean(&lines.join("\n"));
        let structured = result.structured_content;
        let structured = structured.map(|value| cleaner.clean_value(value));
        if text.is_empty()
            && let Some(structured) = &structured
        {
            text = structured.to_string();
        } else if is_hidden {
            "[the tool answered with content that only people see]".clone_into(&mut text);
        }
        let (text, truncated_bytes) = head_and_tail(&text, MAX_TEXT_BYTES);
        let is_small = |value: &Value| value.to_string().len() <= MAX_TEXT_BYTES;
        let blocks = blocks(&result.content, cleaner);
        Self {
            text,
            structured: structured.filter(is_small),
            truncated_bytes,
            is_error: result.is_error == Some(true),
            is_rich: blocks.iter().any(AnswerBlock::is_rich),
            blocks,
        }
    }

    /// Adds the structured result to the text that the model reads, unless a text already says the same.
    pub(super) fn add_structured(&mut self) {
        let Some(structured) = &self.structured else {
            return;
        };
        // Server libraries wrap a text into an object (`{"result": text}`) to have a structured result.
        let wrapped = structured.as_object().filter(|object| object.len() == 1);
        let wrapped = wrapped.and_then(|object| object.values().next()?.as_str());
        let says_it = |text: &str| {
            let read = serde_json::from_str::<Value>(text);
            read.is_ok_and(|value| value == *structured)
                || wrapped.is_some_and(|wrapped| wrapped.trim() == text.trim())
        };
        let is_text = |block: &AnswerBlock| match &block.content {
            AnswerContent::Text(text) => says_it(text),
            AnswerContent::File(_) | AnswerContent::Resource { .. } | AnswerContent::Link(_) => {
                false
            }
        };
        if !says_it(&self.text) && !self.blocks.iter().any(is_text) {
            // Writing into a string cannot fail.
            let _ = write!(self.text, "\n{structured}");
        }
    }

    /// Adds a remark about the result, for the model and for people.
    pub(super) fn remark(&mut self, words: &str) {
        let words = format!("[{words}]");
        self.text.push('\n');
        self.text.push_str(&words);
        let words = AnswerContent::Text(words);
        self.blocks.push(AnswerBlock::everybody(words));
    }
}

impl AnswerBlock {
    /// Returns true if a text and a list of pictures do not convey the block.
    fn is_rich(&self) -> bool {
        let is_plain = match &self.content {
            AnswerContent::Text(_) => true,
            AnswerContent::File(file) => file.is_image,
            AnswerContent::Resource { .. } | AnswerContent::Link(_) => false,
        };
        !is_plain || self.audience != Audience::Everybody
    }

    fn everybody(content: AnswerContent) -> Self {
        Self {
            content,
            audience: Audience::Everybody,
        }
    }
}

/// Converts the blocks for people, within bounds; a note says how many are left out.
fn blocks(content: &[ContentBlock], cleaner: &Cleaner) -> Vec<AnswerBlock> {
    let (mut room, mut files) = (MAX_TEXT_BYTES, 0);
    let mut blocks = Vec::new();
    let mut left_out = content.len().saturating_sub(MAX_BLOCKS);
    for block in content.iter().take(MAX_BLOCKS) {
        let mut content = content::piece(block, cleaner);
        let mut whole = None;
        match &mut content {
            AnswerContent::Text(_) | AnswerContent::Resource { .. } => {
                whole = shorten(&mut content, &mut room);
            }
            AnswerContent::File(_) if files == MAX_FILES => {
                left_out += 1;
                continue;
            }
            AnswerContent::File(_) => files += 1,
            AnswerContent::Link(_) => {}
        }
        blocks.push(AnswerBlock {
            content,
            audience: audience_of(block),
        });
        if let Some(file) = whole.filter(|_| files < MAX_FILES) {
            files += 1;
            // The model has already read the head and tail of the text.
            blocks.push(AnswerBlock {
                content: AnswerContent::File(file),
                audience: Audience::User,
            });
        }
    }
    if left_out > 0 {
        let words = format!(
            "[{left_out} parts of the answer are left out: {MAX_FILES} files and {MAX_BLOCKS} parts are kept]"
        );
        blocks.push(AnswerBlock::everybody(AnswerContent::Text(words)));
    }
    blocks
}

/// Cuts a text to the room that is left, and returns the whole text as a file if it was cut.
fn shorten(content: &mut AnswerContent, room: &mut usize) -> Option<AnswerFile> {
    let (text, uri) = match content {
        AnswerContent::Text(text) => (text, None),
        AnswerContent::Resource { text, uri, .. } => (text, Some(uri.clone())),
        AnswerContent::File(_) | AnswerContent::Link(_) => return None,
    };
    let all = std::mem::take(text);
    let (cut, left_out) = head_and_tail(&all, *room);
    *room = room.saturating_sub(cut.len());
    *text = cut;
    left_out.map(|_| AnswerFile {
        name: uri.is_none().then_some("output.txt"),
        uri,
        mime_type: Some("text/plain".to_owned()),
        is_image: false,
        bytes: all.into_bytes(),
    })
}

/// Returns the audience of a block. A block that names none, or both, is for both.
fn audience_of(block: &ContentBlock) -> Audience {
    let annotations: Option<&Annotations> = match block {
        ContentBlock::Text(text) => text.annotations.as_ref(),
        ContentBlock::Image(image) => image.annotations.as_ref(),
        ContentBlock::Audio(audio) => audio.annotations.as_ref(),
        ContentBlock::Resource(embedded) => embedded.annotations.as_ref(),
        ContentBlock::ResourceLink(link) => link.annotations.as_ref(),
        _ => None,
    };
    let named = annotations.and_then(|annotations| annotations.audience.as_ref());
    let is_for = |role: &Role| named.is_some_and(|named| named.contains(role));
    match (is_for(&Role::User), is_for(&Role::Assistant)) {
        (true, false) => Audience::User,
        (false, true) => Audience::Assistant,
        (true, true) | (false, false) => Audience::Everybody,
    }
}

/// Converts a block to the line that the model reads.
fn line(block: &ContentBlock) -> String {
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
            ResourceContents::TextResourceContents { text, uri, .. } => {
                format!("[resource {uri}]\n{text}")
            }
            ResourceContents::BlobResourceContents { uri, .. } => {
                format!("[binary resource {uri}]")
            }
            _ => "[resource]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => {
            let described = link.description.as_deref().unwrap_or_default();
            let gap = if described.is_empty() { "" } else { ": " };
            format!("[resource {} \"{}\"{gap}{described}]", link.uri, link.name)
        }
        _ => content::UNKNOWN.to_owned(),
    }
}

/// Keeps the first and last half of the allowed bytes, cut between characters.
fn head_and_tail(text: &str, most: usize) -> (String, Option<u64>) {
    if text.len() <= most {
        return (text.to_owned(), None);
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
    use rmcp::model::CallToolResult;
    use serde_json::{Value, json};

    use super::{AnswerContent, ToolAnswer, head_and_tail};
    use crate::mask::Cleaner;
    use sepal_core::domain::Audience;

    fn answer(content: &Value) -> ToolAnswer {
        let result: CallToolResult = serde_json::from_value(json!({ "content": content })).unwrap();
        ToolAnswer::from_wire(result, &Cleaner::default())
    }

    #[test]
    fn long_text_keeps_its_ends_and_says_how_much_is_missing() {
        let (text, left_out) = head_and_tail(&"ä".repeat(100), 21);
        assert_eq!(left_out, Some(180));
        assert_eq!(
            text,
            format!("{0}\n[180 bytes left out here]\n{0}", "ä".repeat(5))
        );
        assert_eq!(head_and_tail("short", 21), ("short".into(), None));
    }

    #[test]
    fn a_structured_result_is_added_only_where_no_text_says_the_same() {
        for (structured, is_added) in [
            (json!({ "result": "warm\n" }), false),
            (json!({ "result": "hot" }), true),
            (json!({ "result": "warm", "degrees": 21 }), true),
            (json!({ "degrees": 21 }), true),
        ] {
            let content = json!([{ "type": "text", "text": "warm" }]);
            let result = json!({ "content": content, "structuredContent": structured });
            let result: CallToolResult = serde_json::from_value(result).unwrap();
            let mut said = ToolAnswer::from_wire(result, &Cleaner::default());
            said.add_structured();
            let whole = format!("warm\n{structured}");
            assert_eq!(said.text, if is_added { &*whole } else { "warm" });
        }
    }

    #[test]
    fn what_is_cut_is_there_whole_as_a_file_for_people() {
        let long = "a line\n".repeat(20_000);
        let said = answer(&json!([
            { "type": "text", "text": long },
            { "type": "resource", "resource": { "uri": "demo://t", "text": "short" } },
        ]));
        let [cut, whole, short, all] = said.blocks.as_slice() else {
            panic!("{said:?}");
        };
        assert!(
            matches!(&cut.content, AnswerContent::Text(text) if text.contains("bytes left out here"))
        );
        assert_eq!(whole.audience, Audience::User);
        assert!(
            matches!(&whole.content, AnswerContent::File(file) if file.bytes == long.as_bytes() && file.name == Some("output.txt"))
        );
        // No room is left for the text in the record.
        assert!(
            matches!(&short.content, AnswerContent::Resource { text, .. } if text.contains("bytes left out here"))
        );
        assert!(
            matches!(&all.content, AnswerContent::File(file) if file.bytes == b"short" && file.uri.as_deref() == Some("demo://t"))
        );
        assert!(said.is_rich && said.text.len() < long.len());
    }

    #[test]
    fn what_is_for_people_alone_is_not_read_by_the_model() {
        let text = |text: &str, audience: Value| json!({ "type": "text", "text": text, "annotations": { "audience": audience } });
        let said = answer(&json!([
            text("both", json!(["user", "assistant"])),
            text("mine", json!(["user"])),
            text("its", json!(["assistant"])),
        ]));
        assert_eq!((said.text.as_str(), said.is_rich), ("both\nits", true));
        let audiences: Vec<Audience> = said.blocks.iter().map(|block| block.audience).collect();
        assert_eq!(
            audiences,
            [Audience::Everybody, Audience::User, Audience::Assistant]
        );
        let said = answer(&json!([text("mine", json!(["user"]))]));
        assert!(said.text.contains("only people see"), "{}", said.text);
        assert!(!answer(&json!([text("both", json!([]))])).is_rich);
    }

    #[test]
    fn files_links_and_resources_come_as_what_they_are() {
        let said = answer(&json!([
            { "type": "audio", "data": "UklGRg==", "mimeType": "audio/wav" },
            { "type": "resource", "resource": { "uri": "demo://t", "text": "hello" } },
            { "type": "resource", "resource": { "uri": "demo://b", "blob": "AAE" } },
            { "type": "resource_link", "uri": "demo://l", "name": "l", "description": "more" },
            { "type": "image", "data": "%", "mimeType": "image/png" },
        ]));
        let [sound, text, blob, link, broken] = said.blocks.as_slice() else {
            panic!("{said:?}");
        };
        assert!(
            matches!(&sound.content, AnswerContent::File(file) if file.bytes == b"RIFF" && !file.is_image)
        );
        assert!(
            matches!(&text.content, AnswerContent::Resource { uri, text, .. } if uri == "demo://t" && text == "hello")
        );
        assert!(
            matches!(&blob.content, AnswerContent::File(file) if file.bytes == [0, 1] && file.uri.as_deref() == Some("demo://b"))
        );
        assert!(matches!(&link.content, AnswerContent::Link(link) if link.uri == "demo://l"));
        assert!(
            matches!(&broken.content, AnswerContent::Text(text) if text.contains("base64 is broken"))
        );
        assert!(
            said.text.contains("hello") && said.text.contains("[resource demo://l \"l\": more]")
        );
    }

    #[test]
    fn a_flood_of_files_is_cut_with_a_word() {
        let image = json!({ "type": "image", "data": "AA==", "mimeType": "image/png" });
        let said = answer(&Value::Array(vec![image; 12]));
        assert_eq!(said.blocks.len(), 11);
        assert!(
            matches!(&said.blocks[10].content, AnswerContent::Text(text) if text.contains("2 parts"))
        );
    }
}
