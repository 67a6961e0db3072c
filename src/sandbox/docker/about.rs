//! What an engine is and can: where it usually is, its runtimes, its limits.

use std::path::Path;

use bollard::models::SystemInfo;
use rustix::process::geteuid;

use super::problem::Problem as DockerProblem;
use crate::{domain::Enforcement, sandbox::Limits};

/// The first of the usual sockets that exists; Docker's where none does.
pub(super) fn usual_address() -> String {
    let user = geteuid().as_raw();
    let usual = "/var/run/docker.sock".to_owned();
    let found = [
        usual.clone(),
        "/run/podman/podman.sock".to_owned(),
        format!("/run/user/{user}/docker.sock"),
        format!("/run/user/{user}/podman/podman.sock"),
    ]
    .into_iter()
    .find(|path| Path::new(path).exists());
    format!("unix://{}", found.unwrap_or(usual))
}

/// Whether the engine has the runtime that the settings name.
pub(super) fn check_runtime(
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

/// What the engine says that it can hold; a rootless one may lack a control group.
pub(super) fn limits(about: &SystemInfo) -> Limits {
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
