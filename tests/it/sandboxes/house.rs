//! A runtime of its own for each test, and short ways to run things in it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rmcp::model::{CallToolRequestParams, ContentBlock};
use rmcp::service::RunningService;
use rmcp::{RoleClient, ServiceExt as _};
use sepal::domain::{Most, SandboxId};
use sepal::sandbox::{
    Access, Bounds, Bubblewrap, Capacity, DiskMonitor, Docker, DockerSettings, Launch, Life,
    Packages, Peers, Program, ProgramEnd, Room, Running, Runtime, Settings,
};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::AsyncReadExt as _;

use crate::support::{Door, OpenDoor, docker};

/// Long enough for a busy machine; only failing tests wait for it.
const DEADLINE: Duration = Duration::from_mins(1);

/// More than any test needs that is not about room.
const PLENTY: Room = Room {
    most: Most {
        all: Some(1_000),
        per_tenant: None,
        per_user: None,
    },
    idle: Duration::from_hours(1),
    patience: DEADLINE,
};

/// Tests run side by side, and none may reap another's sandboxes.
static HOUSES: AtomicU32 = AtomicU32::new(0);

pub(super) struct House {
    pub(super) runtime: Arc<dyn Runtime>,
    /// The same without room of its own, for tests that give it some.
    pub(super) plain: Arc<dyn Runtime>,
    pub(super) installation: String,
    numbers: u128,
    _data: TempDir,
    door: Option<OpenDoor>,
}

impl House {
    pub(super) async fn bubblewrap() -> Self {
        Self::bubblewrap_on(DiskMonitor::off()).await
    }

    /// With workspaces on a disk that the test fills.
    pub(super) async fn bubblewrap_on(disk: DiskMonitor) -> Self {
        let (data, installation) = (tempfile::tempdir().unwrap(), new_installation());
        let settings = Settings {
            data_dir: data.path().to_owned(),
            installation: installation.clone(),
            server: server(),
            disk: disk.clone(),
            forces_watchdog: false,
            forces_copies: false,
        };
        let runtime = in_time(Bubblewrap::open(settings)).await;
        let runtime = runtime.unwrap_or_else(|error| panic!("no sandbox, no test: {error}"));
        Self::with(Arc::new(runtime), installation, data, disk)
    }

    pub(super) async fn docker(door: Door) -> Self {
        Self::docker_with(door, |_| {}).await
    }

    pub(super) async fn docker_with(door: Door, change: impl FnOnce(&mut DockerSettings)) -> Self {
        let installation = new_installation();
        let door = door.open(&docker::address()).await;
        let mut settings = docker_settings(&installation);
        settings.host = Some(door.address.clone());
        change(&mut settings);
        let disk = settings.disk.clone();
        let runtime = in_time(Docker::open(settings)).await;
        let runtime = runtime.unwrap_or_else(|error| panic!("no sandbox, no test: {error}"));
        let data = tempfile::tempdir().unwrap();
        Self {
            door: Some(door),
            ..Self::with(Arc::new(runtime), installation, data, disk)
        }
    }

    fn with(
        runtime: Arc<dyn Runtime>,
        installation: String,
        data: TempDir,
        disk: DiskMonitor,
    ) -> Self {
        // Names at an engine are shared by all that use it.
        let numbers = rand::random::<u128>() << 16;
        let plain = runtime;
        let runtime = Arc::new(Capacity::new(Arc::clone(&plain), PLENTY, disk));
        Self {
            runtime,
            plain,
            installation,
            numbers,
            _data: data,
            door: None,
        }
    }

    /// What another life of this installation would open its runtime with.
    pub(super) fn docker_settings(&self) -> DockerSettings {
        DockerSettings {
            host: self.door.as_ref().map(|door| door.address.clone()),
            ..docker_settings(&self.installation)
        }
    }

    pub(super) fn sandbox(&self, number: u128) -> SandboxId {
        SandboxId::from_bits(self.numbers + number)
    }

    pub(super) fn bash(&self, number: u128, script: &str) -> Launch {
        self.command(number, &["bash", "-c", script])
    }

    pub(super) fn command(&self, number: u128, words: &[&str]) -> Launch {
        Launch {
            sandbox: self.sandbox(number),
            packages: Packages::None,
            holder: None,
            server: "test".to_owned(),
            program: Program::Command(words.iter().copied().map(str::to_owned).collect()),
            environment: BTreeMap::new(),
            workspace: Access::ReadWrite,
            egress: None,
            bounds: Bounds::default(),
        }
    }

    pub(super) fn bundled(&self, number: u128) -> Launch {
        Launch {
            program: Program::Bundled {
                command_timeout: Duration::from_secs(30),
                output_bytes: 1 << 20,
            },
            ..self.bash(number, "")
        }
    }

    pub(super) async fn start(&self, launch: Launch) -> Running {
        in_time(self.runtime.start(launch)).await.unwrap()
    }

    /// Runs a script to its end: what it said and how it ended.
    pub(super) async fn run(&self, script: &str) -> (String, ProgramEnd) {
        self.run_launch(self.bash(1, script)).await
    }

    pub(super) async fn run_launch(&self, launch: Launch) -> (String, ProgramEnd) {
        let mut running = self.start(launch).await;
        let mut said = String::new();
        in_time(running.stdout.read_to_string(&mut said))
            .await
            .unwrap();
        let ended = in_time(running.life.ended()).await;
        while let Some(line) = running.stderr.recv().await {
            said.push_str(&line);
            said.push('\n');
        }
        (said, ended)
    }

    /// The bundled server in sandbox `number`, with a client.
    pub(super) async fn serve(&self, number: u128, bounds: Bounds) -> Served {
        let launch = Launch {
            bounds,
            ..self.bundled(number)
        };
        let running = self.start(launch).await;
        Served::connect(running).await
    }

    /// Leaves nothing to the next test.
    pub(super) async fn close(self) {
        in_time(self.runtime.close()).await;
        for sandbox in self.runtime.workspaces().await.unwrap() {
            self.runtime.remove_workspace(&sandbox).await.unwrap();
        }
    }
}

pub(super) struct Served {
    pub(super) client: RunningService<RoleClient, ()>,
    pub(super) life: Life,
}

impl Served {
    pub(super) async fn connect(mut running: Running) -> Self {
        let connecting = ().serve((running.stdout, running.stdin));
        let Ok(client) = in_time(connecting).await else {
            let said = in_time(running.stderr.recv()).await;
            panic!("the server did not answer but said {said:?}");
        };
        Self {
            client,
            life: running.life,
        }
    }

    pub(super) async fn call(&self, tool: &'static str, arguments: Value) -> String {
        let arguments = arguments.as_object().unwrap().clone();
        let request = CallToolRequestParams::new(tool).with_arguments(arguments);
        let result = in_time(self.client.call_tool(request)).await.unwrap();
        let Some(ContentBlock::Text(text)) = result.content.first() else {
            panic!("text is expected");
        };
        text.text.clone()
    }
}

pub(super) fn docker_settings(installation: &str) -> DockerSettings {
    DockerSettings {
        host: Some(docker::address()),
        image: docker::image(),
        packages_image: docker::image(),
        runtime: None,
        pool_size: 0,
        installation: installation.to_owned(),
        is_beside: false,
        peers: Peers::none(),
        disk: DiskMonitor::off(),
        counts_by_runs: None,
    }
}

pub(super) fn new_installation() -> String {
    let number = HOUSES.fetch_add(1, Ordering::Relaxed);
    format!("it-{}-{number}", std::process::id())
}

/// The static server that `./run` builds, else cargo's own.
fn server() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let built = tests.parent().unwrap().parent().unwrap();
    let found = ["mcp-server", "sepal-mcp-server"]
        .map(|name| built.join(name))
        .into_iter()
        .find(|path| path.is_file());
    found.expect("the server is missing: run `./run step build_sandbox_server release debug`")
}

pub(super) async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, work)
        .await
        .expect("it takes too long")
}
