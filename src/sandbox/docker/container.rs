//! The walls, as the engine's words: names, labels and the whole of what a container may do.

use std::collections::{BTreeMap, HashMap};

use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigLogConfig, Mount, MountType, ResourcesUlimits,
};

use crate::domain::{GatewayId, SandboxId};
use crate::sandbox::workspace::trim;
use crate::sandbox::{Access, Launch, Packages, Program, egress};

/// The user inside.
const NOBODY: &str = "65534:65534";
/// Where the bundled server lies in our image.
const SERVER: &str = "/sepal/mcp-server";
/// Where installed packages are seen.
const PACKAGES: &str = "/packages";
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
            Program::Image { image, arguments } => return (image, None, arguments.clone()),
        }
        let (first, rest) = line.split_at(line.len().min(1));
        let image = match self.launch.packages {
            Packages::None => self.image,
            Packages::Installing | Packages::Installed(_) => self.packages_image,
        };
        (image, Some(first.to_vec()), rest.to_vec())
    }

    fn environment(&self) -> Vec<String> {
        let own = [
            ("HOME", "/workspace"),
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

    fn mounts(&self) -> Vec<Mount> {
        let packages = match &self.launch.packages {
            Packages::None | Packages::Installing => None,
            Packages::Installed(sandbox) => Some(Mount {
                target: Some(PACKAGES.to_owned()),
                source: Some(volume(sandbox)),
                typ: Some(MountType::VOLUME),
                read_only: Some(true),
                ..Mount::default()
            }),
        };
        self.workspace().into_iter().chain(packages).collect()
    }

    fn workspace(&self) -> Option<Mount> {
        let is_read_only = match self.launch.workspace {
            Access::None => return None,
            Access::ReadOnly => true,
            Access::ReadWrite => false,
        };
        Some(Mount {
            target: Some("/workspace".to_owned()),
            source: Some(volume(&self.launch.sandbox)),
            typ: Some(MountType::VOLUME),
            read_only: Some(is_read_only),
            ..Mount::default()
        })
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
        let launch = Launch {
            sandbox: self.launch.sandbox.clone(),
            packages: Packages::None,
            holder: None,
            server: TRIMMER.to_owned(),
            program: Program::Command([words.as_slice(), bounds.as_slice()].concat()),
            environment: BTreeMap::new(),
            workspace: Access::ReadWrite,
            egress: None,
            bounds: self.launch.bounds,
        };
        let plan = Plan {
            launch: &launch,
            ..*self
        };
        plan.body()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sandbox::Bounds;

    fn launch(program: Program, workspace: Access) -> Launch {
        Launch {
            sandbox: SandboxId::from_bits(7),
            packages: Packages::None,
            holder: None,
            server: "git/hub one".to_owned(),
            program,
            environment: BTreeMap::from([("TOKEN".to_owned(), "hush".to_owned())]),
            workspace,
            egress: None,
            bounds: Bounds::default(),
        }
    }

    fn bundled() -> Program {
        Program::Bundled {
            command_timeout: Duration::from_secs(30),
            output_bytes: 1 << 20,
        }
    }

    fn body(launch: &Launch) -> ContainerCreateBody {
        let gateway = GatewayId::from("first");
        let plan = Plan {
            launch,
            installation: "house",
            gateway: &gateway,
            image: "sepal/sandbox:1",
            packages_image: "sepal/packages:1",
            runtime: None,
        };
        plan.body()
    }

    /// The whole request: a wall that falls shows in this file's history.
    #[test]
    fn what_the_engine_is_asked_for_the_bundled_server() {
        let body = body(&launch(bundled(), Access::ReadWrite));
        // Maps in it have no order of their own.
        let ordered = serde_json::to_value(&body).unwrap();
        insta::assert_json_snapshot!(ordered);
    }

    #[test]
    fn names_are_of_the_contract_and_cannot_be_abused() {
        let bundled = launch(bundled(), Access::ReadWrite);
        let sandbox = bundled.sandbox.clone();
        assert_eq!(name(&bundled), format!("sepal-sb-{sandbox}"));
        let other = launch(Program::Command(vec!["x".to_owned()]), Access::None);
        assert_eq!(name(&other), format!("sepal-sb-{sandbox}-githubone"));
        assert_eq!(volume(&sandbox), format!("sepal-ws-{sandbox}"));
        assert_eq!(sandbox_of_volume(&volume(&sandbox)), Some(sandbox));
        assert_eq!(sandbox_of_volume("sepal-ws-../../etc"), None);
    }

    #[test]
    fn the_workspace_is_mounted_as_the_launch_says() {
        let mount = |access| {
            let body = body(&launch(bundled(), access));
            let mounts = body.host_config.unwrap().mounts.unwrap_or_default();
            mounts.first().map(|mount| mount.read_only)
        };
        assert_eq!(mount(Access::None), None);
        assert_eq!(mount(Access::ReadOnly), Some(Some(true)));
        assert_eq!(mount(Access::ReadWrite), Some(Some(false)));
    }

    #[test]
    fn an_image_keeps_its_entry_point_and_gets_the_same_walls() {
        let program = Program::Image {
            image: "mcp/time".to_owned(),
            arguments: vec!["--utc".to_owned()],
        };
        let foreign = body(&launch(program, Access::None));
        let own = body(&launch(bundled(), Access::None));
        assert_eq!(foreign.image.as_deref(), Some("mcp/time"));
        assert_eq!((foreign.entrypoint, foreign.working_dir), (None, None));
        assert_eq!(foreign.user, own.user);
        let walls = |body: Option<HostConfig>| HostConfig {
            init: None,
            ..body.unwrap()
        };
        assert_eq!(walls(foreign.host_config), walls(own.host_config));
    }
}
