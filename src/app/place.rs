//! Finds the sandbox of this machine: tried, not assumed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::agent::SandboxPlace;
use crate::config::{Sandbox, SandboxDriver};
use crate::sandbox::{Bounds, Bubblewrap, Error, Off, Runtime, Settings};
use crate::store::Records;

/// The file names of the server that runs in every sandbox: the static one that `./run build` puts
/// beside our program, else cargo's own.
const SERVERS: [&str; 2] = ["mcp-server", "sepal-mcp-server"];

/// What seals tools in, and why nothing does if so.
pub(super) struct OpenPlace {
    pub(super) runtime: Arc<dyn Runtime>,
    pub(super) problem: Option<Error>,
}

/// Opens the runtime of the settings; without one, sessions work without sandboxed tools.
pub(super) async fn open(settings: &Sandbox, data_dir: &Path, installation: &str) -> OpenPlace {
    let (runtime, problem) = runtime(settings, data_dir, installation).await;
    if let Some(problem) = &problem {
        tracing::warn!(error = ?problem, "Tools that need a sandbox are off: {problem}");
    }
    reap(&*runtime).await;
    OpenPlace { runtime, problem }
}

impl OpenPlace {
    /// The place of all sessions.
    pub(super) fn for_sessions(self, settings: &Sandbox, records: Records) -> SandboxPlace {
        let mebibytes = |amount: u32| u64::from(amount) << 20;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the settings hold it between 0.01 and some hundred"
        )]
        let cpu_millis = (settings.cpus * 1_000.0) as u32;
        let bounds = Bounds {
            memory_bytes: mebibytes(settings.memory_mb),
            cpu_millis,
            processes: settings.pids,
            workspace_bytes: mebibytes(settings.workspace_mb),
            lifetime: None,
        };
        SandboxPlace {
            runtime: self.runtime,
            records,
            command_limit: settings.command_timeout,
            bounds,
            idle_limit: settings.idle,
        }
    }
}

async fn reap(runtime: &dyn Runtime) {
    match runtime.reap().await {
        Ok(0) => {}
        Ok(ended) => tracing::info!(ended, "Ended what the last life left running in sandboxes"),
        Err(error) => tracing::warn!(?error, "What the last life left running was not ended"),
    }
}

async fn runtime(
    settings: &Sandbox,
    data_dir: &Path,
    installation: &str,
) -> (Arc<dyn Runtime>, Option<Error>) {
    match settings.driver {
        SandboxDriver::None => (Arc::new(Off), Some(Error::Off)),
        SandboxDriver::Docker => {
            let problem = "the driver `docker` is not part of this build".to_owned();
            (Arc::new(Off), Some(Error::BadLaunch(problem)))
        }
        SandboxDriver::Auto | SandboxDriver::Bubblewrap => {
            let opened = Bubblewrap::open(Settings {
                data_dir: data_dir.to_owned(),
                installation: installation.to_owned(),
                server: server_binary(),
                forces_watchdog: false,
            });
            match opened.await {
                Ok(bubblewrap) => (Arc::new(bubblewrap), None),
                Err(error) => (Arc::new(Off), Some(error)),
            }
        }
    }
}

/// Beside our own program; one folder up in a build folder, where tests run in `deps`.
fn server_binary() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    let folders = own.ancestors().skip(1).take(2);
    let mut found = folders.flat_map(|folder| SERVERS.map(|name| folder.join(name)));
    found
        .find(|path| path.is_file())
        .unwrap_or_else(|| own.with_file_name(SERVERS[0]))
}
