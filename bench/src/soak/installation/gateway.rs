//! One gateway of an installation, which is started, stopped, killed and restarted on the same data.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustix::process::Signal;

use super::lock;
use crate::process::{Admin, Program, free_address};

/// The time that a killed gateway may take until it serves again: its dependencies may be away too.
const REVIVAL: Duration = Duration::from_mins(1);
/// The pause between two attempts, like that of a service manager.
const PAUSE: Duration = Duration::from_millis(500);

/// The number of log lines that are reported if a gateway does not start.
const LAST_LINES: usize = 20;

/// Settings by the names of their environment variables.
pub(crate) type Env = Vec<(&'static str, String)>;

/// A gateway that can be restarted on the same data and at the same address.
pub(crate) struct Gateway {
    /// Its name in reports.
    pub(crate) name: String,
    /// The address for clients.
    pub(crate) address: SocketAddr,
    /// The address of its metrics.
    pub(crate) metrics: SocketAddr,
    sepal: PathBuf,
    /// The folder of its data.
    pub(crate) folder: PathBuf,
    env: Env,
    program: Mutex<Option<Program>>,
    /// See [`Gateway::era`].
    era: AtomicU64,
}

/// A period in which a gateway was running, or away because it was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Era(u64);

impl Gateway {
    pub(crate) fn new(name: String, sepal: &Path, folder: PathBuf, mut env: Env) -> Result<Self> {
        let (address, metrics) = (free_address()?, free_address()?);
        let gateway_tmp = folder.join("tmp");
        fs::create_dir_all(&gateway_tmp)?;
        env.push(("SPL_HTTP_PORT", address.port().to_string()));
        env.push(("SPL_METRICS_LISTEN", metrics.to_string()));
        env.push(("TMPDIR", gateway_tmp.display().to_string()));
        Ok(Self {
            name,
            address,
            metrics,
            sepal: sepal.to_owned(),
            folder,
            env,
            program: Mutex::default(),
            era: AtomicU64::new(0),
        })
    }

    /// Starts the gateway, and waits until it accepts connections. An error contains the last lines of its
    /// log.
    pub(crate) fn start(&self) -> Result<()> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log_path())?;
        let program = Program::gateway(&self.sepal, &self.folder, &self.env, Some(log))
            .with_context(|| format!("{} does not start:\n{}", self.name, self.last_lines()))?;
        *lock(&self.program) = Some(program);
        Ok(())
    }

    /// Shuts the gateway down; returns its exit status and the elapsed time.
    pub(crate) fn stop(&self) -> Result<(ExitStatus, Duration)> {
        let mut program = lock(&self.program).take().context("it runs")?;
        let began = Instant::now();
        let status = program.end_by(Signal::TERM)?;
        Ok((status, began.elapsed()))
    }

    /// Kills the gateway. From now on, missing answers are expected.
    pub(crate) fn kill(&self) -> Result<()> {
        self.era.fetch_add(1, Ordering::SeqCst);
        let mut program = lock(&self.program).take().context("it runs")?;
        program.end_by(Signal::KILL)?;
        Ok(())
    }

    /// Starts the gateway after a kill, with retries until it serves.
    pub(crate) fn revive(&self) -> Result<()> {
        let began = Instant::now();
        while let Err(error) = self.start() {
            if began.elapsed() > REVIVAL {
                return Err(error);
            }
            std::thread::sleep(PAUSE);
        }
        self.era.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// Replays every session from its journal; returns whether all sessions matched, and the output.
    pub(crate) fn replay_all(&self) -> Result<(bool, String)> {
        let admin = Admin {
            sepal: &self.sepal,
            folder: &self.folder,
            env: &self.env,
        };
        admin.replay_all()
    }

    /// Returns the current era.
    pub(crate) fn era(&self) -> Era {
        Era(self.era.load(Ordering::SeqCst))
    }

    /// True if the gateway was killed, or away because of a kill, in `era` or since: then anything that was
    /// begun with it in `era` may have failed.
    pub(crate) fn was_killed_since(&self, era: Era) -> bool {
        era.0 % 2 == 1 || self.era() != era
    }

    /// Returns its process id, if it is running.
    pub(crate) fn pid(&self) -> Option<u32> {
        lock(&self.program).as_ref().map(Program::pid)
    }

    /// Returns the processor seconds of its process.
    pub(crate) fn cpu_seconds(&self) -> Option<f64> {
        lock(&self.program).as_ref()?.cpu_seconds().ok()
    }

    fn log_path(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Returns its log.
    pub(crate) fn log(&self) -> String {
        let log = fs::read(self.log_path()).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// Returns the last lines of its log.
    fn last_lines(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        let first = lines.len().saturating_sub(LAST_LINES);
        lines.get(first..).unwrap_or_default().join("\n")
    }

    /// Returns the names of all temporary files, and of all data except workspaces.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        for part in ["tmp", "data"] {
            collect(&self.folder.join(part), part, &mut files);
        }
        files.sort();
        files
    }

    /// Returns the folders of the workspaces, which have the names of their sandboxes.
    pub(crate) fn workspaces(&self) -> Vec<PathBuf> {
        let folder = self.folder.join("data/workspaces");
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    /// Returns the names of its sandboxes.
    pub(crate) fn sandboxes(&self) -> BTreeSet<String> {
        let workspaces = self.workspaces();
        let names = workspaces.iter().filter_map(|path| path.file_name());
        names
            .map(|name| name.to_string_lossy().into_owned())
            .collect()
    }
}

/// Collects all file paths below `path` except workspaces, as `name/…`.
fn collect(path: &Path, name: &str, into: &mut Vec<String>) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        let name = format!("{name}/{}", entry.file_name().to_string_lossy());
        if name == "data/workspaces" {
            continue;
        }
        if entry.path().is_dir() {
            collect(&entry.path(), &name, into);
        } else {
            into.push(name);
        }
    }
}
