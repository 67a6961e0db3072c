//! What programs are started from, by name and by content.

use std::fmt;

/// What a program is started from, by name: a tag may stand for something else tomorrow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Image {
    /// That of the sandboxes, with the bundled server.
    Sandbox,
    /// That of servers whose package was installed: the sandboxes' own with Node and Python.
    Packages,
    /// One of the engine's.
    Named(String),
}

/// The content that an image's name stands for: an engine's id of it, or the hash of what stands for
/// an image where there is no engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageId(String);

impl ImageId {
    /// An id as whoever keeps the image spells it.
    pub(in crate::sandbox) fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// As it goes into digests.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ImageId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
