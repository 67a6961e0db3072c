//! Runs sandboxes with Linux namespaces, for machines without a container engine.
//!
//! A start goes through a chain of programs that each drop privileges: `bash` closes inherited descriptors
//! and enters the control groups, `bwrap` creates the namespaces, `setpriv` and a second `bwrap` (if we are
//! root) drop the real user, the last `bwrap` installs the filter of system calls, and `prlimit` limits
//! single processes. One supervisor task per sandbox then waits for its end and reports the reason.

mod arguments;
mod identity;
mod leftovers;
mod limits;
mod overlay;
mod probe;
mod seccomp;
mod spawner;
mod stage;
mod supervisor;

#[cfg(test)]
mod tests;

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
    time::{Instant, SystemTime},
};

use async_trait::async_trait;
use rustix::process::geteuid;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use self::arguments::{Arguments, OWN_ETC, Plan, Privilege};
use self::identity::Identity;
use self::limits::cgroup::Cgroups;
use self::limits::project_quota::ProjectQuota;
use self::overlay::{Mount, Overlays};
use self::spawner::Spawner;
use super::workspace::{Workspaces, copy, reading};
use super::{
    Access, CopyOrder, CopyResult, CopyWay, DiskMonitor, Error, Image, ImageId, Launch, Limits,
    Network, Packages, Program, Running, Runtime, count_start, egress,
};
use sepal_core::domain::{Enforcement, EngineId, SandboxId, SandboxKind};
use sepal_jobs::Pool;

/// The operator's settings.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The folder of the workspaces: `<data_dir>/workspaces/<sandbox>`.
    pub data_dir: PathBuf,
    /// A name that no other installation on this machine has; letters, digits, `-` and `_`.
    pub installation: String,
    /// The statically linked server for files and commands.
    pub server: PathBuf,
    /// Watches the disk that workspaces are on.
    pub disk: DiskMonitor,
    /// Ignores control groups even if there are some; for tests and unusual machines.
    pub forces_watchdog: bool,
    /// Copies every file for a dry run even if an overlay is possible; for tests and unusual machines.
    pub forces_copies: bool,
}

/// The bubblewrap runtime. Dropping it ends every sandbox that it has started.
#[derive(Debug)]
pub struct Bubblewrap {
    settings: Settings,
    privilege: Privilege,
    workspaces: Workspaces,
    overlays: Overlays,
    /// The id of the data folder: workspaces of another data folder are not here.
    folder: String,
    cgroups: Option<Cgroups>,
    quota: Option<ProjectQuota>,
    identity: Identity,
    /// The filter of system calls, which is the same for all sandboxes.
    filter: Arc<File>,
    spawner: Spawner,
    supervisors: TaskTracker,
    /// Tasks that pump streams; they end with their programs.
    pumps: TaskTracker,
    /// Tells all supervisors to end their sandboxes.
    closing: watch::Sender<bool>,
}

impl Bubblewrap {
    /// Finds out what this machine supports, and tries it once.
    pub async fn open(settings: Settings) -> Result<Self, Error> {
        let privilege = if geteuid().is_root() {
            Privilege::Root
        } else {
            Privilege::User
        };
        let cgroups = if settings.forces_watchdog {
            None
        } else {
            Cgroups::find(&format!("sepal-{}", settings.installation))
        };
        let folder = settings.data_dir.join("workspaces");
        let workspaces = Workspaces::open(folder.clone(), privilege == Privilege::Root)?;
        let runtime = Self {
            quota: match privilege {
                Privilege::Root => ProjectQuota::find(&folder).await,
                Privilege::User => None,
            },
            workspaces,
            overlays: Overlays::default(),
            folder: folder_name(&settings.data_dir)?,
            privilege,
            cgroups,
            identity: Identity::default(),
            filter: Arc::new(seccomp::filter()?),
            spawner: Spawner::start()?,
            supervisors: TaskTracker::new(),
            pumps: TaskTracker::new(),
            closing: watch::Sender::new(false),
            settings,
        };
        runtime.identity.look_up(&runtime.settings.server);
        write_etc(&runtime.etc())?;
        probe::run(&runtime).await?;
        Ok(runtime)
    }

    fn etc(&self) -> PathBuf {
        self.settings.data_dir.join("sandbox-etc")
    }

    /// Returns the folder of a workspace that may be written to, and creates it if needed.
    async fn provide(&self, sandbox: &SandboxId, limit: u64) -> Result<PathBuf, Error> {
        let workspace = self.workspaces.provide(sandbox)?;
        if let Some(quota) = &self.quota
            && let Err(error) = quota.hold(&workspace, limit).await
        {
            // The watch over the workspace's size still enforces the limit.
            tracing::warn!(%error, "A workspace has no project quota");
        }
        Ok(workspace)
    }

    /// Returns the folder of the installed packages of a launch, readable for the launch's user.
    async fn packages(&self, launch: &Launch) -> Result<Option<PathBuf>, Error> {
        let Packages::Installed(sandbox) = &launch.packages else {
            return Ok(None);
        };
        let folder = self.workspaces.path(sandbox);
        if !folder.is_dir() {
            return Err(Error::NoPackages);
        }
        if self.privilege == Privilege::Root {
            let packages = folder.clone();
            blocking(move || Ok(reading::open_to_all(&packages)?)).await?;
        }
        Ok(Some(folder))
    }

    async fn launch(&self, launch: Launch) -> Result<Running, Error> {
        let limit = launch.bounds.workspace_bytes;
        let mount = match launch.workspace {
            Access::ReadWrite | Access::ReadOnly => self
                .overlays
                .mount(self.workspaces.folder(), &launch.sandbox)?,
            Access::None => None,
        };
        let workspace = match (&mount, launch.workspace) {
            (Some(mount), _) => mount.upper(),
            (None, Access::ReadWrite) => self.provide(&launch.sandbox, limit).await?,
            (None, Access::ReadOnly | Access::None) => self.workspaces.provide(&launch.sandbox)?,
        };
        let seen = mount.as_ref().map(Mount::merged);
        let mounts_first = mount.as_ref().map(|mount| mount.line(self.privilege));
        let packages = self.packages(&launch).await?;
        let mark = leftovers::mark(&self.settings.installation, launch.sandbox.as_str());
        let arguments = Arguments::new(&Plan {
            launch: &launch,
            privilege: self.privilege,
            user: workspace.metadata()?.uid(),
            workspace: seen.as_ref().unwrap_or(&workspace),
            mounts_first: mounts_first.as_deref().unwrap_or_default(),
            packages: packages.as_deref(),
            etc: &self.etc(),
            server: &self.settings.server,
            mark: &mark,
            needs_process_rlimit: self.cgroups.is_none(),
        });
        let name = launch.sandbox.as_str();
        let open = |groups: &Cgroups| groups.open(name, &launch.bounds);
        let cgroup = self.cgroups.as_ref().map(open).transpose()?;
        let chain = stage::Chain {
            arguments,
            cgroup,
            filter: Arc::clone(&self.filter),
            mark,
            folder: mount.as_ref().map(|mount| mount.folder.clone()),
        };
        let care = supervisor::Care {
            launch,
            workspace,
            mount,
            disk: self.settings.disk.watch(),
            start: SystemTime::now(),
            tasks: self.supervisors.clone(),
            closing: self.closing.subscribe(),
        };
        // Runs as a task, because a start that is cancelled half-way would leave bubblewrap's child behind:
        // the child dies with its parent only after its first steps.
        let spawner = self.spawner.clone();
        let starting = self.supervisors.spawn(async move {
            let staged = stage::start(&spawner, chain).await?;
            Ok(supervisor::take_over(staged, care))
        });
        starting.await.map_err(io::Error::other)?
    }
}

#[async_trait]
impl Runtime for Bubblewrap {
    fn kind(&self) -> SandboxKind {
        SandboxKind::Bubblewrap
    }

    fn engine(&self) -> EngineId {
        format!("bubblewrap/{}", self.folder).into()
    }

    fn limits(&self) -> Limits {
        let held = match self.cgroups {
            Some(_) => Enforcement::Cgroup,
            None if Path::new("/proc/thread-self/children").exists() => Enforcement::Watchdog,
            None => Enforcement::None,
        };
        Limits {
            memory: held,
            cpu: held,
            processes: held,
            time: Enforcement::Watchdog,
            workspace: Enforcement::Watchdog,
        }
    }

    fn network(&self) -> Network {
        Network::Sealed
    }

    fn image_id(&self, image: &Image) -> Option<ImageId> {
        match image {
            Image::Sandbox | Image::Packages => self.identity.known(),
            Image::Named(_) => None,
        }
    }

    async fn look_up_image(&self, image: &Image) -> Option<ImageId> {
        match image {
            Image::Sandbox | Image::Packages => self.identity.look_up(&self.settings.server),
            Image::Named(_) => None,
        }
    }

    async fn start(&self, launch: Launch) -> Result<Running, Error> {
        if *self.closing.borrow() {
            return Err(Error::Closed);
        }
        launch.check()?;
        match &launch.program {
            Program::Image { image, .. } => {
                return Err(Error::BadLaunch(format!(
                    "the image `{image}` needs a container engine: set `sandbox.driver` \
                     (SPL_SANDBOX) to `docker`, or give the server a command"
                )));
            }
            Program::Bundled { .. } | Program::Command(_)
                if needs_server(&launch) && !self.settings.server.is_file() =>
            {
                return Err(Error::NoServer(self.settings.server.clone()));
            }
            Program::Bundled { .. } | Program::Command(_) => {}
        }
        let since = Instant::now();
        let before = self.identity.look_up(&self.settings.server);
        let (egress, server) = (launch.egress.clone(), launch.server.clone());
        let started = self.launch(launch).await;
        let mut running = started.map(|running| match egress {
            Some(egress) => egress::open(running, egress, &server, &self.pumps),
            None => running,
        });
        if let Ok(running) = &mut running {
            // The file is seen inside by its name: if its hash is the same before and after, it was the same
            // in between.
            let after = self.identity.look_up(&self.settings.server);
            running.image = after.filter(|after| Some(after) == before.as_ref());
        }
        count_start("bubblewrap", "cold", since, running.is_ok());
        running
    }

    async fn reap(&self) -> Result<usize, Error> {
        let marked = leftovers::kill(&self.settings.installation);
        let grouped = match &self.cgroups {
            Some(groups) => groups.reap().await,
            None => 0,
        };
        Ok(marked.max(grouped))
    }

    async fn workspaces(&self) -> Result<Vec<SandboxId>, Error> {
        let workspaces = self.workspaces.clone();
        blocking(move || workspaces.all()).await
    }

    async fn has_workspace(&self, sandbox: &SandboxId) -> Result<bool, Error> {
        let folder = self.workspaces.path(sandbox);
        blocking(move || Ok(folder.is_dir())).await
    }

    async fn copy_workspace(&self, order: CopyOrder) -> Result<CopyResult, Error> {
        if order.way == CopyWay::OnWrite
            && let Some(copied) = overlay::make_copy(self, &order).await?
        {
            return Ok(copied);
        }
        let limit = order.bounds.workspace_bytes;
        let to = self.provide(&order.to, limit).await?;
        let workspaces = self.workspaces.clone();
        // Runs as a task, so that a copy that is cancelled half-way is still removed.
        let copying = self.supervisors.spawn(async move {
            let copied =
                copy::copy(workspaces.path(&order.from), to.clone(), limit, order.watch).await;
            if !matches!(copied, Ok(CopyResult::Whole(_))) {
                blocking(move || workspaces.remove(&order.to)).await?;
            }
            copied.map_err(|source| Error::Workspace { path: to, source })
        });
        copying.await.map_err(io::Error::other)?
    }

    async fn remove_workspace(&self, sandbox: &SandboxId) -> Result<(), Error> {
        self.overlays.forget(sandbox);
        let (workspaces, sandbox) = (self.workspaces.clone(), sandbox.clone());
        blocking(move || workspaces.remove(&sandbox)).await
    }

    async fn close(&self) {
        self.closing.send_replace(true);
        self.supervisors.close();
        self.supervisors.wait().await;
    }
}

/// Returns true if the launch needs our own server, as the program or as the egress of another program.
fn needs_server(launch: &Launch) -> bool {
    matches!(launch.program, Program::Bundled { .. }) || launch.egress.is_some()
}

/// Limits how many folders of workspaces are created, read or removed at the same time.
static FOLDERS: LazyLock<Pool> = LazyLock::new(|| Pool::new("folders of workspaces", 32));

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let done = FOLDERS.run(work).await;
    done.map_err(|error| Error::Start(io::Error::other(error)))?
}

/// Returns the id of a data folder. It is created once, and stays with the folder wherever that is copied.
fn folder_name(data_dir: &Path) -> io::Result<String> {
    let path = data_dir.join("workspaces-id");
    let fresh = format!("{:016x}", rand::random::<u64>());
    match fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)
    {
        Ok(mut file) => {
            file.write_all(fresh.as_bytes())?;
            file.sync_all()?;
            Ok(fresh)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs::read_to_string(&path),
        Err(error) => Err(error),
    }
}

fn write_etc(folder: &Path) -> Result<(), Error> {
    fs::create_dir_all(folder)?;
    for (name, content) in OWN_ETC {
        let file = folder.join(name);
        // Running sandboxes of another process may read it at this moment.
        if fs::read(&file).ok().as_deref() != Some(content.as_bytes()) {
            fs::write(file, content)?;
        }
    }
    Ok(())
}
