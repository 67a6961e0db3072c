//! Finds the usual socket of an engine, and reads its runtimes and limits.

use std::path::Path;

use bollard::models::SystemInfo;
use rustix::process::geteuid;

use super::problem::Problem as DockerProblem;
use crate::Limits;
use sepal_core::domain::Enforcement;

/// Docker's default socket.
const USUAL: &str = "/var/run/docker.sock";

/// Returns the first of the usual sockets that exists.
pub(in crate::docker) fn usual_socket() -> Option<String> {
    let user = geteuid().as_raw();
    let usual = [
        USUAL.to_owned(),
        "/run/podman/podman.sock".to_owned(),
        format!("/run/user/{user}/docker.sock"),
        format!("/run/user/{user}/podman/podman.sock"),
    ];
    usual.into_iter().find(|path| Path::new(path).exists())
}

/// Returns the address of that socket, or of Docker's default socket if none exists.
pub(in crate::docker) fn usual_address() -> String {
    let found = usual_socket();
    format!("unix://{}", found.as_deref().unwrap_or(USUAL))
}

/// Checks that the engine has the runtime that the settings name.
pub(in crate::docker) fn check_runtime(
    runtime: Option<&str>,
    about: &SystemInfo,
) -> Result<(), DockerProblem> {
    let Some(runtime) = runtime else {
        return Ok(());
    };
    let mut known: Vec<&str> = about
        .runtimes
        .iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .collect();
    if known.contains(&runtime) {
        return Ok(());
    }
    known.sort_unstable();
    Err(DockerProblem::NoRuntime {
        runtime: runtime.to_owned(),
        known: known.join(", "),
    })
}

/// Returns the limits that the engine can enforce; a rootless one may lack a control group.
pub(in crate::docker) fn limits(about: &SystemInfo) -> Limits {
    let held = |can: Option<bool>| match can {
        Some(false) => Enforcement::None,
        Some(true) | None => Enforcement::Cgroup,
    };
    Limits {
        memory: held(about.memory_limit),
        cpu: held(about.cpu_cfs_quota),
        processes: held(about.pids_limit),
        time: Enforcement::Watchdog,
        workspace: Enforcement::Watchdog,
    }
}
