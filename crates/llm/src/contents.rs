//! Holds the attachments of a request in the form in which they are sent. Each content is encoded as base64
//! once and shared by all requests and attempts. Pure.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::request::pairing::{PairedCall, Said};
use sepal_core::domain::{Attachment, BlobId, MediaType};

/// The contents of a request, by id. A missing content is replaced by a text that names it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Contents(Arc<HashMap<BlobId, Content>>);

/// A content in the form in which models receive it.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A picture, or a document that the model reads.
    Encoded(Arc<Encoded>),
    /// A text.
    Text(Arc<str>),
    /// The content is not sent; the text gives the reason.
    LeftOut(&'static str),
}

/// A content as a `data:` URL; each vendor uses the parts that it needs.
#[derive(Debug, PartialEq)]
pub struct Encoded {
    media_type: MediaType,
    url: String,
    /// The offset of the base64.
    data_at: usize,
}

impl Encoded {
    /// Encodes a content as base64.
    pub fn new(media_type: MediaType, content: &[u8]) -> Self {
        let mut url = format!("data:{};base64,", media_type.as_str());
        let data_at = url.len();
        STANDARD.encode_string(content, &mut url);
        Self {
            media_type,
            url,
            data_at,
        }
    }

    /// The registered media type.
    pub fn media_type(&self) -> &'static str {
        self.media_type.as_str()
    }

    /// The complete `data:` URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The base64 text alone.
    pub fn data(&self) -> &str {
        self.url.get(self.data_at..).unwrap_or_default()
    }
}

/// A part of a message, to be converted to a vendor's form.
#[derive(Debug, PartialEq)]
pub(crate) enum Part<'a> {
    Text(Cow<'a, str>),
    Image(&'a Encoded),
    /// A PDF and its name.
    Document(&'a Encoded, &'a str),
}

impl Contents {
    /// Wraps the given contents.
    pub fn new(contents: HashMap<BlobId, Content>) -> Self {
        Self(Arc::new(contents))
    }

    /// Converts a person's messages to parts, oldest first; consecutive texts are joined.
    pub(crate) fn parts<'a>(&'a self, said: Vec<Said<'a>>) -> Vec<Part<'a>> {
        let mut parts = Vec::with_capacity(said.len());
        for said in said {
            let part = match said {
                Said::Text(text) => Part::Text(text),
                Said::Attachment(attachment) => self.part(attachment),
            };
            match (parts.last_mut(), part) {
                (Some(Part::Text(before)), Part::Text(text)) => {
                    let before = before.to_mut();
                    before.push_str("\n\n");
                    before.push_str(&text);
                }
                (_, part) => parts.push(part),
            }
        }
        parts
    }

    /// Returns the text of a result and its pictures. Attachments that are not sent are named in the text.
    pub(crate) fn result<'a>(&'a self, paired: &PairedCall<'a>) -> (Cow<'a, str>, Vec<Part<'a>>) {
        let mut text = Cow::Borrowed(paired.result);
        let mut pictures = Vec::new();
        for attachment in paired.attachments {
            match self.part(attachment) {
                Part::Text(words) => {
                    let text = text.to_mut();
                    text.push('\n');
                    text.push_str(&words);
                }
                picture @ (Part::Image(_) | Part::Document(..)) => pictures.push(picture),
            }
        }
        (text, pictures)
    }

    fn part<'a>(&'a self, attachment: &'a Attachment) -> Part<'a> {
        match self.0.get(&attachment.id) {
            Some(Content::Encoded(encoded)) if encoded.media_type.is_image() => {
                Part::Image(encoded)
            }
            Some(Content::Encoded(encoded)) => Part::Document(encoded, &attachment.name),
            Some(Content::Text(text)) => Part::Text(Cow::Owned(fenced(&attachment.name, text))),
            Some(Content::LeftOut(why)) => left_out(attachment, why),
            None => left_out(attachment, "its content is gone"),
        }
    }
}

/// Returns the text if it is the only part, else the parts. Some servers accept only a plain text.
pub(crate) fn only_text(parts: Vec<Part<'_>>) -> Result<Cow<'_, str>, Vec<Part<'_>>> {
    match <[Part<'_>; 1]>::try_from(parts) {
        Ok([Part::Text(text)]) => Ok(text),
        Ok([one @ (Part::Image(_) | Part::Document(..))]) => Err(vec![one]),
        Err(parts) => Err(parts),
    }
}

fn left_out<'a>(attachment: &Attachment, why: &str) -> Part<'a> {
    Part::Text(Cow::Owned(format!("[{attachment}: {why}]")))
}

/// Wraps a text file in a fence that its content cannot close.
fn fenced(name: &str, text: &str) -> String {
    let longest = text
        .split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("File \"{name}\":\n{fence}\n{text}\n{fence}")
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::collections::HashMap;
    use std::sync::Arc;

    use super::{Content, Contents, Encoded, Part, fenced};
    use crate::request::pairing::Said;
    use sepal_core::domain::{Attachment, BlobId, MediaType};

    fn attached(name: &str, media_type: MediaType) -> Attachment {
        Attachment {
            id: BlobId::of(name.as_bytes()),
            name: name.to_owned(),
            media_type,
            bytes: 3,
            width: Some(2),
            height: Some(1),
            source: None,
        }
    }

    #[test]
    fn each_content_goes_in_its_form_or_is_named_in_words() {
        let [cat, paper, note, far, gone] = [
            attached("cat", MediaType::Png),
            attached("paper", MediaType::Pdf),
            attached("note", MediaType::Text),
            attached("far", MediaType::Jpeg),
            attached("gone", MediaType::Png),
        ];
        let encoded = |it: &Attachment| Arc::new(Encoded::new(it.media_type, b"abc"));
        let contents = Contents::new(HashMap::from([
            (cat.id.clone(), Content::Encoded(encoded(&cat))),
            (paper.id.clone(), Content::Encoded(encoded(&paper))),
            (note.id.clone(), Content::Text("hi".into())),
            (far.id.clone(), Content::LeftOut("no")),
        ]));
        let said = [&cat, &paper, &note, &far, &gone].map(Said::Attachment);
        let first = Said::Text(Cow::Borrowed("look"));
        let parts = contents.parts([first].into_iter().chain(said).collect());
        let [
            Part::Text(text),
            Part::Image(image),
            Part::Document(document, "paper"),
            Part::Text(rest),
        ] = parts.as_slice()
        else {
            panic!("{parts:?}");
        };
        assert_eq!(text, "look");
        assert_eq!(image.url(), "data:image/png;base64,YWJj");
        assert_eq!(
            (document.media_type(), document.data()),
            ("application/pdf", "YWJj")
        );
        assert_eq!(
            rest,
            "File \"note\":\n```\nhi\n```\n\n[image \"far\", 2×1: no]\n\n[image \"gone\", 2×1: its content is gone]"
        );
    }

    #[test]
    fn nothing_in_a_text_closes_its_fence() {
        let fence = fenced("a", "x ```` y");
        assert!(fence.contains("\n`````\nx ```` y\n`````"), "{fence}");
    }
}
