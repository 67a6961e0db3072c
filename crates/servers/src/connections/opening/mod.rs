//! Opens a connection from an entry: fills in references, starts the server in a sandbox of its own or calls
//! a remote address, and performs the handshake.

mod ending;
mod failure;
mod filling;
pub(crate) mod launch;
mod opened;
mod reason;
mod secret;
mod started;
mod stderr;

pub(crate) use self::failure::Failure;
pub use self::opened::Opened;
pub(crate) use self::secret::{secret_context, secret_name};

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio_util::task::TaskTracker;

use self::ending::Ending;
use self::failure::{Cause, failure};
use self::started::{Started, Streams};
use self::stderr::{Said, ServerLog};
use super::logs::Logs;
use super::session_reach::SessionReach;
use crate::authorization::{ClientGrants, Grants};
use crate::catalogue::entry::{ServerEntry, Source};
use crate::catalogue::installations::Installations;
use sepal_core::domain::{Holder, McpTransport, SandboxId, SandboxKind, TenantId, Tool};
use sepal_mcp::config::{Expanded, as_image, package_of};
use sepal_mcp::{self as mcp, Cleaner, Connection, Remote};
use sepal_net::HostMask;
use sepal_sandbox::host::SandboxHost;
use sepal_sandbox::{self as sandbox, Launch, Life, Packages, ProgramEnd, Running};
use sepal_store::{Records, Sealer};

/// The time to wait for the reason why a sandbox ended after its stream has ended.
const END_GRACE: Duration = Duration::from_secs(2);
/// The number of last stderr lines that a failure contains.
const LAST_LINES: usize = 50;

/// The HTTP clients for remote servers.
#[derive(Clone)]
pub struct Clients {
    /// For the operator's entries: reaches any address that the machine reaches.
    pub open: reqwest::Client,
    /// For tenants' entries: cannot reach our own networks.
    pub guarded: reqwest::Client,
}

/// A step of an opening.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// `start`, `handshake` or `tools`.
    pub name: &'static str,
    /// The duration of the step.
    pub ms: u64,
    pub error: Option<String>,
}

/// Opens connections.
pub(crate) struct Opener {
    pub place: Arc<SandboxHost>,
    /// The installed packages of servers.
    pub installations: Arc<Installations>,
    pub clients: Clients,
    pub environment: Arc<BTreeMap<String, String>>,
    pub records: Records,
    pub sealer: Sealer,
    pub logs: Arc<Logs>,
    /// Gives programs their network access, and notes refused hosts.
    pub outside: launch::Outside,
    pub tasks: TaskTracker,
    /// The grants of people at remote servers.
    pub grants: Grants,
    /// The tokens of entries that connect by themselves.
    pub client_grants: ClientGrants,
}

/// For whom and where a server is opened.
#[derive(Clone, Copy)]
pub(crate) struct ServerLocation<'a> {
    /// The tenant whose logs and health the server belongs to; `None` for a probe of the installation itself.
    pub tenant: Option<&'a TenantId>,
    /// The holder whose share the sandbox counts against; `None` for a probe of the gateway.
    pub holder: Option<&'a Holder>,
    /// The person whose tokens the server is sent; `None` for a probe in nobody's name.
    pub person: Option<&'a Holder>,
    /// The sandbox whose workspace the server may see.
    pub sandbox: &'a SandboxId,
    /// The secrets of a trial, which reads no others.
    pub secrets: Option<&'a BTreeMap<String, String>>,
    /// The hosts that the session was allowed to reach; `None` if this is not a session's own sandbox.
    pub reach: Option<&'a Arc<SessionReach>>,
}

impl Opener {
    /// Opens a server. Each phase is added to `phases` when it ends.
    pub(crate) async fn open(
        &self,
        entry: &ServerEntry,
        place: ServerLocation<'_>,
        phases: &mut Vec<Phase>,
    ) -> Result<Opened, Failure> {
        let mut cleaner = Cleaner::default();
        let said = Said::default();
        let begun = Instant::now();
        let started = self.start(entry, place, &mut cleaner, &said).await;
        let started = noted(phases, "start", begun, &cleaner, started);
        let started = match started {
            Ok(started) => started,
            Err(cause) => return Err(failure(&cause, &cleaner, &said, entry)),
        };
        let image = started.image();
        let begun = Instant::now();
        let beginning = self.begin(entry, place, started, &mut cleaner, &said);
        let (life, shaken) = beginning.await;
        let mut shaken = noted(phases, "handshake", begun, &cleaner, shaken);
        if shaken.is_err()
            && let Some(life) = &life
        {
            // The program may have ended by itself; then its exit status is the better message.
            let ended = tokio::time::timeout(END_GRACE / 4, life.ended()).await;
            if let Ok(
                ended @ (ProgramEnd::Exited(_)
                | ProgramEnd::Signalled(_)
                | ProgramEnd::OverMemory(_)),
            ) = ended
            {
                let reason = ended.to_string();
                let server = entry.name.clone();
                shaken = Err(mcp::Error::Handshake { server, reason }.into());
            }
        }
        match shaken {
            Ok(connection) => {
                if let Some(lines) = connection.take_log() {
                    let log = self.log(entry, place.tenant);
                    self.tasks
                        .spawn(said.clone().hear(lines, cleaner.clone(), log));
                }
                Ok(Opened {
                    connection,
                    life: Mutex::new(life),
                    said,
                    cleaner,
                    image,
                    ending: Ending::default(),
                })
            }
            Err(cause) => {
                if let Some(life) = life {
                    life.kill().await;
                }
                said.drained().await;
                Err(failure(&cause, &cleaner, &said, entry))
            }
        }
    }

    /// Lists the tools of an open server; if that fails, ends the server.
    pub(crate) async fn list(
        &self,
        entry: &ServerEntry,
        opened: &Opened,
        phases: &mut Vec<Phase>,
    ) -> Result<Vec<Tool>, Failure> {
        let begun = Instant::now();
        let listed = opened.connection.tools().await.map_err(Cause::from);
        let listed = noted(phases, "tools", begun, &opened.cleaner, listed);
        match listed {
            Ok(tools) => Ok(tools),
            Err(cause) => {
                opened.kill().await;
                opened.said.drained().await;
                Err(failure(&cause, &opened.cleaner, &opened.said, entry))
            }
        }
    }

    async fn start(
        &self,
        entry: &ServerEntry,
        place: ServerLocation<'_>,
        cleaner: &mut Cleaner,
        said: &Said,
    ) -> Result<Started, Cause> {
        if entry.source == Source::Bundled {
            return self.start_bundled(entry, place, said).await;
        }
        let config = as_image(&entry.config).map_err(Cause::Entry)?;
        let Expanded {
            environment,
            headers,
            url,
            client_secret,
            secrets,
            edge,
        } = self.expand(entry, &config, place.secrets).await?;
        *cleaner = Cleaner::new(&secrets);
        match config.transport() {
            McpTransport::Http | McpTransport::Sse => {
                let url = url.unwrap_or_default();
                let authorizer = self.authorizer(entry, &url, client_secret, place.person);
                let remote = Remote {
                    url,
                    headers,
                    authorizer,
                };
                Ok(match config.transport() {
                    McpTransport::Sse => Started::OldRemote(remote),
                    McpTransport::Http | McpTransport::Stdio | McpTransport::StdioDocker => {
                        Started::Remote(remote)
                    }
                })
            }
            McpTransport::StdioDocker
                if self.place.is_on() && self.place.runtime.kind() != SandboxKind::Docker =>
            {
                Err(Cause::Unsupported(
                    "an image needs a Docker engine, and the sandboxes of this installation \
                     run without one; use transport `stdio`, or set `sandbox.driver` to `docker`",
                ))
            }
            McpTransport::Stdio | McpTransport::StdioDocker => {
                let most = &self.place.bounds;
                let mut launch = Launch {
                    holder: place.holder.cloned(),
                    egress: self.outside.egress(entry, place.tenant),
                    ..launch::own(entry, &config, environment, most, place.sandbox)
                };
                if let Some(egress) = &mut launch.egress {
                    egress.mask = HostMask::new(&secrets);
                }
                launch::Outside::with_secrets(&mut launch, edge)?;
                if let Some(command) = package_of(&config).map_err(Cause::Entry)? {
                    let spec = &command.spec;
                    let available = self.installations.available(entry, spec).await?;
                    launch::start_package(&mut launch, available, &config, command.arguments);
                }
                let running = self.run(launch).await?;

                Ok(Started::Running(self.listen(
                    entry,
                    place,
                    running,
                    cleaner.clone(),
                    said,
                )))
            }
        }
    }

    async fn start_bundled(
        &self,
        entry: &ServerEntry,
        place: ServerLocation<'_>,
        said: &Said,
    ) -> Result<Started, Cause> {
        let launch = Launch {
            holder: place.holder.cloned(),
            egress: match place.reach {
                Some(reach) => self.outside.session_egress(entry, place.tenant, reach),
                None => self.outside.egress(entry, place.tenant),
            },
            ..launch::bundled(&self.place, place.sandbox)
        };
        let running = self.place.runtime.start(launch).await?;

        Ok(Started::Running(self.listen(
            entry,
            place,
            running,
            Cleaner::default(),
            said,
        )))
    }

    async fn run(&self, launch: Launch) -> Result<Running, Cause> {
        let packages = launch.packages.clone();
        let started = self.place.runtime.start(launch).await;
        if let (Err(sandbox::Error::NoPackages), Packages::Installed(sandbox)) =
            (&started, &packages)
        {
            self.installations.lost(sandbox).await?;
        }
        Ok(started?)
    }

    /// Stores the server's stderr for as long as it runs.
    fn listen(
        &self,
        entry: &ServerEntry,
        place: ServerLocation<'_>,
        running: Running,
        cleaner: Cleaner,
        said: &Said,
    ) -> Streams {
        let Running {
            stdin,
            stdout,
            stderr,
            image,
            life,
        } = running;
        let log = self.log(entry, place.tenant);
        self.tasks.spawn(said.listen(stderr, cleaner, log));
        Streams {
            stdin,
            stdout,
            image,
            life,
        }
    }

    /// Returns the log of a server, for the tenant that started it.
    fn log(&self, entry: &ServerEntry, tenant: Option<&TenantId>) -> ServerLog {
        ServerLog {
            logs: (!entry.is_trial).then(|| Arc::clone(&self.logs)),
            tenant: tenant.cloned(),
            server: entry.name.clone(),
        }
    }

    /// Performs the handshake. A server that does not know the `initialize` handshake is started once more
    /// and opened by discovery.
    async fn begin(
        &self,
        entry: &ServerEntry,
        place: ServerLocation<'_>,
        started: Started,
        cleaner: &mut Cleaner,
        said: &Said,
    ) -> (Option<Life>, Result<Connection, Cause>) {
        match self.shake_hands(entry, started, cleaner, true).await {
            (Some(life), Err(Cause::Server(mcp::Error::NoHandshake { .. }))) => {
                life.kill().await;
                match self.start(entry, place, cleaner, said).await {
                    Ok(again) => self.shake_hands(entry, again, cleaner, false).await,
                    Err(cause) => (None, Err(cause)),
                }
            }
            begun => begun,
        }
    }

    async fn shake_hands(
        &self,
        entry: &ServerEntry,
        started: Started,
        cleaner: &Cleaner,
        has_handshake: bool,
    ) -> (Option<Life>, Result<Connection, Cause>) {
        let offer = launch::offer(entry);
        let (life, opened) = match started {
            Started::Running(Streams {
                stdin,
                stdout,
                image: _,
                life,
            }) => {
                let opened = if has_handshake {
                    Connection::open(&entry.name, stdout, stdin, offer).await
                } else {
                    Connection::open_discovered(&entry.name, stdout, stdin, offer).await
                };
                (Some(life), opened)
            }
            Started::Remote(remote) => {
                let client = self.client(entry);
                let opened = Connection::open_http(&entry.name, client, &remote, offer).await;
                (None, opened)
            }
            Started::OldRemote(remote) => {
                let client = self.client(entry);
                let opened = Connection::open_sse(&entry.name, client, &remote, offer).await;
                (None, opened)
            }
        };
        let opened = opened.map(|it| it.cleaned_by(cleaner.clone()));
        (life, opened.map_err(Cause::from))
    }
}

fn noted<T>(
    phases: &mut Vec<Phase>,
    name: &'static str,
    begun: Instant,
    cleaner: &Cleaner,
    result: Result<T, Cause>,
) -> Result<T, Cause> {
    phases.push(Phase {
        name,
        ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        error: result
            .as_ref()
            .err()
            .map(|cause| cleaner.clean(&cause.to_string())),
    });
    result
}
