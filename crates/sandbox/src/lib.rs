//! Runs a session's tools in sandboxes: no network, a workspace, hard limits.
//!
//! [`Runtime`] is the interface, with the implementations [`Docker`], [`Bubblewrap`] on a machine without an
//! engine, [`Off`] without either, and [`DeferredRuntime`] if one of them may still become available. A
//! started program is returned as byte streams and a [`Life`]; the layers above know nothing of namespaces or
//! containers.

pub mod archiving;
pub mod assignment;
mod bubblewrap;
mod capacity;
pub mod cloning;
mod disk;
mod docker;
mod egress;
mod error;
mod forking;
pub mod host;
mod janitor;
mod peers;
mod runtime;
mod usage;
mod workspace;

use std::time::Instant;

use sepal_telemetry::instruments;

pub use self::bubblewrap::{Bubblewrap, Settings};
pub use self::capacity::{Capacity, Room};
pub use self::disk::{DiskMonitor, free_bytes};
pub use self::docker::{Docker, DockerProblem, DockerSettings};
pub use self::error::Error;
pub use self::janitor::Janitor;
pub use self::peers::Peers;
pub use self::runtime::copying::{CopyOrder, CopyResult, CopyWatch, CopyWay};
pub use self::runtime::deferred::DeferredRuntime;
pub use self::runtime::image::{Image, ImageId};
pub use self::runtime::launch::{Access, Bounds, Launch, Packages, Program};
pub use self::runtime::off::Off;
pub use self::runtime::running::{Life, ProgramEnd, Running};
pub use self::runtime::{Limits, Network, Runtime};
pub use self::usage::Using;

/// Counts a start by a driver, from the pool (`warm`) or from nothing (`cold`).
fn count_start(driver: &'static str, way: &'static str, since: Instant, is_running: bool) {
    let outcome = if is_running { "ok" } else { "failed" };
    instruments().sandbox_started(driver, way, outcome, since.elapsed());
}
