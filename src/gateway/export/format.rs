//! How a session is written as a file.

/// How the document is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::gateway) enum Format {
    /// Text for people; attachments by name.
    Markdown,
    /// One page that needs nothing else; attachments are in it.
    Html,
    /// The events as `GET …/events` gives them, and the contents of attachments in base64.
    Json,
}

impl Format {
    /// Reads the name that a client asks by.
    pub(in crate::gateway) fn parse(text: &str) -> Option<Self> {
        match text {
            "md" => Some(Self::Markdown),
            "html" => Some(Self::Html),
            "json" => Some(Self::Json),
            _ => None,
        }
    }

    /// How files of it end.
    pub(in crate::gateway) fn extension(self) -> &'static str {
        match self {
            Self::Markdown => "md",
            Self::Html => "html",
            Self::Json => "json",
        }
    }

    /// The registered name.
    pub(in crate::gateway) fn media_type(self) -> &'static str {
        match self {
            Self::Markdown => "text/markdown; charset=utf-8",
            Self::Html => "text/html; charset=utf-8",
            Self::Json => "application/json",
        }
    }
}
