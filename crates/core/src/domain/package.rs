//! Models the packages of MCP servers: the request, the installed result and the progress of the
//! installation.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Digest, Timestamp};

/// The source of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PackageRegistry {
    /// npm: programs for Node.
    Npm,
    /// The Python package index.
    Pypi,
    /// An uploaded file (`.mcpb`); its name is the SHA-256 of the file, in hex.
    Bundle,
}

impl PackageRegistry {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pypi => "pypi",
            Self::Bundle => "bundle",
        }
    }

    /// The name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pypi => "PyPI",
            Self::Bundle => "a bundle",
        }
    }
}

/// The package that a server's entry requests. Two entries that request the same package have equal specs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageSpec {
    pub registry: PackageRegistry,
    /// The package whose program is started.
    pub name: String,
    /// The requested version: an exact one, a range, or a tag of npm; `None` = the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The requested extras of a Python package.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extras: Vec<String>,
    /// Additional packages, as requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
    /// The program of the package; `None` = the only one, or the one with the package's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// True if packages may run code during their installation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_scripts: bool,
}

/// The progress of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InstallState {
    /// Not started.
    Waiting,
    /// Versions are being resolved.
    Resolving,
    /// Packages are being downloaded and verified against their hashes.
    Downloading,
    /// Packages are being unpacked, and scripts run if allowed.
    Installing,
    /// The server is being started once to list its tools.
    Listing,
    /// Ready for sessions.
    Ready,
    /// Failed.
    Failed,
}

impl InstallState {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Resolving => "resolving",
            Self::Downloading => "downloading",
            Self::Installing => "installing",
            Self::Listing => "listing",
            Self::Ready => "ready",
            Self::Failed => "failed",
        }
    }

    /// Returns true if the installation is waiting or running.
    pub fn is_open(self) -> bool {
        !matches!(self, Self::Ready | Self::Failed)
    }
}

/// One step of an installation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallPhase {
    pub name: InstallState,
    pub began_at: Timestamp,
    /// Duration of the step; `None` while it is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
    /// The error, if the step failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The reason an installation failed, as far as its output tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InstallProblem {
    /// The registry has no such package.
    NoSuchPackage,
    /// The package has no such version.
    NoSuchVersion,
    /// The author withdrew the version.
    Yanked,
    /// There is no build for this machine.
    NoWheel,
    /// The package requires another version of Node or Python.
    NeedsNewer,
    /// The download does not match its pinned hash.
    WrongHash,
    /// The registry is unreachable or does not answer.
    Unreachable,
    /// There is not enough space or memory.
    TooLarge,
    /// The installation timed out.
    TimedOut,
    /// The package does not work without its install scripts.
    NeedsScript,
    /// The package has no program of that name, or none at all.
    NoProgram,
    /// Node or Python is missing in the sandboxes.
    NoTools,
    /// The installation succeeded, but the server does not start.
    DoesNotStart,
    /// A person stopped it.
    Cancelled,
    /// Another error, which is in the log.
    Other,
}

impl InstallProblem {
    /// The advice for people.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::NoSuchPackage => "check the name of the package",
            Self::NoSuchVersion => {
                "check the version, or leave it out: then the newest one is taken"
            }
            Self::Yanked => "name another version, or none: then the newest one is taken",
            Self::NoWheel => {
                "an admin may allow install scripts (`allowScripts`), so that the package is built \
                 here; or name another version"
            }
            Self::NeedsNewer => {
                "install a newer Node or Python where sandboxes run (with Docker: in the image \
                 `sandbox.packages.image`), or name an older version of the package"
            }
            Self::WrongHash => {
                "try again: the registry may have been changed, or something between it and this \
                 gateway changes what it sends"
            }
            Self::Unreachable => {
                "check that this gateway reaches the registry (`sandbox.packages.npm_registry`, \
                 `sandbox.packages.pypi_index`), then try again"
            }
            Self::TooLarge => {
                "raise `sandbox.packages.size_mb` or `sandbox.packages.memory_mb`, or make room on \
                 the disk, then try again"
            }
            Self::TimedOut => "try again, or raise `sandbox.packages.timeout_s`",
            Self::NeedsScript => {
                "an admin may allow install scripts (`allowScripts`), if the log does not name \
                 another reason"
            }
            Self::NoProgram => {
                "name the program: `npx -p PACKAGE PROGRAM`, or `uvx --from PACKAGE PROGRAM`"
            }
            Self::NoTools => {
                "install nodejs and npm, or python3 and python3-pip, where sandboxes run: with \
                 bubblewrap below `/usr` of the machine, with Docker in the image \
                 `sandbox.packages.image`, which `./run image` builds"
            }
            Self::DoesNotStart => {
                "read the log: mostly a variable (`env`) or an argument is missing; where the newest \
                 of the packages that it uses do not suit it, name older ones (`uvx --with 'mcp<2' \
                 PACKAGE`)"
            }
            Self::Cancelled => "try again when you want it",
            Self::Other => "read the log; then try again",
        }
    }
}

/// An installed package; a repeated installation from its lock gives the same result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledPackage {
    /// The exact version of the package itself.
    pub version: String,
    /// Digest of everything that was installed: registry, each package with its hash, and whether scripts
    /// ran.
    pub content: Digest,
    /// Number of installed packages.
    pub packages: u32,
    /// The command to start, before the entry's own arguments.
    pub program: Vec<String>,
    /// Environment variables that the program needs, in addition to the entry's own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Packages whose install scripts did not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped_scripts: Vec<String>,
}

/// The installation of a server's package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installation {
    pub spec: PackageSpec,
    pub state: InstallState,
    /// The installation that sessions use, even while another one is being installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed: Option<InstalledPackage>,
    /// A newer installation that waits for a person's decision; sessions do not use it yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<InstalledPackage>,
    /// True if the running installation is for a newer version.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_update: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<InstallPhase>,
    /// The last lines of the installer's output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<InstallProblem>,
}

impl Installation {
    /// An installation that has not started.
    pub fn new(spec: PackageSpec) -> Self {
        Self {
            spec,
            state: InstallState::Waiting,
            installed: None,
            candidate: None,
            is_update: false,
            phases: Vec::new(),
            log: Vec::new(),
            problem: None,
        }
    }

    /// The last error, even if an earlier installation is still in use.
    pub fn error(&self) -> Option<&str> {
        self.phases.iter().rev().find_map(|it| it.error.as_deref())
    }
}
