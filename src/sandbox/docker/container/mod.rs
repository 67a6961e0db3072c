//! The walls, as the engine's words: names, labels and the whole of what a container may do.

mod mounts;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use bollard::models::{ContainerCreateBody, HostConfig, HostConfigLogConfig, ResourcesUlimits};

use crate::domain::{GatewayId, SandboxId};
use crate::sandbox::workspace::trim;
use crate::sandbox::{Access, Launch, Packages, Program, egress};

/// The user inside.
const NOBODY: &str = "65534:65534";
/// Where the bundled server lies in our image.
const SERVER: &str = "/sepal/mcp-server";
/// What becomes of the run that only shows our image to the volume of our programs: nothing.
const NOTHING: &str = "/bin/true";
/// The size of `/tmp` and of `/dev/shm`; both count as memory.
const TEMPORARY_BYTES: i64 = 64 << 20;
/// Open files of one process.
const MAX_OPEN_FILES: i64 = 1024;
/// What of a server's name goes into a container's.
const MAX_SERVER_NAME: usize = 64;

/// The label that says whose a container or volume is.
pub(super) const INSTALLATION: &str = "sepal.installation";
/// The label with the gateway that made it.
pub(super) const GATEWAY: &str = "sepal.life";
/// The label with the sandbox.
pub(super) const SANDBOX: &str = "sepal.sandbox";
const SERVER_LABEL: &str = "sepal.server";
/// Where a server of a session has its name, the run that trims its workspace has this one.
const TRIMMER: &str = "sepal-trim";
/// The same of the container that fills the volume of our programs.
const FILLER: &str = "sepal-programs";
/// Prints of each entry how deep it lies and its blocks, of the workspace itself last.
const COUNT: [&str; 5] = ["find", "/workspace", "-depth", "-printf", "%d %b\\n"];
/// What `sandbox::trim` does where we see the folder: gets the limit and the ceiling, and says
/// something where it deletes.
const TRIM: &str = include_str!("trim.sh");
const VOLUME_PREFIX: &str = "sepal-ws-";

/// Everything that decides a container.
#[derive(Debug)]
pub(super) struct Plan<'p> {
    pub(super) launch: &'p Launch,
    pub(super) installation: &'p str,
    /// The gateway that makes it.
    pub(super) gateway: &'p GatewayId,
    /// The image with the bundled server.
    pub(super) image: &'p str,
    /// The image with Node and Python.
    pub(super) packages_image: &'p str,
    /// The OCI runtime, where it is not the engine's own choice.
    pub(super) runtime: Option<&'p str>,
    /// What is known of the image of other people that a program of ours stands around.
    pub(super) wrapped: Option<&'p Wrapped>,
}

/// An image of other people around whose program one of ours stands.
#[derive(Debug)]
pub(super) struct Wrapped {
    /// Whose volume has our programs.
    pub(super) programs: SandboxId,
    /// What the image runs by itself.
    pub(super) own: OwnCommand,
}

/// What an image runs where nobody says otherwise.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct OwnCommand {
    pub(super) entrypoint: Vec<String>,
    /// What follows the entry point where no arguments are given.
    pub(super) arguments: Vec<String>,
}

/// The volume of a sandbox's workspace.
pub(super) fn volume(sandbox: &SandboxId) -> String {
    format!("{VOLUME_PREFIX}{sandbox}")
}

/// The sandbox whose workspace that volume is.
pub(super) fn sandbox_of_volume(name: &str) -> Option<SandboxId> {
    SandboxId::parse(name.strip_prefix(VOLUME_PREFIX)?)
}

/// The container's name of the bundled server.
pub(super) fn bundled(sandbox: &SandboxId) -> String {
    format!("sepal-sb-{sandbox}")
}

/// The container's name of the run that trims the workspace.
pub(super) fn trimmer(sandbox: &SandboxId) -> String {
    format!("{}-{TRIMMER}", bundled(sandbox))
}

/// The container's name: one for the bundled server, one for each other server of the session.
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

/// The labels of everything that belongs to a sandbox.
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
    /// The labels of everything that belongs to a sandbox.
    pub(super) fn labels(&self) -> HashMap<String, String> {
        labels(self.installation, self.gateway, &self.launch.sandbox)
    }

    /// What the engine is asked to create.
    pub(super) fn body(&self) -> ContainerCreateBody {
        let launch = self.launch;
        let (image, entrypoint, command) = self.program();
        let mut labels = self.labels();
        labels.insert(SERVER_LABEL.to_owned(), launch.server.clone());
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

    /// Image, entry point (where it is not the image's own) and what follows.
    fn program(&self) -> (&str, Option<Vec<String>>, Vec<String>) {
        let mut line = egress::prefix(self.launch, SERVER);
        match &self.launch.program {
            Program::Bundled { .. } => {
                line.push(SERVER.to_owned());
                line.extend(self.launch.program.options());
            }
            Program::Command(words) => line.extend_from_slice(words),
            Program::Image { image, arguments } => {
                let Some(Wrapped { own, .. }) = self.wrapped else {
                    return (image, None, arguments.clone());
                };
                line.extend_from_slice(&own.entrypoint);
                // An engine reads the two in the same way.
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

    /// Other images keep their own folder unless they get the workspace.
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
            // The same: no swap.
            memory_swap: Some(memory),
            nano_cpus: Some(i64::from(bounds.cpu_millis) * 1_000_000),
            pids_limit: Some(i64::from(bounds.processes)),
            network_mode: Some("none".to_owned()),
            readonly_rootfs: Some(true),
            tmpfs: Some(HashMap::from([("/tmp".to_owned(), tmpfs)])),
            shm_size: Some(TEMPORARY_BYTES),
            cap_drop: Some(vec!["ALL".to_owned()]),
            // The default seccomp profile stays in force as long as none is named here.
            security_opt: Some(vec!["no-new-privileges:true".to_owned()]),
            ulimits: Some(self.ulimits()),
            mounts: Some(self.mounts()).filter(|mounts| !mounts.is_empty()),
            // What the server says on stdout is MCP traffic: a log would fill the engine's disk.
            log_config: Some(HostConfigLogConfig {
                typ: Some("none".to_owned()),
                config: None,
            }),
            // Kept until we have read how it ended; see `supervisor`.
            auto_remove: Some(false),
            // The bundled server is an init itself; others may not bury their orphans.
            init: Some(!self.is_own_init()),
            runtime: self.runtime.map(str::to_owned),
            ..HostConfig::default()
        }
    }

    /// Whether our own server is the first process, around the program or by itself.
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

    /// A run that counts the workspace where we cannot see it ourselves: as root without any right
    /// but to look, because a folder may forbid even its owner to look.
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

    /// A run that trims the workspace, as the sandbox itself could.
    pub(super) fn trimming(&self) -> ContainerCreateBody {
        let limit = self.launch.bounds.workspace_bytes;
        let words = ["bash", "-c", TRIM, "trim"].map(str::to_owned);
        let bounds = [limit, trim::ceiling(limit)].map(|bytes| bytes.to_string());
        let command = [words.as_slice(), bounds.as_slice()].concat();
        let (sandbox, access) = (&self.launch.sandbox, Access::ReadWrite);
        self.with(&self.own_run((sandbox, TRIMMER), command, access))
    }

    /// A container that is never started: as it is made, an empty volume takes over what our image has
    /// where it is seen.
    pub(super) fn filling(&self, programs: &SandboxId) -> ContainerCreateBody {
        let nothing = vec![NOTHING.to_owned()];
        let mut body = self.with(&self.own_run((programs, FILLER), nothing, Access::None));
        if let Some(walls) = &mut body.host_config {
            walls.mounts = Some(vec![mounts::programs(programs, false)]);
        }
        body
    }

    /// A run of our own image beside what the plan is for.
    fn own_run(
        &self,
        (sandbox, server): (&SandboxId, &str),
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
