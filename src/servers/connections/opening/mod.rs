//! From an entry to an open connection: references filled in, a place of its own started or a
//! remote address called, hands shaken.

mod ending;
mod failure;
pub(in crate::servers) mod launch;
mod reason;
mod secret;
mod started;
mod stderr;

pub(crate) use self::failure::Failure;
pub(crate) use self::secret::{secret_context, secret_name};

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::task::TaskTracker;

use self::ending::Ending;
use self::failure::{Cause, failure};
use self::started::{Started, Streams};
use self::stderr::Said;
use super::logs::Logs;
use crate::domain::{
    Holder, McpServerConfig, McpTransport, SandboxId, SandboxKind, TenantId, Tool,
};
use crate::mcp::config::{Expanded, References, as_image, as_written, expand};
use crate::mcp::{self, Cleaner, Connection, Remote};
use crate::sandbox::host::SandboxHost;
use crate::sandbox::{Ended, ImageId, Launch, Life, Running, Using};
use crate::servers::catalogue::entry::{ServerEntry, Source};
use crate::store::{self, Records, Sealer};

/// How long a place whose stream ended may take until it is known why.
const END_GRACE: Duration = Duration::from_secs(2);
/// Lines of stderr that go with a failure.
const LAST_LINES: usize = 50;

/// The HTTP clients for remote servers.
#[derive(Clone)]
pub struct Clients {
    /// For the operator's entries: reaches whatever the machine reaches.
    pub open: reqwest::Client,
    /// For tenants' entries: never our own networks.
    pub guarded: reqwest::Client,
}

/// One step of an opening.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// `start`, `handshake` or `tools`.
    pub name: &'static str,
    /// How long it took.
    pub ms: u64,
    pub error: Option<String>,
}

/// Opens connections.
pub(crate) struct Opener {
    pub(crate) place: Arc<SandboxHost>,
    pub(crate) clients: Clients,
    pub(crate) environment: Arc<BTreeMap<String, String>>,
    pub(crate) records: Records,
    pub(crate) sealer: Sealer,
    pub(crate) logs: Arc<Logs>,
    /// What programs reach, and were refused.
    pub(crate) outside: launch::Outside,
    pub(crate) tasks: TaskTracker,
}

/// For whom a server is opened, and where.
#[derive(Clone, Copy)]
pub(crate) struct ServerLocation<'a> {
    /// Whose logs and health it goes to; none for the installation's own look.
    pub(crate) tenant: Option<&'a TenantId>,
    /// For whom what it runs in is counted; none for what the gateway itself wants to know.
    pub(crate) holder: Option<&'a Holder>,
    /// Whose workspace it may see.
    pub(crate) sandbox: &'a SandboxId,
    /// Secrets of a trial: the only ones that it reads.
    pub(crate) secrets: Option<&'a BTreeMap<String, String>>,
}

/// An open connection with what it runs in. Dropping it ends both.
pub(crate) struct Opened {
    pub(crate) connection: Connection,
    /// Taken by whoever ends it. Never held across an await.
    life: Mutex<Option<Life>>,
    said: Said,
    cleaner: Cleaner,
    /// The content that it was started from, where something names it.
    pub(crate) image: Option<ImageId>,
    ending: Ending,
}

impl Opened {
    /// Ends everything inside and waits for it.
    pub(crate) async fn kill(&self) {
        let life = self.take_life();
        if let Some(life) = life {
            life.kill().await;
        }
    }

    /// Uses what it runs in, so that it is not ended for lying idle; `None` if that has happened.
    pub(crate) fn hold(&self) -> Option<Using> {
        match &mut *self.life.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(life) => life.using(),
            // A remote server, or one that is closed: that shows in its connection.
            None => Some(Using::default()),
        }
    }

    /// Why it ended, if it has; `None` for a remote server.
    pub(crate) async fn ended(&self) -> Option<Ended> {
        let ended = match &*self.life.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(life) => life.ended(),
            None => return None,
        };
        let ended = tokio::time::timeout(END_GRACE, ended).await;
        Some(ended.unwrap_or(Ended::Lost))
    }

    /// The last lines of stderr.
    pub(crate) fn last_words(&self) -> Vec<String> {
        self.said.last()
    }

    fn take_life(&self) -> Option<Life> {
        let mut life = self.life.lock().unwrap_or_else(PoisonError::into_inner);
        life.take()
    }
}

impl Opener {
    /// Opens a server. Each phase is noted as it ends.
    pub(crate) async fn open(
        &self,
        entry: &ServerEntry,
        place: ServerLocation<'_>,
        phases: &mut Vec<Phase>,
    ) -> Result<Opened, Failure> {
        let mut cleaner = Cleaner::default();
        let said = Said::default();
        let begun = Instant::now();
        let started = self.start(entry, place, (&mut cleaner, &said)).await;
        let started = noted(phases, "start", begun, &cleaner, started);
        let started = match started {
            Ok(started) => started,
            Err(cause) => return Err(failure(&cause, &cleaner, &said, entry)),
        };
        let image = started.image();
        let begun = Instant::now();
        let (life, shaken) = self.shake_hands(entry, started, &cleaner).await;
        let mut shaken = noted(phases, "handshake", begun, &cleaner, shaken);
        if shaken.is_err()
            && let Some(life) = &life
        {
            // It may have ended by itself; then that is the better news.
            let ended = tokio::time::timeout(END_GRACE / 4, life.ended()).await;
            if let Ok(ended @ (Ended::Exited(_) | Ended::Signalled(_) | Ended::OverMemory(_))) =
                ended
            {
                let reason = ended.to_string();
                let server = entry.name.clone();
                shaken = Err(mcp::Error::Handshake { server, reason }.into());
            }
        }
        match shaken {
            Ok(connection) => {
                if let Some(log) = connection.take_log() {
                    let keep = (
                        Arc::clone(&self.logs),
                        place.tenant.cloned(),
                        entry.name.clone(),
                    );
                    self.tasks
                        .spawn(said.clone().hear(log, cleaner.clone(), keep));
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

    /// Lists what an open server offers.
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
        (cleaner, said): (&mut Cleaner, &Said),
    ) -> Result<Started, Cause> {
        if entry.source == Source::Bundled {
            let launch = Launch {
                holder: place.holder.cloned(),
                egress: self.outside.egress(entry, place.tenant),
                ..launch::bundled(&self.place, place.sandbox)
            };
            let running = self.place.runtime.start(launch).await?;
            return Ok(Started::Running(self.listen(
                entry,
                place,
                running,
                (Cleaner::default(), said),
            )));
        }
        let config = as_image(&entry.config).map_err(Cause::Entry)?;
        let Expanded {
            environment,
            headers,
            url,
            secrets,
        } = self.expand(entry, &config, place).await?;
        *cleaner = Cleaner::new(&secrets);
        match config.transport() {
            McpTransport::Http => {
                let url = url.unwrap_or_default();
                Ok(Started::Remote(Remote { url, headers }))
            }
            McpTransport::Sse => {
                let url = url.unwrap_or_default();
                Ok(Started::OldRemote(Remote { url, headers }))
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
                let launch = Launch {
                    holder: place.holder.cloned(),
                    egress: self.outside.egress(entry, place.tenant),
                    ..launch::own((entry, &config), environment, most, place.sandbox)
                };
                let running = self.place.runtime.start(launch).await?;
                let hears = (cleaner.clone(), said);
                Ok(Started::Running(self.listen(entry, place, running, hears)))
            }
        }
    }

    /// Keeps what it says on stderr, for as long as it lives.
    fn listen(
        &self,
        entry: &ServerEntry,
        place: ServerLocation<'_>,
        running: Running,
        (cleaner, said): (Cleaner, &Said),
    ) -> Streams {
        let Running {
            stdin,
            stdout,
            stderr,
            image,
            life,
        } = running;
        let whose = place.tenant.cloned();
        let keep = (Arc::clone(&self.logs), whose, entry.name.clone());
        self.tasks.spawn(said.listen(stderr, cleaner, keep));
        Streams {
            stdin,
            stdout,
            image,
            life,
        }
    }

    async fn shake_hands(
        &self,
        entry: &ServerEntry,
        started: Started,
        cleaner: &Cleaner,
    ) -> (Option<Life>, Result<Connection, Cause>) {
        let (life, opened) = match started {
            Started::Running(Streams {
                stdin,
                stdout,
                image: _,
                life,
            }) => {
                let roots = launch::roots(entry);
                let opened = Connection::open(&entry.name, stdout, stdin, roots).await;
                (Some(life), opened)
            }
            Started::Remote(remote) => {
                let client = self.client(entry);
                let opened = Connection::open_http(&entry.name, client, &remote).await;
                (None, opened)
            }
            Started::OldRemote(remote) => {
                let client = self.client(entry);
                let opened = Connection::open_sse(&entry.name, client, &remote).await;
                (None, opened)
            }
        };
        let opened = opened.map(|it| it.cleaned_by(cleaner.clone()));
        (life, opened.map_err(Cause::from))
    }

    /// What reaches a server over HTTP. Whoever is no operator reaches nothing private.
    fn client(&self, entry: &ServerEntry) -> reqwest::Client {
        let client = match entry.source {
            Source::Tenant => &self.clients.guarded,
            Source::Bundled | Source::Settings | Source::Installation => &self.clients.open,
        };
        client.clone()
    }

    /// What the references of a stored entry stand for.
    pub(crate) async fn references(
        &self,
        entry: &ServerEntry,
    ) -> Result<References<'_>, store::Error> {
        let whose = (&entry.scope, entry.name.as_str());
        let secrets = secret::read_all(&self.records.secrets(), &self.sealer, whose).await?;
        let reads_environment = entry.source == Source::Installation;
        Ok(References {
            environment: reads_environment.then_some(&*self.environment),
            secrets,
        })
    }

    async fn expand(
        &self,
        entry: &ServerEntry,
        config: &McpServerConfig,
        place: ServerLocation<'_>,
    ) -> Result<Expanded, Cause> {
        let from = if entry.is_trial {
            // It may bear the name of a server that is stored, and go elsewhere than that.
            References {
                environment: None,
                secrets: place.secrets.cloned().unwrap_or_default(),
            }
        } else {
            self.references(entry).await?
        };
        if entry.source == Source::Settings {
            // The settings replaced them when they were read; what looks like one is text.
            return Ok(as_written(config));
        }
        Ok(expand(config, &from)?)
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
