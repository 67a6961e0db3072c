//! What is to be started, and how much it may use.

use std::{collections::BTreeMap, time::Duration};

use crate::domain::{Holder, SandboxId};
use crate::net::Egress;
use crate::sandbox::Error;

/// One program to start in a sandbox.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The session's sandbox; its workspace is kept by this id.
    pub sandbox: SandboxId,
    /// For whom it runs, as shares are counted; `None` = for the installation, as warm ones do.
    pub holder: Option<Holder>,
    /// The MCP server that this is, for logs.
    pub server: String,
    pub program: Program,
    /// Environment of the program, beside the few names that every sandbox has.
    pub environment: BTreeMap<String, String>,
    /// Whether it sees the session's files.
    pub workspace: Access,
    /// What of installed packages it sees.
    pub packages: Packages,
    /// What it may reach; `None` = nothing.
    pub egress: Option<Egress>,
    /// How much it may use.
    pub bounds: Bounds,
}

/// The program of a [`Launch`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// Our own server for files and commands.
    Bundled {
        /// Default and maximum of one command.
        command_timeout: Duration,
        /// Most that is kept of each stream of a command.
        output_bytes: u64,
    },
    /// A command that the sandbox's system has.
    Command(Vec<String>),
    /// A container image with its arguments; only engines can run one.
    Image {
        image: String,
        /// What follows it on the command line.
        arguments: Vec<String>,
    },
}

impl Program {
    /// What our own server is told on its command line; nothing of any other.
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

/// What a program may do with the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It does not see it.
    None,
    /// It can read.
    ReadOnly,
    /// It can read and write.
    ReadWrite,
}

/// What of installed packages a program sees. Where there is an engine, a command that sees some runs in
/// the image that has Node and Python.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Packages {
    /// Nothing.
    #[default]
    None,
    /// It installs them: its workspace is what they come into.
    Installing,
    /// What came into the workspace of that sandbox, read-only at `/packages`.
    Installed(SandboxId),
}

/// How much one started program, with all that it starts, may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub memory_bytes: u64,
    /// Processor time in thousandths of one processor.
    pub cpu_millis: u32,
    pub processes: u32,
    /// The workspace, all of it.
    pub workspace_bytes: u64,
    /// How long it may live; `None` = as long as its owner wants.
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
    /// The home folder of the program: one that it may write to, or most programs end badly.
    pub(in crate::sandbox) fn home(&self) -> &'static str {
        match self.workspace {
            Access::ReadWrite => "/workspace",
            Access::None | Access::ReadOnly => "/tmp",
        }
    }

    /// Refuses what no operating system could take, before anything is started.
    pub(in crate::sandbox) fn check(&self) -> Result<(), Error> {
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
