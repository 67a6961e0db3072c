//! Runs sandboxes as containers of a Docker engine, or of Podman through the same API.
//!
//! Every started program is a container of its own: the session's bundled server, and each other server of
//! the session. They share the session's volume with the access of their launches. A supervisor task per
//! container waits for its end; the pool keeps some containers running before they are needed.

mod attach;
mod container;
mod copying;
mod engine;
mod making;
mod owned;
mod pool;
mod programs;
mod startup;
mod supervisor;
mod workspace;

use std::{
    collections::BTreeSet,
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use tokio::sync::{Mutex, watch};
use tokio_util::task::TaskTracker;
use tracing::info;

use self::engine::about::{check_runtime, limits, usual_address, usual_socket};
use self::engine::images::Images;
use self::engine::{Engine, ListedContainer};
use self::making::Maker;
use self::owned::OwnedNames;
use self::pool::Pool;
use self::programs::Programs;
use self::startup::DockerShared;
use super::{
    CopyOrder, CopyResult, DiskMonitor, Error, Image, ImageId, Launch, Limits, Network, Peers,
    Running, Runtime, count_start,
};
use sepal_core::domain::{Enforcement, EngineId, SandboxId, SandboxKind};

pub use self::engine::problem::Problem as DockerProblem;

/// The time for which the pool waits before it refills, so that a session that just started has the machine
/// for its first call.
const REFILL_AFTER: Duration = Duration::from_millis(500);

/// The operator's settings.
#[derive(Debug, Clone)]
pub struct DockerSettings {
    /// The engine's address, `unix://…` or `tcp://…`; `None` = the usual sockets are tried.
    pub host: Option<String>,
    /// The image with the bundled server.
    pub image: String,
    /// The image of servers whose package was installed: the sandboxes' image with Node and Python.
    pub packages_image: String,
    /// The OCI runtime, such as `runsc`; `None` = the engine's default.
    pub runtime: Option<String>,
    /// The number of sandboxes that are kept warm.
    pub pool_size: usize,
    /// A name that no other installation at this engine has; gateways on one store share it.
    pub installation: String,
    /// True for a command that runs beside the gateways of the installation: it shares their volumes, and
    /// their janitors do not see its containers.
    pub is_beside: bool,
    pub peers: Peers,
    /// Watches the disks of this machine; the engine's disk is added if it is visible here.
    pub disk: DiskMonitor,
    /// Forces measuring workspaces with containers of our image, at this interval while nothing grows; `None`
    /// = only if their folders are not visible here, once a minute.
    pub counts_by_runs: Option<Duration>,
}

/// The Docker runtime. Dropping it ends every sandbox that it has started.
#[derive(Debug)]
pub struct Docker {
    shared: Arc<DockerShared>,
    /// Tells all supervisors to end their containers.
    closing: watch::Sender<bool>,
}

impl Docker {
    /// Returns true if one of the engines' usual sockets exists.
    pub fn has_usual_socket() -> bool {
        usual_socket().is_some()
    }

    /// Connects to the engine and checks everything that a start will need.
    pub async fn open(settings: DockerSettings) -> Result<Self, Error> {
        let address = settings.host.clone().unwrap_or_else(usual_address);
        let (engine, about) = Engine::connect(&address).await?;
        check_runtime(settings.runtime.as_deref(), &about)?;
        let images = Images::default();
        let Some(content) = images.look_up(&engine, &settings.image).await? else {
            let image = settings.image.clone();
            return Err(DockerProblem::NoImage { image }.into());
        };
        let programs = Programs::default();
        // Registered now: an earlier process of the same version may have left the volume in use.
        programs.of(&settings.installation, &content);
        let (closing, closes) = watch::channel(false);
        let mut limits = limits(&about);
        let trial = SandboxId::from_bits(rand::random());
        let labels = container::labels(&settings.installation, settings.peers.own(), &trial);
        if engine
            .holds_volumes(&container::volume(&trial), labels)
            .await
        {
            limits.workspace = Enforcement::Quota;
        }
        let engine = Arc::new(engine);
        let shared = DockerShared {
            maker: Maker {
                engine: Arc::clone(&engine),
                peers: settings.peers.clone(),
            },
            engine,
            images,
            engine_id: about.id.clone().or(about.name.clone()).unwrap_or_default(),
            limits,
            owned: OwnedNames::default(),
            pool: Pool::new(settings.pool_size),
            programs,
            filling: Mutex::default(),
            tasks: TaskTracker::new(),
            pumps: TaskTracker::new(),
            closing: closes,
            settings,
        };
        info!(sandbox.image = %shared.settings.image, "Use the engine at `{address}` for sandboxes");
        Ok(Self {
            shared: Arc::new(shared),
            closing,
        })
    }

    /// Refills the pool after a session started its server.
    fn refill(&self, launch: &Launch, room: usize) {
        for launch in self.shared.pool.refill(launch, room) {
            let shared = Arc::clone(&self.shared);
            let mut closing = self.shared.closing.clone();
            self.shared.tasks.spawn(async move {
                tokio::select! {
                    () = tokio::time::sleep(REFILL_AFTER) => {}
                    _ = closing.wait_for(|is_closing| *is_closing) => {
                        return shared.pool.put(launch, None);
                    }
                }
                if !shared.pool.begin(&launch.sandbox) {
                    return;
                }
                let started = shared.bring_up(&launch).await;
                if let Err(error) = &started {
                    tracing::warn!(%error, "No sandbox is kept warm");
                }
                shared.pool.put(launch, started.ok());
            });
        }
    }
}

#[async_trait]
impl Runtime for Docker {
    fn kind(&self) -> SandboxKind {
        SandboxKind::Docker
    }

    fn limits(&self) -> Limits {
        self.shared.limits
    }

    fn network(&self) -> Network {
        Network::Sealed
    }

    fn engine(&self) -> EngineId {
        format!("docker/{}", self.shared.engine_id).into()
    }

    fn container(&self, sandbox: &SandboxId) -> Option<String> {
        Some(container::bundled(sandbox))
    }

    fn image_id(&self, image: &Image) -> Option<ImageId> {
        self.shared.images.known(self.shared.image_name(image))
    }

    async fn look_up_image(&self, image: &Image) -> Option<ImageId> {
        let (shared, name) = (&self.shared, self.shared.image_name(image));
        match shared.images.look_up(&shared.engine, name).await {
            // If the image is gone, the start reports it better.
            Ok(id) => id.or_else(|| shared.images.known(name)),
            Err(error) => {
                tracing::debug!(%error, "The engine does not tell about an image now");
                shared.images.known(name)
            }
        }
    }

    fn reserve(&self) -> Option<SandboxId> {
        let image = self.image_id(&Image::Sandbox);
        self.shared.pool.reserve(image.as_ref())
    }

    async fn start(&self, launch: Launch) -> Result<Running, Error> {
        if *self.closing.borrow() {
            return Err(Error::Closed);
        }
        launch.check()?;
        let (since, image) = (Instant::now(), self.image_id(&Image::Sandbox));
        if let Some(running) = self.shared.pool.take(&launch, image.as_ref()) {
            count_start("docker", "warm", since, true);
            return Ok(running);
        }
        let shared = Arc::clone(&self.shared);
        // Runs as a task, because a start that is cancelled half-way would leave a container behind.
        let starting = self
            .shared
            .tasks
            .spawn(async move { shared.bring_up(&launch).await });
        let running = starting.await.map_err(io::Error::other)?;
        count_start("docker", "cold", since, running.is_ok());
        running
    }

    fn warm(&self) -> BTreeSet<SandboxId> {
        self.shared.pool.sandboxes()
    }

    fn warm_up(&self, launch: &Launch, room: usize) {
        self.refill(launch, room);
    }

    async fn spare(&self) -> bool {
        let Some((sandbox, running)) = self.shared.pool.spare() else {
            return false;
        };
        if let Some(running) = running {
            running.life.kill().await;
        }
        if let Err(error) = self.remove_workspace(&sandbox).await {
            tracing::debug!(%error, "A volume is left to the janitor");
        }
        true
    }

    async fn reap(&self) -> Result<usize, Error> {
        if self.shared.settings.peers.is_shared() {
            return Ok(0);
        }
        self.tidy().await
    }

    async fn tidy(&self) -> Result<usize, Error> {
        let (shared, peers) = (&self.shared, &self.shared.settings.peers);
        let listed = shared.engine.containers(&shared.label()).await?;
        let others = listed.iter().filter(|it| it.gateway != *peers.own());
        let over = peers
            .over(others.map(|it| it.gateway.clone()).collect())
            .await;
        let is_orphan = |it: &&ListedContainer| {
            if it.gateway == *peers.own() {
                !shared.owned.has(&it.name)
            } else {
                over.contains(&it.gateway)
            }
        };
        shared.remove_all(listed.iter().filter(is_orphan)).await
    }

    async fn workspaces(&self) -> Result<Vec<SandboxId>, Error> {
        let listed = self.shared.engine.volumes(&self.shared.label()).await?;
        let warm = self.shared.pool.sandboxes();
        let is_anothers = self.shared.settings.peers.others().await;
        let found = listed
            .iter()
            .filter(|volume| !is_anothers(&volume.gateway))
            .filter_map(|volume| container::sandbox_of_volume(&volume.name));
        let is_used =
            |sandbox: &SandboxId| warm.contains(sandbox) || self.shared.programs.has(sandbox);
        let mut found: Vec<_> = found.filter(|sandbox| !is_used(sandbox)).collect();
        found.sort();
        Ok(found)
    }

    async fn has_workspace(&self, sandbox: &SandboxId) -> Result<bool, Error> {
        self.shared.has_volume(sandbox).await
    }

    async fn copy_workspace(&self, order: CopyOrder) -> Result<CopyResult, Error> {
        let shared = Arc::clone(&self.shared);
        // Runs as a task, so that a copy that is cancelled half-way is still removed.
        let copying = self
            .shared
            .tasks
            .spawn(async move { shared.copy(order).await });
        copying.await.map_err(io::Error::other)?
    }

    async fn remove_workspace(&self, sandbox: &SandboxId) -> Result<(), Error> {
        self.shared.remove_workspace(sandbox).await
    }

    async fn close(&self) {
        let warm = self.shared.pool.close();
        self.closing.send_replace(true);
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
        for sandbox in warm {
            if let Err(error) = self.remove_workspace(&sandbox).await {
                tracing::debug!(%error, "A volume is left to the next start");
            }
        }
    }
}
