//! Finds the sandbox runtime of this machine by trying it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use crate::config::{Sandbox, SandboxDriver};
use crate::domain::{AllowedHosts, McpNetwork, NetworkWord};
use crate::sandbox::host::{CheckpointLimits, PackageInstalling, SandboxHost};
use crate::sandbox::{
    Bounds, Bubblewrap, Capacity, DeferredRuntime, DiskMonitor, Docker, DockerProblem,
    DockerSettings, Error, Off, Peers, Room, Runtime, Settings as BubblewrapSettings,
};
use crate::store::Records;

/// The file names of the server that runs in every sandbox: the static one that `./run build` puts beside our
/// program, otherwise cargo's own.
const SERVERS: [&str; 2] = ["mcp-server", "sepal-mcp-server"];

/// The image that is built beside this program.
const OWN_IMAGE: &str = concat!("sepal/sandbox:", env!("CARGO_PKG_VERSION"));

/// The time for which the start of a sandbox waits for room.
const PATIENCE: Duration = Duration::from_secs(20);

/// The time for which a start waits for the configured engine: after a boot, either of the two may be up
/// first.
const ENGINE_PATIENCE: Duration = Duration::from_secs(10);
/// The pause between two looks for it.
const ENGINE_PAUSE: Duration = Duration::from_millis(250);

/// The operator is warned if all containers share fewer inotify instances than this.
const MIN_INSTANCES: u32 = 1_024;

/// The name of resources at an engine, and those who use them.
#[derive(Clone)]
pub(super) struct Names {
    /// Gateways on one store share it.
    pub(super) installation: String,
    pub(super) peers: Peers,
    /// True for a command that runs beside the gateways.
    pub(super) is_beside: bool,
}

/// Returns the name at an engine of the installation in a data folder. A copied folder is another installation.
pub(super) fn installation_in(id: &str, data_dir: &Path) -> String {
    let path = fs::canonicalize(data_dir).unwrap_or_else(|_| data_dir.to_owned());
    hashed(&[id.as_bytes(), path.as_os_str().as_encoded_bytes()])
}

/// Returns a hash of `parts` in twelve characters.
pub(super) fn hashed(parts: &[&[u8]]) -> String {
    let hash = Sha256::digest(parts.join(&0));
    hex::encode(hash.get(..6).unwrap_or_default())
}

/// Starts to monitor the disk, and begins a trial of bubblewrap.
pub(super) async fn begin(
    settings: &Sandbox,
    data_dir: PathBuf,
    folder: String,
    tasks: &TaskTracker,
) -> (DiskMonitor, Trial) {
    let disk = watch_disk(settings, &data_dir).await;
    let trial = Trial::begin(settings, data_dir, folder, &disk, tasks);
    (disk, trial)
}

/// Monitors the disk of the data folder, by the settings.
pub(super) async fn watch_disk(settings: &Sandbox, data_dir: &Path) -> DiskMonitor {
    // A folder that does not exist yet will be on the disk of its parent.
    let mut folders = data_dir.ancestors();
    let folder = folders.find(|folder| folder.exists()).unwrap_or(data_dir);
    DiskMonitor::start(folder.to_owned(), u64::from(settings.min_free_mb) << 20).await
}

/// The trial of bubblewrap, which starts a sandbox.
pub(super) enum Trial {
    /// Runs while the store is opened, which takes as long.
    Begun(JoinHandle<Result<Bubblewrap, Error>>),
    /// Runs later, only if Docker is not used.
    Later(BubblewrapSettings),
}

impl Trial {
    /// Begins the trial at once for the driver `bubblewrap`, or for `auto` without a Docker host or socket;
    /// otherwise prepares it for later. `folder` names the sandboxes of this gateway alone; the caller holds
    /// the data folder's lock.
    pub(super) fn begin(
        settings: &Sandbox,
        data_dir: PathBuf,
        folder: String,
        disk: &DiskMonitor,
        tasks: &TaskTracker,
    ) -> Self {
        let bubblewrap = BubblewrapSettings {
            data_dir,
            installation: folder,
            server: server_binary(),
            disk: disk.clone(),
            forces_watchdog: false,
            forces_copies: settings.forces_copies,
        };
        let is_meant = match settings.driver {
            SandboxDriver::Bubblewrap => true,
            SandboxDriver::Auto => settings.docker_host.is_none() && !Docker::has_usual_socket(),
            SandboxDriver::Docker | SandboxDriver::None => false,
        };
        if is_meant {
            Self::Begun(tasks.spawn(Bubblewrap::open(bubblewrap)))
        } else {
            Self::Later(bubblewrap)
        }
    }

    async fn end(self) -> Result<Arc<dyn Runtime>, Error> {
        let opened = match self {
            Self::Begun(opening) => match opening.await {
                Ok(opened) => opened,
                Err(broken) => std::panic::resume_unwind(broken.into_panic()),
            },
            Self::Later(settings) => Bubblewrap::open(settings).await,
        };
        let bubblewrap = opened?;
        tracing::info!(sandbox.limits = ?bubblewrap.limits(), "Use bubblewrap for sandboxes");
        Ok(Arc::new(bubblewrap))
    }
}

/// The sandbox runtime, or the problem if there is none.
#[derive(Clone)]
pub(super) struct FoundRuntime {
    pub(super) runtime: Arc<dyn Runtime>,
    pub(super) problem: Option<Arc<Error>>,
    /// The reason `auto` did not choose Docker.
    pub(super) passed_over: Option<Arc<Error>>,
    /// The search for an engine that may still come.
    pub(super) search: Option<Search>,
    /// The disk that it may fill.
    pub(super) disk: DiskMonitor,
    /// The hosts that commands inside may reach.
    pub(super) network: McpNetwork,
}

/// The search for an engine that did not answer, or that lacked something.
#[derive(Clone)]
pub(super) struct Search {
    pub(super) late: Arc<DeferredRuntime>,
    settings: Sandbox,
    names: Names,
    disk: DiskMonitor,
}

/// Opens the runtime of the settings; without one, sessions work without sandboxed tools.
pub(super) async fn open(
    settings: &Sandbox,
    names: Names,
    disk: &DiskMonitor,
    trial: Trial,
) -> FoundRuntime {
    let mut place = runtime(settings, names, disk, trial).await;
    place.network = settings.network.clone();
    if let Some(problem) = &place.problem {
        tracing::warn!(error = ?problem, "Tools that need a sandbox are off: {problem}");
    }
    reap(&*place.runtime).await;
    place
}

/// Opens the runtime of the settings for a command, or returns the reason that there is none. Nothing that
/// another process started is ended, and a full disk pauses nothing.
pub(super) async fn open_for_command(
    settings: &Sandbox,
    names: Names,
    folder: PathBuf,
) -> Result<Arc<dyn Runtime>, Arc<Error>> {
    let disk = DiskMonitor::off();
    // Control groups and marks of its own: those of a gateway are the gateway's to remove.
    let own = hashed(&[folder.as_os_str().as_encoded_bytes()]);
    let own = format!("{own}-command-{}", std::process::id());
    let trial = Trial::begin(settings, folder, own, &disk, &TaskTracker::new());
    let found = runtime(settings, names, &disk, trial).await;
    match found.problem {
        Some(problem) => Err(problem),
        None => Ok(found.runtime),
    }
}

/// Returns the limits of one sandbox.
pub(super) fn bounds(settings: &Sandbox) -> Bounds {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the settings hold it between 0.01 and some hundred"
    )]
    let cpu_millis = (settings.cpus * 1_000.0) as u32;
    Bounds {
        memory_bytes: mebibytes(settings.memory_mb),
        cpu_millis,
        processes: settings.pids,
        workspace_bytes: mebibytes(settings.workspace_mb),
        lifetime: None,
    }
}

impl FoundRuntime {
    pub(super) fn on(runtime: Arc<dyn Runtime>, disk: &DiskMonitor) -> Self {
        Self {
            runtime,
            problem: None,
            passed_over: None,
            search: None,
            disk: disk.clone(),
            network: McpNetwork::Word(NetworkWord::None),
        }
    }

    /// No runtime until the next start.
    fn off(problem: Error, disk: &DiskMonitor) -> Self {
        Self {
            problem: Some(Arc::new(problem)),
            ..Self::on(Arc::new(Off), disk)
        }
    }

    /// No runtime yet; the engine is looked for again.
    fn awaiting(lack: Error, settings: &Sandbox, names: Names, disk: &DiskMonitor) -> Self {
        let lack = Arc::new(lack);
        let late = Arc::new(DeferredRuntime::new(Arc::clone(&lack)));
        Self {
            problem: Some(lack),
            search: Some(Search {
                late: Arc::clone(&late),
                settings: settings.clone(),
                names,
                disk: disk.clone(),
            }),
            ..Self::on(late, disk)
        }
    }

    /// Makes the sandbox host of all sessions.
    pub(super) fn for_sessions(self, settings: &Sandbox, records: Records) -> SandboxHost {
        let bounds = bounds(settings);
        SandboxHost {
            runtime: self.runtime,
            disk: self.disk,
            records,
            command_limit: settings.command_timeout,
            output_bytes: settings.output_kb * 1024,
            bounds,
            idle_limit: settings.idle,
            checkpoints: CheckpointLimits {
                steps: settings.checkpoints.into(),
                bytes: mebibytes(settings.checkpoints_mb),
            },
            network: settings.network.clone(),
            // Each entry was checked when it was read.
            network_on_request: Arc::new(
                AllowedHosts::parse(settings.network_on_request.hosts()).unwrap_or_default(),
            ),
            has_foreign_image: settings.image != OWN_IMAGE,
            packages: packages(settings, bounds),
        }
    }
}

fn mebibytes(amount: u32) -> u64 {
    u64::from(amount) << 20
}

/// Makes the settings for installing packages, with the sandboxes' own limits unless the settings name
/// others.
fn packages(settings: &Sandbox, bounds: Bounds) -> PackageInstalling {
    let packages = &settings.packages;
    let hosts = packages.hosts.iter().flat_map(|hosts| hosts.split(','));
    let hosts = hosts.map(str::trim).filter(|host| !host.is_empty());
    PackageInstalling {
        is_on: packages.enabled,
        npm_registry: packages.npm_registry.trim_end_matches('/').to_owned(),
        pypi_index: packages.pypi_index.trim_end_matches('/').to_owned(),
        bundle_bytes: mebibytes(packages.bundle_mb),
        more_hosts: hosts.map(str::to_owned).collect(),
        bounds: Bounds {
            memory_bytes: mebibytes(packages.memory_mb),
            // Unpacking thousands of files takes most of the time.
            cpu_millis: bounds.cpu_millis.max(1_000),
            processes: bounds.processes.max(128),
            workspace_bytes: mebibytes(packages.size_mb),
            lifetime: Some(packages.timeout),
        },
    }
}

impl Search {
    /// Looks once for the engine. The result has the configured limits, and the sandboxes of an earlier
    /// process have been ended.
    pub(super) async fn find(&self) -> Result<Arc<dyn Runtime>, Error> {
        let found = docker(&self.settings, self.names.clone(), &self.disk).await?;
        let found = with_room(found, &self.settings, &self.disk);
        reap(&*found).await;
        Ok(found)
    }
}

fn with_room(
    runtime: Arc<dyn Runtime>,
    settings: &Sandbox,
    disk: &DiskMonitor,
) -> Arc<dyn Runtime> {
    let room = Room {
        most: settings.most,
        idle: settings.idle,
        patience: PATIENCE,
    };
    Arc::new(Capacity::new(runtime, room, disk.clone()))
}

async fn reap(runtime: &dyn Runtime) {
    match runtime.reap().await {
        Ok(0) => {}
        Ok(ended) => tracing::info!(
            ended,
            "Ended what the last process left running in sandboxes"
        ),
        Err(error) => tracing::warn!(?error, "What the last process left running was not ended"),
    }
}

async fn runtime(
    settings: &Sandbox,
    names: Names,
    disk: &DiskMonitor,
    trial: Trial,
) -> FoundRuntime {
    let on = |runtime| FoundRuntime::on(with_room(runtime, settings, disk), disk);
    match settings.driver {
        SandboxDriver::None => FoundRuntime::off(Error::Off, disk),
        SandboxDriver::Docker => match awaited_docker(settings, names.clone(), disk).await {
            Ok(docker) => on(docker),
            Err(lack) => FoundRuntime::awaiting(lack, settings, names, disk),
        },
        SandboxDriver::Bubblewrap => match trial.end().await {
            Ok(bubblewrap) => on(bubblewrap),
            Err(error) => FoundRuntime::off(error, disk),
        },
        SandboxDriver::Auto => whatever_works(settings, names, disk, trial).await,
    }
}

/// Chooses Docker, otherwise bubblewrap, otherwise none, and reports what was passed over. The choice stays
/// until the next start, because files are where they were made; only none may still become Docker.
async fn whatever_works(
    settings: &Sandbox,
    names: Names,
    disk: &DiskMonitor,
    trial: Trial,
) -> FoundRuntime {
    let on = |runtime| FoundRuntime::on(with_room(runtime, settings, disk), disk);
    let passed_over = match docker(settings, names.clone(), disk).await {
        Ok(docker) => return on(docker),
        Err(error) => Arc::new(error),
    };
    tracing::info!("Docker is passed over: {passed_over}");
    let place = match trial.end().await {
        Ok(bubblewrap) => on(bubblewrap),
        Err(lack) => FoundRuntime::awaiting(lack, settings, names, disk),
    };
    FoundRuntime {
        passed_over: Some(passed_over),
        ..place
    }
}

/// Waits for Docker, which may still be starting.
async fn awaited_docker(
    settings: &Sandbox,
    names: Names,
    disk: &DiskMonitor,
) -> Result<Arc<dyn Runtime>, Error> {
    let began = Instant::now();
    let mut is_told = false;
    loop {
        let opened = docker(settings, names.clone(), disk).await;
        let Err(Error::Engine(problem @ DockerProblem::Unreachable { .. })) = &opened else {
            return opened;
        };
        if began.elapsed() > ENGINE_PATIENCE {
            return opened;
        }
        if !std::mem::replace(&mut is_told, true) {
            let seconds = ENGINE_PATIENCE.as_secs();
            tracing::info!("Wait up to {seconds} s for the container engine: {problem}");
        }
        tokio::time::sleep(ENGINE_PAUSE).await;
    }
}

async fn docker(
    settings: &Sandbox,
    names: Names,
    disk: &DiskMonitor,
) -> Result<Arc<dyn Runtime>, Error> {
    let is_local = settings
        .docker_host
        .as_ref()
        .is_none_or(|host| host.starts_with("unix:") || host.starts_with('/'));
    let opened = Docker::open(DockerSettings {
        host: settings.docker_host.clone(),
        image: settings.image.clone(),
        packages_image: settings.packages.image.clone(),
        runtime: settings.runtime.clone(),
        pool_size: usize::try_from(settings.pool_size).unwrap_or(usize::MAX),
        installation: names.installation,
        is_beside: names.is_beside,
        peers: names.peers,
        disk: disk.clone(),
        counts_by_runs: None,
    });
    let docker = opened.await?;
    if is_local {
        warn_of_few_instances();
    }
    Ok(Arc::new(docker))
}

/// Warns about few inotify instances: all containers have the same user, and the kernel counts instances per
/// user.
fn warn_of_few_instances() {
    let Ok(text) = fs::read_to_string("/proc/sys/fs/inotify/max_user_instances") else {
        return;
    };
    let instances = text.trim().parse::<u32>().ok();
    if let Some(instances) = instances.filter(|few| *few < MIN_INSTANCES) {
        tracing::warn!(
            instances,
            "All containers share the inotify instances of one user, so that one session can use up all: \
             set `fs.inotify.max_user_instances` of this machine to 8192 (docs/sandbox.md)"
        );
    }
}

/// Finds the server beside our own program, or one folder up in a build folder, where tests run in `deps`.
fn server_binary() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    let folders = own.ancestors().skip(1).take(2);
    let mut found = folders.flat_map(|folder| SERVERS.map(|name| folder.join(name)));
    found
        .find(|path| path.is_file())
        .unwrap_or_else(|| own.with_file_name(SERVERS[0]))
}
