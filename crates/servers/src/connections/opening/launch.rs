//! Builds the launch of a server's program: its own command or image, its own environment, the workspace only
//! if its entry says so, and the hosts that its entry names.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalogue::entry::{ServerEntry, Source};
use crate::catalogue::installations::Available;
use crate::connections::refused_hosts::RefusedHosts;
use crate::connections::session_reach::SessionReach;
use sepal_core::domain::{
    BUNDLED_SERVER, McpServerConfig, McpTransport, McpWorkspace, SandboxId, TenantId,
};
use sepal_mcp::ClientOffer;
use sepal_net::{self as net, AuthorityError, EdgeSecret, Egress, Guard, Reach, Secrets};
use sepal_sandbox::host::SandboxHost;
use sepal_sandbox::{Access, Bounds, Launch, Packages, Program};

/// The launch of the session's own sandbox.
pub(crate) fn bundled(place: &SandboxHost, sandbox: &SandboxId) -> Launch {
    Launch {
        sandbox: sandbox.clone(),
        packages: Packages::None,
        holder: None,
        server: BUNDLED_SERVER.to_owned(),
        program: Program::Bundled {
            command_timeout: place.command_limit,
            output_bytes: place.output_bytes,
        },
        environment: BTreeMap::new(),
        workspace: Access::ReadWrite,
        egress: None,
        bounds: place.bounds,
    }
}

/// Gives programs network access, and notes the hosts that were refused.
pub(crate) struct Outside {
    /// Keeps the hosts that tenants let servers reach away from our own networks.
    pub guard: Guard,
    pub refused_hosts: RefusedHosts,
}

impl Outside {
    pub(crate) fn new(guard: Guard) -> Self {
        Self {
            guard,
            refused_hosts: RefusedHosts::default(),
        }
    }

    /// Returns the network access of a server that runs for that tenant; `None` if its entry names no hosts.
    /// Hosts of an operator's entry may be at private addresses, as may the address of an operator's remote
    /// server.
    pub(super) fn egress(&self, entry: &ServerEntry, tenant: Option<&TenantId>) -> Option<Egress> {
        let hosts = entry.allowed_hosts();
        if hosts.is_empty() {
            return None;
        }
        let reach = if entry.source.is_of_operators() {
            Reach::Private
        } else {
            Reach::Public
        };
        let mut egress = Egress::new(hosts, reach, self.guard.clone());
        // A trial may have the name of a stored server, and leaves no record there.
        if !entry.is_trial {
            egress.refusals = self.refused_hosts.of_server(tenant, &entry.name);
        }
        Some(egress)
    }

    /// Returns the network access of a session's sandbox: the hosts of the settings, and the hosts that the
    /// session is allowed at the moment of each connection.
    pub(super) fn session_egress(
        &self,
        entry: &ServerEntry,
        tenant: Option<&TenantId>,
        reach: &Arc<SessionReach>,
    ) -> Option<Egress> {
        let grants = reach.begin()?;
        let mut egress = Egress::new(entry.allowed_hosts(), Reach::Private, self.guard.clone());
        let refusals = self.refused_hosts.of_server(tenant, &entry.name);
        egress.refusals = refusals.witnessed(Arc::<SessionReach>::clone(reach));
        egress.grants = Some(grants);
        Some(egress)
    }

    /// Adds the secrets that the proxy inserts into requests, and the certificate authority that the program
    /// has to trust for that.
    pub(super) fn with_secrets(
        launch: &mut Launch,
        secrets: Vec<EdgeSecret>,
    ) -> Result<(), AuthorityError> {
        let Some(egress) = launch.egress.as_mut().filter(|_| !secrets.is_empty()) else {
            return Ok(());
        };
        let secrets = Secrets::new(secrets, net::authorities())?;
        let authority = secrets.authority().to_owned();
        egress.secrets = Some(Arc::new(secrets));
        let name = net::AUTHORITY_VARIABLE.to_owned();
        launch.environment.insert(name, authority);
        Ok(())
    }
}

/// The launch of a server in a sandbox of its own.
pub(crate) fn own(
    entry: &ServerEntry,
    config: &McpServerConfig,
    environment: BTreeMap<String, String>,
    most: &Bounds,
    sandbox: &SandboxId,
) -> Launch {
    Launch {
        sandbox: sandbox.clone(),
        packages: Packages::None,
        holder: None,
        server: entry.name.clone(),
        program: program(config),
        environment,
        workspace: match config.workspace {
            McpWorkspace::None => Access::None,
            McpWorkspace::Ro => Access::ReadOnly,
            McpWorkspace::Rw => Access::ReadWrite,
        },
        egress: None,
        bounds: bounds(entry.source, config, most),
    }
}

/// Replaces the command that asked for a package with the installed program.
pub(crate) fn start_package(
    launch: &mut Launch,
    Available { package, sandbox }: Available,
    config: &McpServerConfig,
    arguments: Vec<String>,
) {
    let words = package.program.into_iter().chain(arguments).collect();
    launch.program = Program::Command(in_folder(config, words));
    for (name, value) in package.environment {
        launch.environment.entry(name).or_insert(value);
    }
    launch.packages = Packages::Installed(sandbox);
}

/// Returns the capabilities that a server is offered: the workspace folder as it sees it in its sandbox, and
/// a model if its entry says so. The bundled server is offered neither.
pub(crate) fn offer(entry: &ServerEntry) -> ClientOffer {
    let is_others = entry.source != Source::Bundled;
    let sees = is_others && !entry.is_remote() && entry.config.workspace != McpWorkspace::None;
    let roots = sees.then(|| "file:///workspace".to_owned());
    ClientOffer {
        roots: roots.into_iter().collect(),
        samples: is_others && entry.config.sampling,
    }
}

fn program(config: &McpServerConfig) -> Program {
    if config.transport() == McpTransport::StdioDocker {
        return Program::Image {
            image: config.container_image.clone().unwrap_or_default(),
            arguments: config.args.clone(),
        };
    }
    let command = config.command.iter().chain(&config.args).cloned();
    Program::Command(in_folder(config, command.collect()))
}

/// Wraps a command so that it starts in the entry's `cwd`.
fn in_folder(config: &McpServerConfig, command: Vec<String>) -> Vec<String> {
    match &config.cwd {
        None => command,
        // The folder is an argument, so the shell does not interpret it.
        Some(cwd) => {
            let below = cwd.trim_start_matches('/');
            let below = below.strip_prefix("workspace").unwrap_or(below);
            let folder = format!("/workspace/{}", below.trim_start_matches('/'));
            let enter = ["/bin/sh", "-c", r#"cd -- "$0" && exec "$@""#].map(str::to_owned);
            enter.into_iter().chain([folder]).chain(command).collect()
        }
    }
}

/// The limits of a server: a tenant's entry may ask for less than the installation gives, an operator's also
/// for more.
fn bounds(source: Source, config: &McpServerConfig, most: &Bounds) -> Bounds {
    let is_free = source.is_of_operators();
    let memory = config.container_memory.map(|mebibytes| mebibytes << 20);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an entry holds it between 0.01 and 256"
    )]
    let cpu = config.container_cpu.map(|cores| (cores * 1_000.0) as u32);
    let within = |asked: u64, most: u64| if is_free { asked } else { asked.min(most) };
    let cpu_most = u64::from(most.cpu_millis);
    let cpu = cpu.map(|asked| within(u64::from(asked), cpu_most));
    Bounds {
        memory_bytes: memory.map_or(most.memory_bytes, |asked| within(asked, most.memory_bytes)),
        cpu_millis: cpu
            .and_then(|millis| u32::try_from(millis).ok())
            .unwrap_or(most.cpu_millis),
        ..*most
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{bounds, program};
    use crate::catalogue::entry::Source;
    use sepal_core::domain::McpServerConfig;
    use sepal_sandbox::{Bounds, Program};

    fn config(config: Value) -> McpServerConfig {
        serde_json::from_value(config).unwrap()
    }

    #[test]
    fn a_tenant_gets_no_more_than_the_installation_gives() {
        let most = Bounds::default();
        let check = |source, memory: u64, cpu: f64, expected: (u64, u32)| {
            let config = config(json!({
                "command": "x", "containerMemory": memory, "containerCpu": cpu,
            }));
            let bounds = bounds(source, &config, &most);
            assert_eq!((bounds.memory_bytes >> 20, bounds.cpu_millis), expected);
        };
        check(Source::Tenant, 2048, 4.0, (512, 500));
        check(Source::Person, 2048, 4.0, (512, 500));
        check(Source::Tenant, 64, 0.1, (64, 100));
        check(Source::Installation, 2048, 4.0, (2048, 4000));
    }

    #[test]
    fn a_folder_to_start_in_is_an_argument_not_a_script() {
        let words = |cwd: &str| match program(&config(json!({"command": "x", "cwd": cwd}))) {
            Program::Command(words) => words,
            Program::Bundled { .. } | Program::Image { .. } => Vec::new(),
        };
        assert_eq!(words("/workspace/a; rm")[3], "/workspace/a; rm");
        assert_eq!(words("b")[3], "/workspace/b");
        assert_eq!(words("/workspace")[3..], ["/workspace/", "x"]);
    }
}
