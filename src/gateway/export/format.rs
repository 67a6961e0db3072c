//! The forms of a document: files for the owner of the session, and the page that others read.

/// The form in which a document is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::gateway) enum Form {
    /// A file for the owner of the session, with everything.
    Export(Format),
    /// The page for people other than the owner: HTML without the model's reasoning and the ids of sessions.
    Shared,
}

/// The readers of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audience {
    /// The owner of the session.
    Owner,
    /// People with whom the session is shared.
    Others,
}

/// The file format of an export.
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
