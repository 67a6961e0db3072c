//! One installation: its gateways, its Redis, its people. What it keeps lies in one folder.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::process::{Admin, Program, free_address};

/// Where live sessions are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Store {
    /// In the embedded database.
    Sqlite,
    /// In Redis, which is stopped and killed.
    Redis,
}

/// Somebody with a key.
#[derive(Debug, Clone)]
pub(crate) struct Person {
    /// The number of the tenant.
    pub(crate) tenant: usize,
    /// The API key.
    pub(crate) key: String,
}

/// An installation.
pub(crate) struct House {
    /// Its name in reports.
    pub(crate) name: &'static str,
    /// The gateway.
    pub(crate) gateway: Gateway,
    /// Its Redis, if it has one.
    pub(crate) redis: Option<Redis>,
    /// Two tenants with two people each.
    pub(crate) people: Vec<Person>,
    _folder: TempDir,
}

impl House {
    /// Starts it with nothing stored, for about so many sessions at a time.
    pub(crate) fn start(
        sepal: &Path,
        store: Store,
        model: SocketAddr,
        sessions: usize,
    ) -> Result<Self> {
        let folder = TempDir::new()?;
        let redis = match store {
            Store::Sqlite => None,
            Store::Redis => Some(Redis::start(folder.path().join("redis"))?),
        };
        let mut env = environment(model, sessions);
        if let Some(redis) = &redis {
            env.push(("SPL_REDIS_URL", format!("redis://{}/0", redis.address)));
        }
        let gateway = Gateway::new(sepal.to_owned(), folder.path().join("gateway"), env)?;
        gateway.start()?;
        let people = gateway.people()?;
        Ok(Self {
            name: match store {
                Store::Sqlite => "sqlite",
                Store::Redis => "redis",
            },
            gateway,
            redis,
            people,
            _folder: folder,
        })
    }
}

fn environment(model: SocketAddr, sessions: usize) -> Vec<(&'static str, String)> {
    // Fewer sandboxes than sessions: somebody's has to go for somebody else's.
    let sandboxes = (sessions / 3).max(2);
    let text = |value: &str| value.to_owned();
    vec![
        ("SPL_LLM_BASE_URL", format!("http://{model}/v1")),
        ("SPL_LLM_RETRY_INITIAL_BACKOFF", text("0.2")),
        ("SPL_LLM_RETRY_MAX_BACKOFF", text("1")),
        ("SPL_SOCKET_PING_INTERVAL_MS", text("5000")),
        ("SPL_SOCKET_PING_TIMEOUT_MS", text("20000")),
        ("SPL_LIMIT_CONNECTS_PER_MINUTE", text("0")),
        ("SPL_SANDBOX_MAX", sandboxes.to_string()),
        ("SPL_SANDBOX_IDLE_MINUTES", text("1")),
        ("SPL_SANDBOX_COMMAND_TIMEOUT", text("10")),
    ]
}

/// A gateway that is started again on the same data and at the same address.
pub(crate) struct Gateway {
    /// Where clients connect.
    pub(crate) address: SocketAddr,
    /// Where its figures are.
    pub(crate) metrics: SocketAddr,
    sepal: PathBuf,
    folder: PathBuf,
    env: Vec<(&'static str, String)>,
    program: Mutex<Option<Program>>,
}

impl Gateway {
    fn new(sepal: PathBuf, folder: PathBuf, mut env: Vec<(&'static str, String)>) -> Result<Self> {
        let (address, metrics) = (free_address()?, free_address()?);
        let gateway_tmp = folder.join("tmp");
        fs::create_dir_all(&gateway_tmp)?;
        env.push(("SPL_HTTP_PORT", address.port().to_string()));
        env.push(("SPL_METRICS_LISTEN", metrics.to_string()));
        env.push(("TMPDIR", gateway_tmp.display().to_string()));
        Ok(Self {
            address,
            metrics,
            sepal,
            folder,
            env,
            program: Mutex::default(),
        })
    }

    /// Starts it; waits until it takes connections.
    pub(crate) fn start(&self) -> Result<()> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log_path())?;
        let program = Program::gateway(&self.sepal, &self.folder, &self.env, Some(log))?;
        *lock(&self.program) = Some(program);
        Ok(())
    }

    /// An orderly end; how it ended, and how long that took.
    pub(crate) fn stop(&self) -> Result<(ExitStatus, Duration)> {
        let mut program = lock(&self.program).take().context("it runs")?;
        let began = Instant::now();
        let status = program.end_by(Signal::TERM)?;
        Ok((status, began.elapsed()))
    }

    /// Its process.
    pub(crate) fn pid(&self) -> Option<u32> {
        lock(&self.program).as_ref().map(Program::pid)
    }

    /// Processor seconds of its process.
    pub(crate) fn cpu_seconds(&self) -> Option<f64> {
        lock(&self.program).as_ref()?.cpu_seconds().ok()
    }

    fn people(&self) -> Result<Vec<Person>> {
        let admin = Admin {
            sepal: &self.sepal,
            folder: &self.folder,
        };
        let mut people = Vec::new();
        for (tenant, name) in ["acme", "umbrella"].into_iter().enumerate() {
            admin.add_tenant(name)?;
            for person in ["ana", "bo"] {
                let key = admin.add_member(name, person)?;
                people.push(Person { tenant, key });
            }
        }
        Ok(people)
    }

    fn log_path(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// What it logged.
    pub(crate) fn log(&self) -> String {
        let log = fs::read(self.log_path()).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// Names of all temporary files, and of all of its data but workspaces.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        for part in ["tmp", "data"] {
            collect(&self.folder.join(part), part, &mut files);
        }
        files.sort();
        files
    }

    /// The workspaces, by the name of their sandbox.
    pub(crate) fn workspaces(&self) -> Vec<PathBuf> {
        let folder = self.folder.join("data/workspaces");
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    /// The workspace in which a session left its marks.
    pub(crate) fn workspace_of(&self, tag: &str) -> Option<PathBuf> {
        let mut workspaces = self.workspaces().into_iter();
        workspaces.find(|workspace| workspace.join(format!("ran-{tag}")).exists())
    }

    /// How often each call of a session left its mark.
    pub(crate) fn marks(&self, tag: &str) -> BTreeMap<String, usize> {
        let mut marks = BTreeMap::new();
        for workspace in self.workspaces() {
            let path = workspace.join(format!("ran-{tag}"));
            for mark in fs::read_to_string(path).unwrap_or_default().lines() {
                *marks.entry(mark.to_owned()).or_default() += 1;
            }
        }
        marks
    }
}

/// All paths below `path` but workspaces, as `name/…`.
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

/// A Redis that is stopped, killed and started again on the same data. Every commit is synced: what
/// it acknowledged has to be there after a kill.
pub(crate) struct Redis {
    address: SocketAddr,
    folder: PathBuf,
    program: Mutex<Option<Program>>,
}

impl Redis {
    fn start(folder: PathBuf) -> Result<Self> {
        fs::create_dir_all(&folder)?;
        let redis = Self {
            address: free_address()?,
            folder,
            program: Mutex::default(),
        };
        redis.launch()?;
        Ok(redis)
    }

    /// Starts it.
    pub(crate) fn launch(&self) -> Result<()> {
        let program = Program::redis_on(&self.folder, self.address, "always")?;
        *lock(&self.program) = Some(program);
        Ok(())
    }

    /// Ends it by that signal.
    pub(crate) fn end_by(&self, signal: Signal) -> Result<()> {
        let Some(mut program) = lock(&self.program).take() else {
            bail!("it does not run");
        };
        program.end_by(signal)?;
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
