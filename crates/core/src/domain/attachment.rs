//! Describes the attachments of messages and results; their content is in the store.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// SHA-256 of a content, in lowercase hex. The same content has the same id in every tenant, so the id
/// alone grants no access.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BlobId(Arc<str>);

impl BlobId {
    /// The id of a content.
    pub fn of(content: &[u8]) -> Self {
        Self(hex::encode(Sha256::digest(content)).into())
    }

    /// Parses the exact form that [`Self::of`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        (text.len() == 64 && text.bytes().all(is_hex)).then(|| Self(text.into()))
    }

    /// The id as text, on the wire and in the store.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The kind of a content, detected from its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum MediaType {
    #[serde(rename = "image/png")]
    Png,
    #[serde(rename = "image/jpeg")]
    Jpeg,
    #[serde(rename = "application/pdf")]
    Pdf,
    /// UTF-8.
    #[serde(rename = "text/plain")]
    Text,
    #[serde(rename = "audio/wav")]
    Wav,
    #[serde(rename = "audio/mpeg")]
    Mp3,
    #[serde(rename = "audio/ogg")]
    Ogg,
    #[serde(rename = "audio/flac")]
    Flac,
    /// An unknown kind. Only servers may return it: people cannot attach it.
    #[serde(rename = "application/octet-stream")]
    Binary,
}

impl MediaType {
    /// The registered media type.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Pdf => "application/pdf",
            Self::Text => "text/plain",
            Self::Wav => "audio/wav",
            Self::Mp3 => "audio/mpeg",
            Self::Ogg => "audio/ogg",
            Self::Flac => "audio/flac",
            Self::Binary => "application/octet-stream",
        }
    }

    /// The file name for content without a name.
    pub fn usual_name(self) -> &'static str {
        match self {
            Self::Png => "image.png",
            Self::Jpeg => "image.jpg",
            Self::Pdf => "document.pdf",
            Self::Text => "text.txt",
            Self::Wav => "audio.wav",
            Self::Mp3 => "audio.mp3",
            Self::Ogg => "audio.ogg",
            Self::Flac => "audio.flac",
            Self::Binary => "file.bin",
        }
    }

    /// Parses the form that [`Self::as_str`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        let all = [
            Self::Png,
            Self::Jpeg,
            Self::Pdf,
            Self::Text,
            Self::Wav,
            Self::Mp3,
            Self::Ogg,
            Self::Flac,
            Self::Binary,
        ];
        all.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Returns true for audio.
    pub fn is_audio(self) -> bool {
        match self {
            Self::Wav | Self::Mp3 | Self::Ogg | Self::Flac => true,
            Self::Png | Self::Jpeg | Self::Pdf | Self::Text | Self::Binary => false,
        }
    }

    /// Returns true for pictures.
    pub fn is_image(self) -> bool {
        match self {
            Self::Png | Self::Jpeg => true,
            Self::Pdf
            | Self::Text
            | Self::Wav
            | Self::Mp3
            | Self::Ogg
            | Self::Flac
            | Self::Binary => false,
        }
    }
}

/// One attachment. The transcript keeps this record for ever; the content is found by its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attachment {
    pub id: BlobId,
    /// The file name for people.
    pub name: String,
    pub media_type: MediaType,
    /// Size of the stored content.
    pub bytes: u64,
    /// Size in pixels, if it is a picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
    /// The resource of an MCP server that the content was read from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Box<ResourceRef>>,
}

/// The address of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceRef {
    /// The MCP server's name in the registry.
    pub server: String,
    /// The resource's address at that server.
    pub uri: String,
}

impl fmt::Display for Attachment {
    /// Writes a description for models and people: `image "cat.png", 1024×768`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.media_type {
            MediaType::Png | MediaType::Jpeg => "image",
            MediaType::Pdf => "PDF",
            MediaType::Text => "text file",
            MediaType::Wav | MediaType::Mp3 | MediaType::Ogg | MediaType::Flac => "audio",
            MediaType::Binary => "file",
        };
        write!(f, "{what} \"{}\", ", self.name)?;
        match (self.width, self.height) {
            (Some(width), Some(height)) => write!(f, "{width}×{height}"),
            _ => write!(f, "{} kB", self.bytes.div_ceil(1000)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Attachment, BlobId, MediaType};

    #[test]
    fn an_id_is_the_hash_of_the_content_and_nothing_else_is_one() {
        let id = BlobId::of(b"abc");
        let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(id.as_str(), hex);
        assert_eq!(BlobId::parse(hex), Some(id));
        for forged in ["", "ba78", &hex.to_uppercase(), &format!("{hex}0"), "../x"] {
            assert_eq!(BlobId::parse(forged), None, "{forged}");
        }
    }

    #[test]
    fn an_attachment_says_what_it_is() {
        fn check(media_type: MediaType, size: Option<(u32, u32)>, expected: &str) {
            let attachment = Attachment {
                id: BlobId::of(b""),
                name: "it".to_owned(),
                media_type,
                bytes: 1_500,
                width: size.map(|size| size.0),
                height: size.map(|size| size.1),
                source: None,
            };
            assert_eq!(attachment.to_string(), expected);
            let json = serde_json::to_value(&attachment).unwrap();
            assert_eq!(json["mediaType"], media_type.as_str());
            assert_eq!(MediaType::parse(media_type.as_str()), Some(media_type));
        }
        check(MediaType::Png, Some((3, 2)), "image \"it\", 3×2");
        check(MediaType::Jpeg, None, "image \"it\", 2 kB");
        check(MediaType::Pdf, None, "PDF \"it\", 2 kB");
        check(MediaType::Text, None, "text file \"it\", 2 kB");
        check(MediaType::Wav, None, "audio \"it\", 2 kB");
        check(MediaType::Binary, None, "file \"it\", 2 kB");
    }
}
