//! Sandboxes as containers of a Docker engine, or of Podman through the same API.
//!
//! Every started program is a container of its own: the session's bundled server, and each other
//! server of the session. They share the session's volume as their launches say. A supervisor task
//! per container waits for its end; the pool keeps some running before they are needed.

mod attach;
mod container;
mod engine;
mod owned;
mod pool;
mod problem;
mod supervisor;
mod workspace;

use std::{io, path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use bollard::models::SystemInfo;
use rustix::process::geteuid;
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::info;

use self::{
    container::Plan,
    engine::Engine,
    owned::Owned,
    pool::Pool,
    supervisor::Supervisor,
    workspace::{Measuring, Volume},
};
use super::{Access, Error, Launch, Life, Limits, Network, Program, Running, Runtime};
use crate::domain::{Enforcement, SandboxId, SandboxKind};

pub use self::problem::Problem as DockerProblem;

/// How long the pool waits before it fills up, so that the session that just started has the
/// machine for its first call.
const REFILL_AFTER: Duration = Duration::from_millis(500);

/// What the operator decides.
#[derive(Debug, Clone)]
pub struct DockerSettings {
    /// `unix://…` or `tcp://…`; without it the usual sockets are tried.
    pub host: Option<String>,
    /// The image with the bundled server.
    pub image: String,
    /// The OCI runtime, such as `runsc`; the engine's own choice without it.
    pub runtime: Option<String>,
    /// How many sandboxes are kept warm.
    pub pool_size: usize,
    /// A name that no other installation at this engine has.
    pub installation: String,
}

/// The Docker runtime. Dropping it ends every sandbox it has started.
#[derive(Debug)]
pub struct Docker {
    house: Arc<House>,
    /// Told to all supervisors when everything has to end.
    closing: watch::Sender<bool>,
}

/// What starts share.
#[derive(Debug)]
struct House {
    settings: DockerSettings,
    engine: Arc<Engine>,
    /// The engine's own name for itself.
    engine_id: String,
    limits: Limits,
    owned: Owned,
    pool: Pool,
    /// Starts and supervisors.
    tasks: TaskTracker,
    /// Streams, which end when their owners let go.
    pumps: TaskTracker,
    closing: watch::Receiver<bool>,
}

impl Docker {
    /// Finds the engine and looks for everything that a start will need.
    pub async fn open(settings: DockerSettings) -> Result<Self, Error> {
        let address = settings.host.clone().unwrap_or_else(usual_address);
        let (engine, about) = Engine::connect(&address).await?;
        check_runtime(settings.runtime.as_deref(), &about)?;
        if !engine.has_image(&settings.image).await? {
            let image = settings.image.clone();
            return Err(DockerProblem::NoImage { image }.into());
        }
        let (closing, closes) = watch::channel(false);
        let house = House {
            engine: Arc::new(engine),
            engine_id: about.id.clone().or(about.name.clone()).unwrap_or_default(),
            limits: limits(&about),
            owned: Owned::default(),
            pool: Pool::new(settings.pool_size),
            tasks: TaskTracker::new(),
            pumps: TaskTracker::new(),
            closing: closes,
            settings,
        };
        info!(sandbox.image = %house.settings.image, "Use the engine at `{address}` for sandboxes");
        Ok(Self {
            house: Arc::new(house),
            closing,
        })
    }

    /// Fills the pool after a session started its server.
    fn refill(&self, launch: &Launch) {
        for launch in self.house.pool.refill(launch) {
            let house = Arc::clone(&self.house);
            let mut closing = self.house.closing.clone();
            self.house.tasks.spawn(async move {
                tokio::select! {
                    () = tokio::time::sleep(REFILL_AFTER) => {}
                    _ = closing.wait_for(|is_closing| *is_closing) => {
                        return house.pool.put(launch, None);
                    }
                }
                let started = house.bring_up(&launch).await;
                if let Err(error) = &started {
                    tracing::warn!(%error, "No sandbox is kept warm");
                }
                house.pool.put(launch, started.ok());
            });
        }
    }
}

impl House {
    /// Makes the workspace and the container, and takes hold of it. Has to be seen through once it
    /// has begun: call it on a task.
    async fn bring_up(&self, launch: &Launch) -> Result<Running, Error> {
        let name = container::name(launch);
        let owner = self.owned.own(name.clone());
        let plan = Plan {
            launch,
            installation: &self.settings.installation,
            image: &self.settings.image,
            runtime: self.settings.runtime.as_deref(),
        };
        let workspace = self.workspace(&plan).await?;
        self.engine.create(&name, &plan.body()).await?;
        let attached = match self.engine.attach(&name).await {
            Ok(attached) => self.engine.start(&name).await.map(|()| attached),
            Err(problem) => Err(problem),
        };
        let attached = match attached {
            Ok(attached) => attached,
            Err(problem) => {
                // The janitor gets what cannot be removed now.
                let _ = self.engine.remove(&name).await;
                return Err(problem.into());
            }
        };
        let streams = attach::pump(attached, &self.pumps);
        let (told, end) = watch::channel(None);
        let killed = CancellationToken::new();
        let supervisor = Supervisor {
            engine: Arc::clone(&self.engine),
            owner,
            bounds: launch.bounds,
            workspace,
            killed: killed.clone(),
            closing: self.closing.clone(),
        };
        self.tasks.spawn(async move {
            let ended = supervisor.run().await;
            told.send_replace(Some(ended));
        });
        Ok(Running {
            stdin: Box::new(streams.stdin),
            stdout: Box::new(streams.stdout),
            stderr: streams.stderr,
            life: Life::new(move || killed.cancel(), end),
        })
    }

    /// Makes the volume where the launch sees it; what has to be counted of it.
    async fn workspace(&self, plan: &Plan<'_>) -> Result<Option<Volume>, Error> {
        let launch = plan.launch;
        if launch.workspace == Access::None {
            return Ok(None);
        }
        let (volume, name) = (container::volume(&launch.sandbox), container::name(launch));
        let labels = container::labels(plan.installation, &launch.sandbox);
        let mountpoint = self.engine.provide_volume(&volume, labels).await?;
        let measuring = Measuring {
            engine: Arc::clone(&self.engine),
            name: format!("{name}.measure"),
            body: plan.measuring(),
            owned: self.owned.clone(),
            tasks: self.pumps.clone(),
        };
        if matches!(launch.program, Program::Image { .. }) {
            // An empty volume takes the owner of the folder it is first seen at, and only our
            // image is known to have the right one.
            let _owner = self.owned.own(measuring.name.clone());
            self.engine.create(&measuring.name, &measuring.body).await?;
            self.engine.remove(&measuring.name).await?;
        }
        let is_counted = launch.workspace == Access::ReadWrite;
        Ok(is_counted.then(|| Volume::at(mountpoint, measuring)))
    }

    /// Removes the containers that `label` finds and `is_orphan` picks; how many there were.
    async fn remove_containers(
        &self,
        label: &str,
        is_orphan: impl Fn(&str) -> bool,
    ) -> Result<usize, Error> {
        let listed = self.engine.containers(label).await?;
        let mut removed = 0;
        for container in listed.iter().filter(|it| is_orphan(&it.name)) {
            // By id: the name may have another owner by now.
            self.engine.remove(&container.id).await?;
            removed += 1;
        }
        Ok(removed)
    }

    fn label(&self) -> String {
        format!("{}={}", container::INSTALLATION, self.settings.installation)
    }
}

#[async_trait]
impl Runtime for Docker {
    fn kind(&self) -> SandboxKind {
        SandboxKind::Docker
    }

    fn limits(&self) -> Limits {
        self.house.limits
    }

    fn network(&self) -> Network {
        Network::Sealed
    }

    fn keeper(&self) -> String {
        format!("docker/{}", self.house.engine_id)
    }

    fn container(&self, sandbox: &SandboxId) -> Option<String> {
        Some(container::bundled(sandbox))
    }

    fn reserve(&self) -> Option<SandboxId> {
        self.house.pool.reserve()
    }

    async fn start(&self, launch: Launch) -> Result<Running, Error> {
        if *self.closing.borrow() {
            return Err(Error::Closed);
        }
        launch.check()?;
        if let Some(running) = self.house.pool.take(&launch) {
            self.refill(&launch);
            return Ok(running);
        }
        let house = Arc::clone(&self.house);
        let wanted = launch.clone();
        // A task, because a start that is given up half-way would leave a container behind.
        let starting = self
            .house
            .tasks
            .spawn(async move { house.bring_up(&wanted).await });
        let running = starting.await.map_err(io::Error::other)??;
        self.refill(&launch);
        Ok(running)
    }

    async fn reap(&self) -> Result<usize, Error> {
        self.tidy().await
    }

    async fn tidy(&self) -> Result<usize, Error> {
        let house = &self.house;
        let is_orphan = |name: &str| !house.owned.has(name);
        house.remove_containers(&house.label(), is_orphan).await
    }

    async fn workspaces(&self) -> Result<Vec<SandboxId>, Error> {
        let listed = self.house.engine.volumes(&self.house.label()).await?;
        let warm = self.house.pool.sandboxes();
        let found = listed
            .iter()
            .filter_map(|name| container::sandbox_of_volume(name));
        let mut found: Vec<_> = found.filter(|sandbox| !warm.contains(sandbox)).collect();
        found.sort();
        Ok(found)
    }

    async fn remove_workspace(&self, sandbox: &SandboxId) -> Result<(), Error> {
        let label = format!("{}={sandbox}", container::SANDBOX);
        self.house.remove_containers(&label, |_| true).await?;
        let volume = container::volume(sandbox);
        Ok(self.house.engine.remove_volume(&volume).await?)
    }

    async fn close(&self) {
        let warm = self.house.pool.close();
        self.closing.send_replace(true);
        self.house.tasks.close();
        self.house.tasks.wait().await;
        for sandbox in warm {
            if let Err(error) = self.remove_workspace(&sandbox).await {
                tracing::debug!(%error, "A volume is left to the next life");
            }
        }
    }
}

/// The first of the usual sockets that exists; Docker's where none does.
fn usual_address() -> String {
    let user = geteuid().as_raw();
    let usual = "/var/run/docker.sock".to_owned();
    let found = [
        usual.clone(),
        "/run/podman/podman.sock".to_owned(),
        format!("/run/user/{user}/docker.sock"),
        format!("/run/user/{user}/podman/podman.sock"),
    ]
    .into_iter()
    .find(|path| Path::new(path).exists());
    format!("unix://{}", found.unwrap_or(usual))
}

fn check_runtime(runtime: Option<&str>, about: &SystemInfo) -> Result<(), DockerProblem> {
    let Some(runtime) = runtime else {
        return Ok(());
    };
    let mut known: Vec<&str> = about
        .runtimes
        .iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .collect();
    if known.contains(&runtime) {
        return Ok(());
    }
    known.sort_unstable();
    Err(DockerProblem::NoRuntime {
        runtime: runtime.to_owned(),
        known: known.join(", "),
    })
}

/// What the engine says that it can hold; a rootless one may lack a control group.
fn limits(about: &SystemInfo) -> Limits {
    let held = |can: Option<bool>| match can {
        Some(false) => Enforcement::None,
        Some(true) | None => Enforcement::Cgroup,
    };
    Limits {
        memory: held(about.memory_limit),
        cpu: held(about.cpu_cfs_quota),
        processes: held(about.pids_limit),
        time: Enforcement::Watchdog,
        workspace: Enforcement::Watchdog,
    }
}
