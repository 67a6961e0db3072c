//! Converts content blocks and resources of servers into our own types, within bounds.

use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::engine::{DecodePaddingMode, Engine as _};
use percent_encoding::percent_decode_str;
use rmcp::model::{ContentBlock, Resource, ResourceContents};

use crate::mask::Cleaner;
use sepal_core::domain::ResourceLink;

/// The text that replaces content of an unknown kind.
pub(super) const UNKNOWN: &str = "[content of a kind that this release does not know]";

/// Most bytes of an address; longer ones are cut to this many characters.
pub(crate) const MAX_URI: usize = 4 * 1024;
/// The most characters of a name or a type.
const MAX_NAME: usize = 200;
/// The most characters of a description.
const MAX_DESCRIPTION: usize = 1_000;

/// One piece of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerContent {
    Text(String),
    /// Bytes whose declared type is not trusted.
    File(AnswerFile),
    /// A resource as text.
    Resource {
        uri: String,
        mime_type: Option<String>,
        text: String,
    },
    Link(ResourceLink),
}

/// Bytes that came with an answer, or that are a resource.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerFile {
    /// The resource's address, if the bytes are a resource.
    pub uri: Option<String>,
    /// The file name, if no address names the file.
    pub name: Option<&'static str>,
    /// The MIME type that the server declares.
    pub mime_type: Option<String>,
    /// True if the bytes were sent as a picture; they are dropped if they are not one.
    pub is_image: bool,
    pub bytes: Vec<u8>,
}

/// Converts a block of a result or of a prompt.
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

/// Converts the description of a resource.
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

/// Converts the content of a resource.
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

/// The alphabet of base64, with or without padding, whatever its last bits are.
const FORGIVING: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Decodes base64 as servers write it: with line breaks, in the alphabet of addresses, without padding, or as a
/// `data:` address.
fn decoded(data: &str) -> Option<Vec<u8>> {
    let data = match data.trim_start().strip_prefix("data:") {
        None => data,
        Some(address) => {
            let (kind, data) = address.split_once(',')?;
            if !kind.trim_end().ends_with(";base64") {
                return Some(percent_decode_str(data).collect());
            }
            data
        }
    };
    if let Ok(bytes) = FORGIVING.decode(data) {
        return Some(bytes);
    }
    let plain = data.bytes().filter(|byte| !byte.is_ascii_whitespace());
    let plain: Vec<u8> = plain
        .map(|byte| match byte {
            b'-' => b'+',
            b'_' => b'/',
            byte => byte,
        })
        .collect();
    FORGIVING.decode(plain.trim_ascii_end()).ok()
}

/// Returns a name with secrets masked, on one line and shortened.
pub(crate) fn short(text: &str, cleaner: &Cleaner) -> String {
    let text = cleaner.clean(text).replace(['\n', '\r'], " ");
    cut(&text, MAX_NAME)
}

/// Does the same for a name that may be missing.
pub(crate) fn maybe_short(text: Option<&str>, cleaner: &Cleaner) -> Option<String> {
    text.map(|text| short(text, cleaner))
}

/// Returns a description with secrets masked and shortened.
pub(crate) fn description(text: Option<&str>, cleaner: &Cleaner) -> Option<String> {
    text.map(|text| cut(&cleaner.clean(text), MAX_DESCRIPTION))
}

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn base64_is_read_as_servers_write_it() {
        let bytes = Some(vec![0xfb, 0xff, 0xbf, 1]);
        for data in [
            "+/+/AQ==",
            "+/+/AQ",
            "+/+/AQ=",
            "-_-_AQ==",
            "-_-_AQ",
            "+/+/\r\nAQ==\n",
            " +/+/ AQ",
            "data:image/png;base64,+/+/AQ==",
            "data:;base64,-_-_AQ",
            "data:image/png;name=a.png;base64,+/+/\nAQ==",
            "data:application/octet-stream,%fb%ff%bf%01",
        ] {
            assert_eq!(decoded(data), bytes, "{data}");
        }
        for data in ["%", "a", "data:image/png;base64", "https://a.example"] {
            assert_eq!(decoded(data), None, "{data}");
        }
    }
}
