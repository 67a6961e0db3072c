//! Packages of MCP servers: what is asked for, what was installed, and how far that is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Digest, Timestamp};

/// Where a package comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PackageRegistry {
    /// npm: programs for Node.
    Npm,
    /// The Python package index.
    Pypi,
    /// A file that somebody uploaded (`.mcpb`); its name is the SHA-256 of the file, in hex.
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

    /// As people call it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pypi => "PyPI",
            Self::Bundle => "a bundle",
        }
    }
}

/// What an entry asks to have installed. Two entries that ask for the same have equal ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageSpec {
    pub registry: PackageRegistry,
    /// The package whose program is started.
    pub name: String,
    /// The version as it was asked for: an exact one, a range, or a tag of npm; `None` = the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Parts of a Python package that are optional.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extras: Vec<String>,
    /// More packages beside it, as they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
    /// The program of the package; `None` = the only one, or the one with the package's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Whether code of packages may run while they are installed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_scripts: bool,
}

/// How far an installation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InstallState {
    /// Nobody has begun.
    Waiting,
    /// Which versions it takes is found out.
    Resolving,
    /// Packages are fetched, and compared with their hashes.
    Downloading,
    /// They are unpacked; scripts run where they are allowed.
    Installing,
    /// The server is started once, to list its tools.
    Listing,
    /// Sessions can use it.
    Ready,
    /// It did not come to that.
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

    /// Whether somebody works on it, or has to.
    pub fn is_open(self) -> bool {
        !matches!(self, Self::Ready | Self::Failed)
    }
}

/// One step of an installation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallPhase {
    pub name: InstallState,
    pub began_at: Timestamp,
    /// How long it took; `None` while it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Why an installation failed, as far as its words tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InstallProblem {
    /// The registry has no such package.
    NoSuchPackage,
    /// The package has no such version.
    NoSuchVersion,
    /// Its author took the version back.
    Yanked,
    /// Nothing is built for this machine.
    NoWheel,
    /// It wants another Node or Python.
    NeedsNewer,
    /// What was fetched is not what was pinned.
    WrongHash,
    /// The registry cannot be reached, or does not answer.
    Unreachable,
    /// There is no room.
    TooLarge,
    /// It took too long.
    TimedOut,
    /// It cannot be used without its install scripts.
    NeedsScript,
    /// The package has no program of that name, or none at all.
    NoProgram,
    /// The sandboxes lack Node or Python.
    NoTools,
    /// All is installed, and the server does not start.
    DoesNotStart,
    /// A person stopped it.
    Cancelled,
    /// Something else; the log says what.
    Other,
}

impl InstallProblem {
    /// What helps, for people.
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

/// What was installed: the same for everybody who installs it again by its lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledPackage {
    /// The exact version of the package itself.
    pub version: String,
    /// Names all that was installed: registry, each package with its hash, and whether scripts ran.
    pub content: Digest,
    /// How many packages that are.
    pub packages: u32,
    /// What is started, before the entry's own arguments.
    pub program: Vec<String>,
    /// Variables that the program needs, beside the entry's own.
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
    /// What sessions use; also while another one is installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed: Option<InstalledPackage>,
    /// A newer one that somebody looks at, and nobody uses yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<InstalledPackage>,
    /// Whether what goes on is about a newer version.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_update: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<InstallPhase>,
    /// The last lines that the installer said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<InstallProblem>,
}

impl Installation {
    /// One that nobody has begun.
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

    /// Why the last one failed, if it did: also where an earlier one is used on.
    pub fn error(&self) -> Option<&str> {
        self.phases.iter().rev().find_map(|it| it.error.as_deref())
    }
}
