//! What a server is spoken to through, once it was started or its address is known.

use tokio::io::{AsyncRead, AsyncWrite};

use crate::mcp::Remote;
use crate::sandbox::{ImageId, Life};

pub(crate) enum Started {
    Running(Streams),
    Remote(Remote),
    /// Over the HTTP with SSE of old servers.
    OldRemote(Remote),
}

pub(crate) struct Streams {
    pub(crate) stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub(crate) stdout: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) image: Option<ImageId>,
    pub(crate) life: Life,
}

impl Started {
    /// The content that it was started from, where something names it.
    pub(crate) fn image(&self) -> Option<ImageId> {
        match self {
            Self::Running(streams) => streams.image.clone(),
            Self::Remote(_) | Self::OldRemote(_) => None,
        }
    }
}
