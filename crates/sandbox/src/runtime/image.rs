//! Defines images, by name and by content.

use std::fmt;

/// The name of the image that a program is started from: a tag may stand for another content tomorrow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Image {
    /// The sandboxes' image, with the bundled server.
    Sandbox,
    /// The image of servers whose package was installed: the sandboxes' image with Node and Python.
    Packages,
    /// An image of the engine.
    Named(String),
}

/// The id of an image's content: the engine's id, or without an engine the hash of the bundled server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageId(String);

impl ImageId {
    /// Creates an id from the engine's or the runtime's spelling.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// Returns the id as it goes into digests.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ImageId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
