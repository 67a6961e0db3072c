//! The pieces of what servers give, resources above all, in our own terms and within bounds.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use rmcp::model::{ContentBlock, Resource, ResourceContents};

use crate::mask::Cleaner;
use sepal_core::domain::ResourceLink;

/// What stands for content that nobody here knows.
pub(super) const UNKNOWN: &str = "[content of a kind that this release does not know]";

/// Bytes of an address.
pub(crate) const MAX_URI: usize = 4 * 1024;
/// Characters of a name or a type.
const MAX_NAME: usize = 200;
/// Characters of a description.
const MAX_DESCRIPTION: usize = 1_000;

/// What a piece of an answer is.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerContent {
    Text(String),
    /// Bytes; what they are called is not believed.
    File(AnswerFile),
    /// A resource as text.
    Resource {
        uri: String,
        mime_type: Option<String>,
        text: String,
    },
    Link(ResourceLink),
}

/// Bytes that came with an answer, or are a resource.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerFile {
    /// The resource's address, if they are one.
    pub uri: Option<String>,
    /// What they are called where no address says so.
    pub name: Option<&'static str>,
    /// What the server says that they are.
    pub mime_type: Option<String>,
    /// Whether they came as a picture, and are nothing if they are none.
    pub is_image: bool,
    pub bytes: Vec<u8>,
}

/// A block of a result or of a prompt.
pub(crate) fn piece(block: &ContentBlock, cleaner: &Cleaner) -> AnswerContent {
    let file = |data: &str, mime_type: &str, is_image: bool| {
        let mime_type = short(mime_type, cleaner);
        match decoded(data) {
            Some(bytes) => AnswerContent::File(AnswerFile {
                uri: None,
                name: None,
                mime_type: Some(mime_type),
                is_image,
                bytes,
            }),
            None => AnswerContent::Text(format!("[{mime_type}: its base64 is broken]")),
        }
    };
    match block {
        ContentBlock::Text(text) => AnswerContent::Text(cleaner.clean(&text.text)),
        ContentBlock::Image(image) => file(&image.data, &image.mime_type, true),
        ContentBlock::Audio(audio) => file(&audio.data, &audio.mime_type, false),
        ContentBlock::Resource(embedded) => of_resource(&embedded.resource, cleaner),
        ContentBlock::ResourceLink(resource) => AnswerContent::Link(link(resource, cleaner)),
        _ => AnswerContent::Text(UNKNOWN.to_owned()),
    }
}

/// What a server says of a resource.
pub(crate) fn link(resource: &Resource, cleaner: &Cleaner) -> ResourceLink {
    ResourceLink {
        uri: cut(&cleaner.clean(&resource.uri), MAX_URI),
        name: short(&resource.name, cleaner),
        title: maybe_short(resource.title.as_deref(), cleaner),
        description: description(resource.description.as_deref(), cleaner),
        mime_type: maybe_short(resource.mime_type.as_deref(), cleaner),
        size: resource.size,
    }
}

/// The content of a resource.
pub(crate) fn of_resource(contents: &ResourceContents, cleaner: &Cleaner) -> AnswerContent {
    match contents {
        ResourceContents::TextResourceContents {
            uri,
            mime_type,
            text,
            ..
        } => AnswerContent::Resource {
            uri: cut(&cleaner.clean(uri), MAX_URI),
            mime_type: maybe_short(mime_type.as_deref(), cleaner),
            text: cleaner.clean(text),
        },
        ResourceContents::BlobResourceContents {
            uri,
            mime_type,
            blob,
            ..
        } => {
            let uri = cut(&cleaner.clean(uri), MAX_URI);
            match decoded(blob) {
                Some(bytes) => AnswerContent::File(AnswerFile {
                    uri: Some(uri),
                    name: None,
                    mime_type: maybe_short(mime_type.as_deref(), cleaner),
                    is_image: false,
                    bytes,
                }),
                None => {
                    AnswerContent::Text(format!("[binary resource {uri}: its base64 is broken]"))
                }
            }
        }
        _ => {
            AnswerContent::Text("[a resource of a kind that this release does not know]".to_owned())
        }
    }
}

/// Some servers leave out what fills the last group.
fn decoded(data: &str) -> Option<Vec<u8>> {
    let data = data.trim_end_matches('=').as_bytes();
    STANDARD_NO_PAD.decode(data).ok()
}

/// A name without secrets, on one line and not too long.
pub(crate) fn short(text: &str, cleaner: &Cleaner) -> String {
    let text = cleaner.clean(text).replace(['\n', '\r'], " ");
    cut(&text, MAX_NAME)
}

/// The same of one that may be missing.
pub(crate) fn maybe_short(text: Option<&str>, cleaner: &Cleaner) -> Option<String> {
    text.map(|text| short(text, cleaner))
}

/// A description without secrets and not too long.
pub(crate) fn description(text: Option<&str>, cleaner: &Cleaner) -> Option<String> {
    text.map(|text| cut(&cleaner.clean(text), MAX_DESCRIPTION))
}

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}
