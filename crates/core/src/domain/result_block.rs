//! Models the blocks of a tool's result as people see them, if it is more than text and pictures.

use serde::{Deserialize, Serialize};

use super::Attachment;

/// The audience of a block, as declared by its server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Audience {
    #[default]
    Everybody,
    /// Only people: the block is not sent to models.
    User,
    /// Only the model: people see the block collapsed.
    Assistant,
}

impl Audience {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde hands out references"
    )]
    fn is_everybody(&self) -> bool {
        *self == Self::Everybody
    }
}

/// One block of a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultBlock {
    #[serde(flatten)]
    pub content: BlockContent,
    #[serde(default, skip_serializing_if = "Audience::is_everybody")]
    pub audience: Audience,
}

/// The content of a block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum BlockContent {
    /// Plain text.
    Text { text: String },
    /// A picture, a sound, or the bytes of a resource, stored with the session.
    File {
        attachment: Attachment,
        /// The address of the resource at its server, if the file is a resource.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        uri: Option<String>,
        /// The media type that the server declared; the attachment has the type detected from the bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
    /// A text resource embedded in the result.
    Resource {
        uri: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        text: String,
    },
    /// A link to a resource that can be read.
    ResourceLink(ResourceLink),
}

/// A resource that a server offers, as the server describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceLink {
    /// The address at the server, unchanged.
    pub uri: String,
    pub name: String,
    /// The display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Size of the content, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Audience, BlockContent, ResourceLink, ResultBlock};

    #[test]
    fn blocks_are_written_flat_and_read_again() {
        let link = ResultBlock {
            content: BlockContent::ResourceLink(ResourceLink {
                uri: "demo://a".to_owned(),
                name: "a".to_owned(),
                title: None,
                description: None,
                mime_type: Some("text/plain".to_owned()),
                size: None,
            }),
            audience: Audience::Everybody,
        };
        let told = ResultBlock {
            content: BlockContent::Text {
                text: "hi".to_owned(),
            },
            audience: Audience::User,
        };
        for (block, expected) in [
            (
                link,
                json!({"type": "resource_link", "uri": "demo://a", "name": "a", "mimeType": "text/plain"}),
            ),
            (
                told,
                json!({"type": "text", "text": "hi", "audience": "user"}),
            ),
        ] {
            let written = serde_json::to_value(&block).unwrap();
            assert_eq!(written, expected);
            let read: ResultBlock = serde_json::from_value(written).unwrap();
            assert_eq!(read, block);
        }
    }
}
