//! One installation: its gateways, its Redis, its records, and its people. All its data is in one folder,
//! except records that several gateways share.

pub(super) mod gateway;
pub(super) mod records;
pub(super) mod vitals;

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result, bail};
use fastrand::Rng;
use rustix::process::Signal;
use tempfile::TempDir;

use self::gateway::{Env, Gateway};
use self::records::Records;
use crate::process::{Admin, Program, free_address};

/// The secret key that all gateways of an installation share.
const SECRET_KEY: &str = "a key of thirty-two characters or more";

/// Where live sessions are kept, and how many gateways there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Store {
    /// One gateway; in the embedded database.
    Sqlite,
    /// One gateway; in Redis, which is stopped and killed.
    Redis,
    /// Two gateways, one of which is killed now and then; in such a Redis, with records in
    /// PostgreSQL.
    Replicas,
}

impl Store {
    fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Redis => "redis",
            Self::Replicas => "replicas",
        }
    }

    /// Returns the suffixes of its gateways' names.
    fn signs(self) -> &'static [&'static str] {
        match self {
            Self::Sqlite | Self::Redis => &[""],
            Self::Replicas => &["-a", "-b"],
        }
    }
}

/// A person with an API key.
#[derive(Debug, Clone)]
pub(crate) struct Person {
    /// The index of the tenant.
    pub(crate) tenant: usize,
    /// The API key.
    pub(crate) key: String,
}

/// A running installation.
pub(crate) struct Installation {
    /// Its name in reports.
    pub(crate) name: &'static str,
    /// Its gateways, at least one.
    pub(crate) gateways: Vec<Arc<Gateway>>,
    /// Its Redis, if it has one.
    pub(crate) redis: Option<Redis>,
    /// Its records, if they are not in the gateway's own database.
    pub(crate) records: Option<Records>,
    /// Two tenants with two people each.
    pub(crate) people: Vec<Person>,
    /// The counter for [`Installation::next`].
    turn: AtomicUsize,
    _folder: TempDir,
}

impl Installation {
    /// Starts an installation with empty storage, for about `sessions` sessions at a time.
    pub(crate) fn start(
        sepal: &Path,
        store: Store,
        model: SocketAddr,
        sessions: usize,
    ) -> Result<Self> {
        let (folder, signs) = (TempDir::new()?, store.signs());
        let redis = match store {
            Store::Sqlite => None,
            Store::Redis | Store::Replicas => Some(Redis::start(folder.path().join("redis"))?),
        };
        let mut env = environment(model, sessions / signs.len());
        if let Some(redis) = &redis {
            env.push(("SPL_REDIS_URL", format!("redis://{}/0", redis.address)));
        }
        let (mut records, mut shared) = (None, Env::new());
        if store == Store::Replicas {
            let made = Records::make()?;
            shared.push(("DATABASE_URL", made.url.clone()));
            shared.push(("SPL_SECRET_KEY", SECRET_KEY.to_owned()));
            records = Some(made);
        }
        env.extend_from_slice(&shared);
        let mut gateways = Vec::new();
        for sign in signs {
            let folder = folder.path().join(format!("gateway{sign}"));
            let name = format!("{}{sign}", store.name());
            let gateway = Gateway::new(name, sepal, folder, env.clone())?;
            gateway.start()?;
            gateways.push(Arc::new(gateway));
        }
        let first = gateways.first().context("a gateway is there")?;
        let people = people(&Admin {
            sepal,
            folder: &first.folder,
            env: &shared,
        })?;
        Ok(Self {
            name: store.name(),
            gateways,
            redis,
            records,
            people,
            turn: AtomicUsize::new(0),
            _folder: folder,
        })
    }

    /// Returns the index of a random gateway.
    pub(crate) fn any(&self, rng: &mut Rng) -> usize {
        rng.usize(0..self.gateways.len())
    }

    /// Returns the gateway with this index, modulo their number.
    pub(crate) fn gateway(&self, number: usize) -> Option<&Gateway> {
        let gateway = self.gateways.get(number % self.gateways.len());
        gateway.map(AsRef::as_ref)
    }

    /// Returns the gateways in rotation, so that a retry asks another one.
    pub(crate) fn next(&self) -> Option<&Gateway> {
        self.gateway(self.turn.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the workspaces in which a session left its marks.
    pub(crate) fn workspaces_of(&self, tag: &str) -> Vec<PathBuf> {
        let workspaces = self
            .gateways
            .iter()
            .flat_map(|gateway| gateway.workspaces());
        workspaces
            .filter(|workspace| workspace.join(format!("ran-{tag}")).exists())
            .collect()
    }

    /// Returns how often each call of a session left its mark.
    pub(crate) fn marks(&self, tag: &str) -> BTreeMap<String, usize> {
        let mut marks = BTreeMap::new();
        for workspace in self.workspaces_of(tag) {
            let path = workspace.join(format!("ran-{tag}"));
            for mark in fs::read_to_string(path).unwrap_or_default().lines() {
                *marks.entry(mark.to_owned()).or_default() += 1;
            }
        }
        marks
    }
}

fn people(admin: &Admin<'_>) -> Result<Vec<Person>> {
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

/// Returns the settings of one gateway, which has about `sessions` sessions at a time.
fn environment(model: SocketAddr, sessions: usize) -> Env {
    // Fewer sandboxes than sessions, so that sandboxes have to be evicted.
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

/// A Redis that is stopped, killed and restarted on the same data. Every commit is synced, so everything
/// that it acknowledged must survive a kill.
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

    /// Ends it by a signal.
    pub(crate) fn end_by(&self, signal: Signal) -> Result<()> {
        let Some(mut program) = lock(&self.program).take() else {
            bail!("it does not run");
        };
        program.end_by(signal)?;
        Ok(())
    }
}

/// Locks a mutex, even if a thread panicked while it held the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
