//! Sealed places in which a session's tools run: no network, a workspace, hard limits.
//!
//! [`Runtime`] is the seam: [`Docker`], [`Bubblewrap`] on a machine without an engine, [`Off`] where there is neither. What
//! is started comes back as byte streams and a [`Life`]; nothing above hears of namespaces or
//! containers.

mod bubblewrap;
mod docker;
mod error;
mod janitor;
mod launch;
mod off;
mod quota;
mod running;
mod runtime;
mod workspace;

pub use self::{
    bubblewrap::{Bubblewrap, Settings},
    docker::{Docker, DockerProblem, DockerSettings},
    error::Error,
    janitor::Janitor,
    launch::{Access, Bounds, Launch, Program},
    off::Off,
    running::{Ended, Life, Running},
    runtime::{Limits, Network, Runtime},
};
