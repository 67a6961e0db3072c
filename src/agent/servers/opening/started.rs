//! What a server is spoken to through, once it was started or its address is known.

use tokio::io::{AsyncRead, AsyncWrite};

use crate::mcp::Remote;
use crate::sandbox::{ImageId, Life};

pub(super) enum Started {
    Running(Streams),
    Remote(Remote),
}

pub(super) struct Streams {
    pub(super) stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub(super) stdout: Box<dyn AsyncRead + Send + Unpin>,
    pub(super) image: Option<ImageId>,
    pub(super) life: Life,
}

impl Started {
    /// The content that it was started from, where something names it.
    pub(super) fn image(&self) -> Option<ImageId> {
        match self {
            Self::Running(streams) => streams.image.clone(),
            Self::Remote(_) => None,
        }
    }
}
