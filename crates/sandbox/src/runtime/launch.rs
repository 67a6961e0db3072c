//! Defines what to start in a sandbox, and its limits.

use std::{collections::BTreeMap, time::Duration};

use crate::Error;
use sepal_core::domain::{Holder, SandboxId};
use sepal_net::Egress;

/// One program to start in a sandbox.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The session's sandbox, whose id also names its workspace.
    pub sandbox: SandboxId,
    /// The user and tenant whose share the program counts against; `None` = the installation's, as for warm
    /// ones.
    pub holder: Option<Holder>,
    /// The name of the MCP server, for logs.
    pub server: String,
    pub program: Program,
    /// The environment of the program, beside the few variables that every sandbox has.
    pub environment: BTreeMap<String, String>,
    /// The access to the session's files.
    pub workspace: Access,
    /// The installed packages that the program sees.
    pub packages: Packages,
    /// The hosts that the program may reach; `None` = no network.
    pub egress: Option<Egress>,
    /// The resource limits.
    pub bounds: Bounds,
}

/// The program of a [`Launch`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// Our own server for files and commands.
    Bundled {
        /// The default and maximum timeout of one command.
        command_timeout: Duration,
        /// Most bytes that are kept of each stream of a command.
        output_bytes: u64,
    },
    /// A command that the sandbox's system has.
    Command(Vec<String>),
    /// A container image with its arguments; only engines can run one.
    Image {
        image: String,
        /// The arguments that follow the image on the command line.
        arguments: Vec<String>,
    },
}

impl Program {
    /// Returns the command line options of our own server; empty for any other program.
    pub fn options(&self) -> Vec<String> {
        let Self::Bundled {
            command_timeout,
            output_bytes,
        } = self
        else {
            return Vec::new();
        };
        let timeout = command_timeout.as_secs().max(1).to_string();
        let output = output_bytes.to_string();
        let options = ["--workspace", "/workspace", "--command-timeout", &timeout];
        let more = ["--output-bytes", &output];
        options
            .iter()
            .chain(&more)
            .map(|it| (*it).to_owned())
            .collect()
    }
}

/// The access of a program to the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The workspace is not visible.
    None,
    /// Read only.
    ReadOnly,
    /// Read and write.
    ReadWrite,
}

/// The installed packages that a program sees. With an engine, a command that sees some runs in the image
/// that has Node and Python.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Packages {
    /// No packages.
    #[default]
    None,
    /// The program installs packages into its workspace.
    Installing,
    /// The packages in the workspace of that sandbox, read-only at `/packages`.
    Installed(SandboxId),
}

/// The limits of one started program, with everything that it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub memory_bytes: u64,
    /// Processor time in thousandths of one processor.
    pub cpu_millis: u32,
    pub processes: u32,
    /// The size of the whole workspace.
    pub workspace_bytes: u64,
    /// The longest lifetime; `None` = until its owner ends it.
    pub lifetime: Option<Duration>,
}

impl Default for Bounds {
    /// S2.52: 512 MB and half a processor.
    fn default() -> Self {
        Self {
            memory_bytes: 512 << 20,
            cpu_millis: 500,
            processes: 128,
            workspace_bytes: 1024 << 20,
            lifetime: None,
        }
    }
}

impl Launch {
    /// Returns the home folder of the program: a writable one, because most programs fail without.
    pub fn home(&self) -> &'static str {
        match self.workspace {
            Access::ReadWrite => "/workspace",
            Access::None | Access::ReadOnly => "/tmp",
        }
    }

    /// Refuses what no operating system could start.
    pub fn check(&self) -> Result<(), Error> {
        for (name, value) in &self.environment {
            let is_name = !name.is_empty() && !name.contains(['=', '\0']);
            if !is_name || value.contains('\0') {
                return Err(Error::BadLaunch(format!(
                    "the environment variable `{}` has an impossible name or value",
                    name.escape_default()
                )));
            }
        }
        if let Program::Command(words) = &self.program
            && (words.first().is_none_or(String::is_empty)
                || words.iter().any(|word| word.contains('\0')))
        {
            return Err(Error::BadLaunch(
                "the command is empty or holds a NUL character".to_owned(),
            ));
        }
        Ok(())
    }
}
