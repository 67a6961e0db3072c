//! Builds the engine's request for a container: names, labels and everything that the container may do.

mod mounts;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use bollard::models::{ContainerCreateBody, HostConfig, HostConfigLogConfig, ResourcesUlimits};

use crate::workspace::trim;
use crate::{Access, Launch, Packages, Program, egress};
use sepal_core::domain::{GatewayId, SandboxId};

/// The user inside.
const NOBODY: &str = "65534:65534";
/// The path of the bundled server in our image.
const SERVER: &str = "/sepal/mcp-server";
/// The command of the container that only fills the volume of our programs; it is never started.
const NOTHING: &str = "/bin/true";
/// The size of `/tmp` and of `/dev/shm`; both count as memory.
const TEMPORARY_BYTES: i64 = 64 << 20;
/// The most open files of one process.
const MAX_OPEN_FILES: i64 = 1024;
/// The most characters of a server's name in a container's name.
const MAX_SERVER_NAME: usize = 64;

/// The label with the installation that a container or volume belongs to.
pub(super) const INSTALLATION: &str = "sepal.installation";
/// The label with the gateway that created it.
pub(super) const GATEWAY: &str = "sepal.life";
/// The label with the sandbox.
pub(super) const SANDBOX: &str = "sepal.sandbox";
const SERVER_LABEL: &str = "sepal.server";
/// The name of the trimming container, in the place of a server's name.
const TRIMMER: &str = "sepal-trim";
/// The name of the container that fills the volume of our programs.
const FILLER: &str = "sepal-programs";
/// Prints the depth and the blocks of each entry, of the workspace itself last.
const COUNT: [&str; 5] = ["find", "/workspace", "-depth", "-printf", "%d %b\\n"];
/// Does the same as `sandbox::trim` for a folder that is not visible here: takes the limit and the ceiling as
/// arguments, and prints something if it deletes.
const TRIM: &str = include_str!("trim.sh");
const VOLUME_PREFIX: &str = "sepal-ws-";

/// The inputs that determine a container.
#[derive(Debug)]
pub(super) struct Plan<'p> {
    pub(super) launch: &'p Launch,
    pub(super) installation: &'p str,
    /// The gateway that creates the container.
    pub(super) gateway: &'p GatewayId,
    /// The image with the bundled server.
    pub(super) image: &'p str,
    /// The image with Node and Python.
    pub(super) packages_image: &'p str,
    /// The OCI runtime, if it is not the engine's default.
    pub(super) runtime: Option<&'p str>,
    /// The details of a third-party image whose program one of ours wraps.
    pub(super) wrapped: Option<&'p WrappedImage>,
    /// True if the container is none of a gateway's, whose janitor would remove it.
    pub(super) is_beside: bool,
}

/// A third-party image whose program one of ours wraps.
#[derive(Debug)]
pub(super) struct WrappedImage {
    /// The sandbox id whose volume holds our programs.
    pub(super) programs: SandboxId,
    /// The command that the image runs by default.
    pub(super) own: OwnCommand,
}

/// The command that an image runs by default.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct OwnCommand {
    pub(super) entrypoint: Vec<String>,
    /// The arguments that follow the entry point by default.
    pub(super) arguments: Vec<String>,
}

/// Returns the name of the volume of a sandbox's workspace.
pub(super) fn volume(sandbox: &SandboxId) -> String {
    format!("{VOLUME_PREFIX}{sandbox}")
}

/// Returns the sandbox whose workspace the volume is.
pub(super) fn sandbox_of_volume(name: &str) -> Option<SandboxId> {
    SandboxId::parse(name.strip_prefix(VOLUME_PREFIX)?)
}

/// Returns the container name of the bundled server.
pub(super) fn bundled(sandbox: &SandboxId) -> String {
    format!("sepal-sb-{sandbox}")
}

/// Returns the container name of the trimming run.
pub(super) fn trimmer(sandbox: &SandboxId) -> String {
    format!("{}-{TRIMMER}", bundled(sandbox))
}

/// Returns the container name: one for the bundled server, one for each other server of the session.
pub(super) fn name(launch: &Launch) -> String {
    let sandbox = &launch.sandbox;
    if matches!(launch.program, Program::Bundled { .. }) {
        return bundled(sandbox);
    }
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    let letters = launch.server.chars().filter(|letter| is_plain(*letter));
    let server: String = letters.take(MAX_SERVER_NAME).collect();
    format!("sepal-sb-{sandbox}-{server}")
}

/// Returns the labels of everything that belongs to a sandbox.
pub(super) fn labels(
    installation: &str,
    gateway: &GatewayId,
    sandbox: &SandboxId,
) -> HashMap<String, String> {
    [
        (INSTALLATION, installation),
        (GATEWAY, gateway.as_str()),
        (SANDBOX, sandbox.as_str()),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

impl Plan<'_> {
    /// Returns the labels of everything that belongs to the sandbox.
    pub(super) fn labels(&self) -> HashMap<String, String> {
        labels(self.installation, self.gateway, &self.launch.sandbox)
    }

    /// Returns the engine's request to create the container.
    pub(super) fn body(&self) -> ContainerCreateBody {
        let launch = self.launch;
        let (image, entrypoint, command) = self.program();
        let mut labels = self.labels();
        labels.insert(SERVER_LABEL.to_owned(), launch.server.clone());
        if self.is_beside {
            let beside = format!("{}-beside", self.installation);
            labels.insert(INSTALLATION.to_owned(), beside);
        }
        ContainerCreateBody {
            hostname: Some("sandbox".to_owned()),
            user: Some(NOBODY.to_owned()),
            image: Some(image.to_owned()),
            entrypoint,
            cmd: Some(command),
            env: Some(self.environment()),
            labels: Some(labels),
            working_dir: self.working_dir(),
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            open_stdin: Some(true),
            stdin_once: Some(true),
            tty: Some(false),
            network_disabled: Some(true),
            stop_timeout: Some(1),
            host_config: Some(self.walls()),
            ..ContainerCreateBody::default()
        }
    }

    /// Returns the image, the entry point (`None` = the image's own) and its arguments.
    fn program(&self) -> (&str, Option<Vec<String>>, Vec<String>) {
        let mut line = egress::prefix(self.launch, SERVER);
        match &self.launch.program {
            Program::Bundled { .. } => {
                line.push(SERVER.to_owned());
                line.extend(self.launch.program.options());
            }
            Program::Command(words) => line.extend_from_slice(words),
            Program::Image { image, arguments } => {
                let Some(WrappedImage { own, .. }) = self.wrapped else {
                    return (image, None, arguments.clone());
                };
                line.extend_from_slice(&own.entrypoint);
                // An engine treats the two in the same way.
                let is_own = arguments.is_empty();
                line.extend_from_slice(if is_own { &own.arguments } else { arguments });
            }
        }
        let (first, rest) = line.split_at(line.len().min(1));
        (self.image(), Some(first.to_vec()), rest.to_vec())
    }

    fn image(&self) -> &str {
        if let Program::Image { image, .. } = &self.launch.program {
            return image;
        }
        match self.launch.packages {
            Packages::None => self.image,
            Packages::Installing | Packages::Installed(_) => self.packages_image,
        }
    }

    fn environment(&self) -> Vec<String> {
        let own = [
            ("HOME", self.launch.home()),
            ("LANG", "C.UTF-8"),
            ("TERM", "dumb"),
            ("USER", "nobody"),
        ];
        let given = self.launch.environment.iter();
        let given = given.map(|(name, value)| (name.as_str(), value.as_str()));
        // Of two equal names the engine takes the last.
        own.into_iter()
            .chain(given)
            .map(|(name, value)| format!("{name}={value}"))
            .collect()
    }

    /// Third-party images keep their own working folder unless they get the workspace.
    fn working_dir(&self) -> Option<String> {
        let is_foreign = matches!(self.launch.program, Program::Image { .. });
        let sees_workspace = self.launch.workspace != Access::None;
        (sees_workspace || !is_foreign).then(|| "/workspace".to_owned())
    }

    fn walls(&self) -> HostConfig {
        let bounds = &self.launch.bounds;
        let memory = i64::try_from(bounds.memory_bytes).unwrap_or(i64::MAX);
        let tmpfs = format!("rw,exec,nosuid,nodev,size={TEMPORARY_BYTES},mode=1777");
        HostConfig {
            memory: Some(memory),
            // The same value: no swap.
            memory_swap: Some(memory),
            nano_cpus: Some(i64::from(bounds.cpu_millis) * 1_000_000),
            pids_limit: Some(i64::from(bounds.processes)),
            network_mode: Some("none".to_owned()),
            readonly_rootfs: Some(true),
            tmpfs: Some(HashMap::from([("/tmp".to_owned(), tmpfs)])),
            shm_size: Some(TEMPORARY_BYTES),
            cap_drop: Some(vec!["ALL".to_owned()]),
            // The default seccomp profile stays in force as long as no other is named here.
            security_opt: Some(vec!["no-new-privileges:true".to_owned()]),
            ulimits: Some(self.ulimits()),
            mounts: Some(self.mounts()).filter(|mounts| !mounts.is_empty()),
            // The server's stdout is MCP traffic: a log would fill the engine's disk.
            log_config: Some(HostConfigLogConfig {
                typ: Some("none".to_owned()),
                config: None,
            }),
            // Kept until we have read how it ended; see `supervisor`.
            auto_remove: Some(false),
            // The bundled server is an init itself; others may not reap orphaned processes.
            init: Some(!self.is_own_init()),
            runtime: self.runtime.map(str::to_owned),
            ..HostConfig::default()
        }
    }

    /// Returns true if our own server is the first process, as the program or as its wrapper.
    fn is_own_init(&self) -> bool {
        let is_ours = matches!(self.launch.program, Program::Bundled { .. });
        is_ours || self.launch.egress.is_some()
    }

    fn ulimits(&self) -> Vec<ResourcesUlimits> {
        let file = i64::try_from(self.launch.bounds.workspace_bytes).unwrap_or(i64::MAX);
        [("nofile", MAX_OPEN_FILES), ("fsize", file), ("core", 0)]
            .into_iter()
            .map(|(name, most)| ResourcesUlimits {
                name: Some(name.to_owned()),
                soft: Some(most),
                hard: Some(most),
            })
            .collect()
    }

    /// Returns a container that measures the workspace if it is not visible here: it runs as root with no
    /// right but to read, because a folder may be closed even to its owner.
    pub(super) fn measuring(&self) -> ContainerCreateBody {
        let mut body = self.body();
        body.image = Some(self.image.to_owned());
        body.user = Some("0:0".to_owned());
        body.entrypoint = Some(vec!["/usr/bin/env".to_owned()]);
        body.cmd = Some(COUNT.map(str::to_owned).to_vec());
        body.env = None;
        if let Some(walls) = &mut body.host_config {
            walls.cap_add = Some(vec!["DAC_READ_SEARCH".to_owned()]);
            walls.mounts = self.workspace().map(|mount| vec![mount]);
            for mount in walls.mounts.iter_mut().flatten() {
                mount.read_only = Some(true);
            }
        }
        body
    }

    /// Returns a container that trims the workspace with the rights of the sandbox itself.
    pub(super) fn trimming(&self) -> ContainerCreateBody {
        let limit = self.launch.bounds.workspace_bytes;
        let words = ["bash", "-c", TRIM, "trim"].map(str::to_owned);
        let bounds = [limit, trim::ceiling(limit)].map(|bytes| bytes.to_string());
        let command = [words.as_slice(), bounds.as_slice()].concat();
        let (sandbox, access) = (&self.launch.sandbox, Access::ReadWrite);
        self.with(&self.own_run(sandbox, TRIMMER, command, access))
    }

    /// Returns a container that is never started: when it is created, an empty volume is filled with the
    /// files that our image has at its mount point.
    pub(super) fn filling(&self, programs: &SandboxId) -> ContainerCreateBody {
        let nothing = vec![NOTHING.to_owned()];
        let mut body = self.with(&self.own_run(programs, FILLER, nothing, Access::None));
        if let Some(walls) = &mut body.host_config {
            walls.mounts = Some(vec![mounts::programs(programs, false)]);
        }
        body
    }

    /// Returns a launch of our own image beside the one that the plan is for.
    fn own_run(
        &self,
        sandbox: &SandboxId,
        server: &str,
        command: Vec<String>,
        workspace: Access,
    ) -> Launch {
        Launch {
            sandbox: sandbox.clone(),
            packages: Packages::None,
            holder: None,
            server: server.to_owned(),
            program: Program::Command(command),
            environment: BTreeMap::new(),
            workspace,
            egress: None,
            bounds: self.launch.bounds,
        }
    }

    fn with(&self, launch: &Launch) -> ContainerCreateBody {
        let plan = Plan {
            launch,
            wrapped: None,
            ..*self
        };
        plan.body()
    }
}
