//! Defines the transport of a server that was started or whose address is known.

use tokio::io::{AsyncRead, AsyncWrite};

use sepal_mcp::Remote;
use sepal_sandbox::{ImageId, Life};

pub(crate) enum Started {
    Running(Streams),
    Remote(Remote),
    /// Over HTTP with SSE, the transport of old servers.
    OldRemote(Remote),
}

pub(crate) struct Streams {
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    pub image: Option<ImageId>,
    pub life: Life,
}

impl Started {
    /// The content of the image that it was started from, if known.
    pub(crate) fn image(&self) -> Option<ImageId> {
        match self {
            Self::Running(streams) => streams.image.clone(),
            Self::Remote(_) | Self::OldRemote(_) => None,
        }
    }
}
