//! The file formats of an exported session.

/// The format of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::gateway) enum Format {
    /// Markdown for people; attachments are named only.
    Markdown,
    /// One self-contained HTML page with its attachments.
    Html,
    /// The events in the form of `GET …/events`, and the contents of attachments in base64.
    Json,
}

impl Format {
    /// Parses the format name of a request.
    pub(in crate::gateway) fn parse(text: &str) -> Option<Self> {
        match text {
            "md" => Some(Self::Markdown),
            "html" => Some(Self::Html),
            "json" => Some(Self::Json),
            _ => None,
        }
    }

    /// Returns the file extension.
    pub(in crate::gateway) fn extension(self) -> &'static str {
        match self {
            Self::Markdown => "md",
            Self::Html => "html",
            Self::Json => "json",
        }
    }

    /// Returns the media type.
    pub(in crate::gateway) fn media_type(self) -> &'static str {
        match self {
            Self::Markdown => "text/markdown; charset=utf-8",
            Self::Html => "text/html; charset=utf-8",
            Self::Json => "application/json",
        }
    }
}
