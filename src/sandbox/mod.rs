//! Sealed places in which a session's tools run: no network, a workspace, hard limits.
//!
//! [`Runtime`] is the seam: [`Docker`], [`Bubblewrap`] on a machine without an engine, [`Off`] where there is neither, [`Late`] where one may still come. What
//! is started comes back as byte streams and a [`Life`]; nothing above hears of namespaces or
//! containers.

pub(crate) mod assignment;
pub(crate) mod host;
mod bubblewrap;
mod capacity;
mod disk;
mod docker;
mod error;
mod fairness;
mod image;
mod janitor;
mod late;
mod launch;
mod off;
mod peers;
mod quota;
mod running;
mod runtime;
mod trim;
mod usage;
mod workspace;

use std::time::Instant;

use crate::telemetry::instruments;

pub use self::{
    bubblewrap::{Bubblewrap, Settings},
    capacity::{Capacity, Room},
    disk::{DiskMonitor, free_bytes},
    docker::{Docker, DockerProblem, DockerSettings},
    error::Error,
    image::{Image, ImageId},
    janitor::Janitor,
    late::Late,
    launch::{Access, Bounds, Launch, Program},
    off::Off,
    peers::Peers,
    running::{Ended, Life, Running},
    runtime::{Limits, Network, Runtime},
    usage::Using,
};

/// Counts a start by that driver, out of the pool (`warm`) or from nothing (`cold`).
fn count_start((driver, way): (&'static str, &'static str), since: Instant, is_running: bool) {
    let outcome = if is_running { "ok" } else { "failed" };
    instruments().sandbox_started(driver, (way, outcome), since.elapsed());
}
