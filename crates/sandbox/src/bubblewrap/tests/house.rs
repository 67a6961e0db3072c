//! Provides a runtime with its own data folder, and helpers to run things in it.

use std::{
    collections::BTreeMap,
    future::Future,
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use tempfile::TempDir;
use tokio::io::AsyncReadExt;

use super::super::{Bubblewrap, Settings};
use crate::{Access, Bounds, DiskMonitor, Launch, Packages, Program, ProgramEnd, Running, Runtime};
use sepal_core::domain::SandboxId;

/// Long enough for a busy machine; only failing tests wait for it.
const DEADLINE: Duration = Duration::from_mins(1);

/// Numbers the houses: tests run side by side, and none may reap another's sandboxes.
static HOUSES: AtomicU32 = AtomicU32::new(0);

pub(super) struct House {
    pub(super) runtime: Bubblewrap,
    pub(super) data: TempDir,
}

impl House {
    pub(super) async fn open() -> Self {
        Self::with(false).await
    }

    pub(super) async fn without_cgroups() -> Self {
        Self::with(true).await
    }

    pub(super) async fn with(forces_watchdog: bool) -> Self {
        Self::forced(forces_watchdog, false).await
    }

    pub(super) async fn without_overlays() -> Self {
        Self::forced(false, true).await
    }

    async fn forced(forces_watchdog: bool, forces_copies: bool) -> Self {
        let data = tempfile::tempdir().unwrap();
        let settings = Settings {
            data_dir: data.path().to_owned(),
            installation: new_installation(),
            server: server(),
            disk: DiskMonitor::off(),
            forces_watchdog,
            forces_copies,
        };
        let runtime = in_time(Bubblewrap::open(settings)).await;
        let runtime = runtime.unwrap_or_else(|error| panic!("no sandbox, no test: {error}"));
        Self { runtime, data }
    }

    pub(super) async fn start(&self, launch: Launch) -> Running {
        in_time(self.runtime.start(launch)).await.unwrap()
    }

    /// Runs a script to its end, and returns its output and how it ended.
    pub(super) async fn run(&self, script: &str) -> (String, ProgramEnd) {
        self.run_launch(bash(1, script)).await
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

    pub(super) fn workspace(&self, number: u128) -> PathBuf {
        let id = SandboxId::from_bits(number);
        self.data.path().join("workspaces").join(id.as_str())
    }
}

pub(super) fn new_installation() -> String {
    let number = HOUSES.fetch_add(1, Ordering::Relaxed);
    format!("test-{}-{number}", std::process::id())
}

/// Returns the path of the server beside these tests: the static one that `./run` builds, or else cargo's
/// own.
pub(super) fn server() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let built = tests.parent().unwrap().parent().unwrap();
    let names = ["mcp-server", "sepal-mcp-server"];
    let found = names
        .map(|name| built.join(name))
        .into_iter()
        .find(|path| path.is_file());
    found.expect("the server is missing: run `cargo build -p sepal-mcp-server` first")
}

pub(super) fn bash(number: u128, script: &str) -> Launch {
    command(number, &["bash", "-c", script])
}

pub(super) fn command(number: u128, words: &[&str]) -> Launch {
    Launch {
        sandbox: SandboxId::from_bits(number),
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

pub(super) async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, work)
        .await
        .expect("it takes too long")
}
