//! Errors of sandboxes.

use std::{io, path::PathBuf, sync::Arc};

use super::DockerProblem;
use sepal_core::domain::{Fault, ReachedLimit, ShareLevel};

/// An error of a sandbox.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Sandboxes are turned off.
    #[error("tools that need a sandbox are off; set `sandbox.driver` (SPL_SANDBOX) to `auto`")]
    Off,
    /// A program of the system is missing.
    #[error("`{program}` is missing; install it: `apt-get install {package}`")]
    NotInstalled {
        /// The program that we tried to run.
        program: String,
        package: &'static str,
    },
    /// The machine does not let us build a sandbox.
    #[error("this machine refuses to make a sandbox (`{said}`); {remedy}")]
    Refused {
        /// The last words of the program that failed.
        said: String,
        /// The remedy for the operator.
        remedy: &'static str,
    },
    /// The bundled server is not where it should be.
    #[error("the sandbox's server `{0}` is missing; run `./run build`, or reinstall")]
    NoServer(PathBuf),
    /// The launch is invalid on any machine.
    #[error("{0}")]
    BadLaunch(String),
    /// The folder of a workspace cannot be used.
    #[error("the workspace folder `{path}` cannot be used")]
    Workspace { path: PathBuf, source: io::Error },
    /// The installed package of a server no longer exists.
    #[error("the server's package is not installed here any more")]
    NoPackages,
    /// The container engine failed.
    #[error(transparent)]
    Engine(#[from] DockerProblem),
    /// The operating system refused something that a start needs.
    #[error("a sandbox could not be started")]
    Start(#[from] io::Error),
    /// The limit of running sandboxes is reached for this user, this tenant or in all, and each of them is in
    /// use.
    #[error("{}; {}", in_use(*.0), more_room(.0.whose))]
    Full(ReachedLimit),
    /// The disk is nearly full, so nothing starts that may write to it.
    #[error(
        "the disk has only {} MB left, and nothing that may write starts below {} MB",
        .free >> 20, .floor >> 20
    )]
    DiskFull {
        /// Free bytes on the disk.
        free: u64,
        /// The free bytes below which nothing starts.
        floor: u64,
    },
    /// No runtime is available yet, for this reason; the search goes on.
    #[error(transparent)]
    Awaited(Arc<Error>),
    /// [`super::Runtime::close`] was called.
    #[error("the sandboxes are being closed")]
    Closed,
}

impl Error {
    /// Returns the remedy. It names no path and no address, so anybody may read it.
    pub fn remedy(&self) -> String {
        match self {
            Self::Off => "set `sandbox.driver` (SPL_SANDBOX) to `auto`".to_owned(),
            Self::NotInstalled { package, .. } => format!("`apt-get install {package}`"),
            Self::Refused { remedy, .. } => (*remedy).to_owned(),
            Self::NoServer(_) => "run `./run build`, or reinstall".to_owned(),
            Self::Engine(problem) => problem.remedy(),
            Self::Awaited(lack) => lack.remedy(),
            Self::Full(reached) => more_room(reached.whose).to_owned(),
            Self::DiskFull { .. } => {
                "free some space on the machine, or delete sessions that nobody \
                                      needs; `sandbox.min_free_mb` (SPL_SANDBOX_MIN_FREE_MB) is \
                                      the least that has to be free"
                    .to_owned()
            }
            Self::NoPackages => "have the server's package installed again".to_owned(),
            Self::BadLaunch(_) | Self::Workspace { .. } | Self::Start(_) | Self::Closed => {
                "look at the log".to_owned()
            }
        }
    }

    /// Returns the fault class, which says who has to act.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Off | Self::BadLaunch(_) => Fault::Validation,
            // A start has already waited for room on a full machine.
            Self::NotInstalled { .. }
            | Self::Refused { .. }
            | Self::NoServer(_)
            | Self::DiskFull { .. }
            | Self::Full(_) => Fault::External,
            Self::Start(_) | Self::Closed | Self::NoPackages => Fault::Transient,
            Self::Workspace { .. } => Fault::Internal,
            Self::Engine(problem) => problem.fault(),
            Self::Awaited(lack) => lack.fault(),
        }
    }
}

fn in_use(reached: ReachedLimit) -> String {
    let most = reached.most;
    match reached.whose {
        ShareLevel::User => {
            format!("all {most} sandboxes that one person may have are in use by you")
        }
        ShareLevel::Tenant => {
            format!("all {most} sandboxes that one tenant may have are in use by yours")
        }
        ShareLevel::All => format!("all {most} sandboxes of this gateway are in use"),
    }
}

fn more_room(whose: ShareLevel) -> &'static str {
    match whose {
        ShareLevel::User => {
            "try again when one of your calls has ended, or let one person have more of them: \
             `runtime.limits.sandboxes_per_user` (SPL_LIMIT_SANDBOXES_PER_USER)"
        }
        ShareLevel::Tenant => {
            "try again when a call has ended, or let one tenant have more of them: \
             `runtime.limits.sandboxes_per_tenant` (SPL_LIMIT_SANDBOXES_PER_TENANT)"
        }
        ShareLevel::All => {
            "try again when a call has ended, or let more of them run: `sandbox.max` \
             (SPL_SANDBOX_MAX)"
        }
    }
}
