//! Sealed places in which a session's tools run: no network, a workspace, hard limits.
//!
//! [`Runtime`] is the seam: [`Docker`], [`Bubblewrap`] on a machine without an engine, [`Off`] where there is neither. What
//! is started comes back as byte streams and a [`Life`]; nothing above hears of namespaces or
//! containers.

mod bubblewrap;
mod capacity;
mod docker;
mod error;
mod janitor;
mod launch;
mod off;
mod peers;
mod quota;
mod running;
mod runtime;
mod usage;
mod workspace;

pub use self::{
    bubblewrap::{Bubblewrap, Settings},
    capacity::{Capacity, Room},
    docker::{Docker, DockerProblem, DockerSettings},
    error::Error,
    janitor::Janitor,
    launch::{Access, Bounds, Launch, Program},
    off::Off,
    peers::Peers,
    running::{Ended, Life, Running},
    runtime::{Limits, Network, Runtime},
    usage::Using,
};
