//! Starts one program, and holds the state that all starts of a Docker runtime share.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use bollard::container::AttachContainerResults;
use tokio::sync::{Mutex, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::container::{self, OwnCommand, Plan, WrappedImage};
use super::engine::images::Images;
use super::engine::{Engine, ListedContainer};
use super::making::Maker;
use super::owned::OwnedNames;
use super::pool::Pool;
use super::programs::Programs;
use super::supervisor::Supervisor;
use super::workspace::{Job, Measuring, Volume};
use super::{DockerProblem, DockerSettings, attach};
use crate::workspace::{Size, trim};
use crate::{
    Access, Error, Image, ImageId, Launch, Life, Limits, Packages, Program, ProgramEnd, Running,
    egress,
};
use sepal_core::domain::{Enforcement, SandboxId};

/// The state that all starts share.
#[derive(Debug)]
pub(super) struct DockerShared {
    pub(super) settings: DockerSettings,
    pub(super) engine: Arc<Engine>,
    pub(super) maker: Maker,
    pub(super) images: Images,
    /// The engine's own id.
    pub(super) engine_id: String,
    pub(super) limits: Limits,
    pub(super) owned: OwnedNames,
    pub(super) pool: Pool,
    pub(super) programs: Programs,
    /// Locked while a volume of our programs is filled.
    pub(super) filling: Mutex<()>,
    pub(super) tasks: TaskTracker,
    /// Tasks that pump streams; they end when their owners drop the streams.
    pub(super) pumps: TaskTracker,
    pub(super) closing: watch::Receiver<bool>,
}

/// A started container.
struct StartedContainer {
    id: String,
    attached: AttachContainerResults,
    /// The id of the image content that the container was created from.
    image: Option<ImageId>,
}

impl DockerShared {
    /// Creates the workspace and the container, and attaches to it. Must run to completion once begun: call
    /// it on a task.
    pub(super) async fn bring_up(&self, launch: &Launch) -> Result<Running, Error> {
        let name = container::name(launch);
        let owner = self.owned.own(name.clone());
        let wrapped = self.wrapped(launch).await?;
        let plan = Plan {
            wrapped: wrapped.as_ref(),
            ..self.plan(launch)
        };
        self.maker.check(&launch.program).await?;
        if let Packages::Installed(packages) = &launch.packages
            && !self.has_volume(packages).await?
        {
            // The engine would create an empty volume.
            return Err(Error::NoPackages);
        }
        let workspace = self.workspace(&plan).await?.map(Arc::new);
        if let Some(home) = workspace.as_ref().and_then(|workspace| workspace.home()) {
            self.settings.disk.add(home.to_owned());
        }
        let start = SystemTime::now();
        let StartedContainer {
            id,
            attached,
            image,
        } = self.begin(&plan).await?;
        let streams = attach::pump(attached, &self.pumps);
        let (told, end) = watch::channel(None);
        let killed = CancellationToken::new();
        let supervisor = Supervisor {
            engine: Arc::clone(&self.engine),
            id,
            owner,
            bounds: launch.bounds,
            workspace: workspace.clone(),
            start,
            disk: self.settings.disk.watch(),
            killed: killed.clone(),
            closing: self.closing.clone(),
        };
        let limit = launch.bounds.workspace_bytes;
        self.tasks.spawn(async move {
            let ended = supervisor.run().await;
            told.send_replace(Some(ended));
            // A program that ended by itself may have ended before its workspace was measured.
            if let Some(workspace) = workspace.filter(|_| ended != ProgramEnd::Killed) {
                workspace.trim(limit).await;
            }
        });
        let running = Running {
            stdin: Box::new(streams.stdin),
            stdout: Box::new(streams.stdout),
            stderr: streams.stderr,
            image,
            life: Life::new(move || killed.cancel(), end),
        };
        Ok(match launch.egress.clone() {
            Some(egress) => egress::open(running, egress, &launch.server, &self.pumps),
            None => running,
        })
    }

    /// Returns the inputs that determine the container of a launch.
    pub(super) fn plan<'p>(&'p self, launch: &'p Launch) -> Plan<'p> {
        Plan {
            launch,
            installation: &self.settings.installation,
            gateway: self.settings.peers.own(),
            image: &self.settings.image,
            packages_image: &self.settings.packages_image,
            runtime: self.settings.runtime.as_deref(),
            wrapped: None,
            is_beside: self.settings.is_beside,
        }
    }

    /// Returns the image's own command and the volume with our programs, which a third-party image with
    /// egress needs; `None` for any other launch.
    async fn wrapped(&self, launch: &Launch) -> Result<Option<WrappedImage>, Error> {
        let Program::Image { image, arguments } = &launch.program else {
            return Ok(None);
        };
        if launch.egress.is_none() {
            return Ok(None);
        }
        let config = self.engine.image_config(image).await?;
        let own = OwnCommand {
            entrypoint: config.entrypoint.unwrap_or_default(),
            arguments: config.cmd.unwrap_or_default(),
        };
        if own.entrypoint.is_empty() && own.arguments.is_empty() && arguments.is_empty() {
            let image = image.clone();
            return Err(DockerProblem::NoCommand { image }.into());
        }
        let programs = self.provide_programs(launch).await?;
        Ok(Some(WrappedImage { programs, own }))
    }

    /// Creates the volume of our programs, if it is missing or empty, and returns its sandbox id.
    async fn provide_programs(&self, launch: &Launch) -> Result<SandboxId, Error> {
        let image = &self.settings.image;
        let content = self.images.look_up(&self.engine, image).await?;
        let content = content.unwrap_or_else(|| ImageId::new(image));
        let programs = self.programs.of(&self.settings.installation, &content);
        let plan = self.plan(launch);
        let labels = container::labels(plan.installation, plan.gateway, &programs);
        let volume = container::volume(&programs);
        self.engine.provide_volume(&volume, labels, None).await?;
        // Two concurrent starts would remove each other's container.
        let _filling = self.filling.lock().await;
        let name = container::bundled(&programs);
        let _owner = self.owned.own(name.clone());
        let made = self.maker.create(&name, &plan.filling(&programs)).await?;
        self.engine.remove(&made).await?;
        Ok(programs)
    }

    /// Creates and starts the container, and attaches to its streams.
    async fn begin(&self, plan: &Plan<'_>) -> Result<StartedContainer, Error> {
        let (name, body) = (container::name(plan.launch), plan.body());
        let image = body.image.as_deref().unwrap_or_default();
        let look_up_image = || self.images.look_up(&self.engine, image);
        let before = look_up_image().await?;
        let id = self.maker.create(&name, &body).await?;
        let begun = async {
            let after = look_up_image().await?;
            let attached = self.engine.attach(&id).await?;
            self.engine.start(&id).await?;
            Ok::<_, DockerProblem>((attached, after))
        };
        match begun.await {
            Ok((attached, after)) => Ok(StartedContainer {
                id,
                attached,
                // Engines may report a different id for a container. If the name stood for the same content
                // before and after, the container was created from it.
                image: after.filter(|after| Some(after) == before.as_ref()),
            }),
            Err(problem) => {
                // The janitor removes what fails here.
                let _ = self.engine.remove(&id).await;
                Err(problem.into())
            }
        }
    }

    /// Creates the volume if the launch sees it; returns it if its size has to be watched.
    pub(super) async fn workspace(&self, plan: &Plan<'_>) -> Result<Option<Volume>, Error> {
        let launch = plan.launch;
        if launch.workspace == Access::None {
            return Ok(None);
        }
        let volume = container::volume(&launch.sandbox);
        let ceiling = trim::ceiling(launch.bounds.workspace_bytes);
        let most = (self.limits.workspace == Enforcement::Quota).then_some(ceiling);
        let labels = plan.labels();
        let mountpoint = self.engine.provide_volume(&volume, labels, most).await?;
        let measuring = self.measuring(plan);
        if matches!(launch.program, Program::Image { .. }) {
            // An empty volume takes the owner of the folder where it is first mounted, and only our image is
            // known to have the right one.
            let _owner = self.owned.own(measuring.count.name.clone());
            let made = self
                .maker
                .create(&measuring.count.name, &measuring.count.body);
            self.engine.remove(&made.await?).await?;
        }
        let is_counted = launch.workspace == Access::ReadWrite;
        let by_runs = self.settings.counts_by_runs;
        Ok(is_counted.then(|| Volume::at(mountpoint, measuring, by_runs)))
    }

    pub(super) async fn has_volume(&self, sandbox: &SandboxId) -> Result<bool, Error> {
        let label = format!("{}={sandbox}", container::SANDBOX);
        Ok(!self.engine.volumes(&label).await?.is_empty())
    }

    fn measuring(&self, plan: &Plan<'_>) -> Measuring {
        Measuring {
            maker: self.maker.clone(),
            count: Job {
                name: format!("{}.measure", container::name(plan.launch)),
                body: plan.measuring(),
            },
            trim: Job {
                name: container::trimmer(&plan.launch.sandbox),
                body: plan.trimming(),
            },
            owned: self.owned.clone(),
            runs: self.tasks.clone(),
            pumps: self.pumps.clone(),
        }
    }

    /// Measures a workspace with a container, up to a little more than its limit; `None` if that took too
    /// long.
    pub(super) async fn count(&self, launch: &Launch) -> Option<Size> {
        let run = Volume::There(Arc::new(self.measuring(&self.plan(launch))), Duration::ZERO);
        run.count(launch.bounds.workspace_bytes).await
    }

    /// Deletes a workspace, and the containers that use it.
    pub(super) async fn remove_workspace(&self, sandbox: &SandboxId) -> Result<(), Error> {
        if self.programs.has(sandbox) {
            // The volume was listed before it was in use.
            return Ok(());
        }
        let label = format!("{}={sandbox}", container::SANDBOX);
        let listed = self.engine.containers(&label).await?;
        self.remove_all(listed.iter()).await?;
        Ok(self
            .engine
            .remove_volume(&container::volume(sandbox))
            .await?)
    }

    /// Removes these containers, and returns their number.
    pub(super) async fn remove_all(
        &self,
        containers: impl Iterator<Item = &ListedContainer> + Send,
    ) -> Result<usize, Error> {
        let mut removed = 0;
        for container in containers {
            // By id: the name may have another owner by now.
            self.engine.remove(&container.id).await?;
            removed += 1;
        }
        Ok(removed)
    }

    /// Returns the name of an image, as the engine knows it.
    pub(super) fn image_name<'i>(&'i self, image: &'i Image) -> &'i str {
        match image {
            Image::Sandbox => &self.settings.image,
            Image::Packages => &self.settings.packages_image,
            Image::Named(name) => name,
        }
    }

    pub(super) fn label(&self) -> String {
        format!("{}={}", container::INSTALLATION, self.settings.installation)
    }
}
