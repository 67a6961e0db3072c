//! Sealed places in which a session's tools run: no network, a workspace, hard limits.
//!
//! [`Runtime`] is the seam: bubblewrap here, Docker beside it, [`Off`] where there is neither. What
//! is started comes back as byte streams and a [`Life`]; nothing above hears of namespaces or
//! containers.

mod bubblewrap;
mod error;
mod launch;
mod off;
mod running;
mod runtime;
mod workspace;

pub use self::{
    bubblewrap::{Bubblewrap, Settings},
    error::Error,
    launch::{Access, Bounds, Launch, Program},
    off::Off,
    running::{Ended, Life, Running},
    runtime::{Limits, Network, Runtime},
};
