//! What outlives the process: journals of sessions ([`live`]) and everything else ([`records`]),
//! both in one SQLite file of a locked data folder, or in a database of a PostgreSQL server; the
//! journals in Redis where several gateways share them.

pub mod backup;
pub(crate) mod clock;
mod data_dir;
mod db;
mod error;
pub mod live;
pub mod records;
pub mod sealed;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use data_dir::{DataDir, Holder};
pub use error::{Error, RedisTrouble};
pub use live::{Appended, Head, LiveStore, NewRecord, Record, Snapshot};
pub use records::Records;
pub use sealed::Sealer;

use db::Db;
use live::cluster_bus::{ClusterBus, LocalBus};
use live::{RedisBus, RedisLive, RedisSettings};

/// Where things are kept and how.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The data folder; created if missing.
    pub data_dir: PathBuf,
    /// `sqlite://<file>` or `postgres://…`; without it, `sepal.db` in the data folder.
    pub database_url: Option<String>,
    /// Whether snapshots are written compressed; both forms are read.
    pub compression: bool,
    /// Where the journals are, if not in the database: `redis://`, `rediss://` (TLS) or `unix://`.
    pub redis_url: Option<SecretString>,
    /// Whether a Redis is taken that may lose what it acknowledged.
    pub allow_volatile: bool,
    /// How long Redis keeps a finished session after its last commit; `None` = for ever.
    pub history_ttl: Option<Duration>,
}

impl Settings {
    /// Everything in one folder, as without any setting.
    pub fn in_folder(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            database_url: None,
            compression: true,
            redis_url: None,
            allow_volatile: false,
            history_ttl: None,
        }
    }

    fn redis(&self) -> Option<RedisSettings> {
        let url = self.redis_url.clone()?;
        Some(RedisSettings {
            url,
            allow_volatile: self.allow_volatile,
            history_ttl: self.history_ttl,
            compression: self.compression,
        })
    }
}

/// Who opens a data folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The one server: takes the lock.
    Serve,
    /// A command that works beside it. It reads journals and changes records; appending is the
    /// server's.
    Beside,
}

/// The open store.
#[derive(Clone)]
pub struct Store {
    dir: DataDir,
    db: Db,
    live: Arc<dyn LiveStore>,
    redis: Option<Arc<str>>,
    cluster_bus: Arc<dyn ClusterBus>,
}

impl Store {
    /// Opens folder and database and starts the writer on `tasks`; after `shutdown` it writes what
    /// is queued and ends, so call that last.
    pub async fn open(
        settings: &Settings,
        access: Access,
        tasks: &TaskTracker,
        shutdown: CancellationToken,
    ) -> Result<Self, Error> {
        let dir = match access {
            Access::Serve => DataDir::lock(&settings.data_dir)?,
            Access::Beside => DataDir::open_beside(&settings.data_dir)?,
        };
        Self::open_at(dir, settings, access, (tasks, shutdown)).await
    }

    /// [`Self::open`] as the server, in a folder whose lock is held already.
    pub async fn open_locked(
        dir: DataDir,
        settings: &Settings,
        tasks: &TaskTracker,
        shutdown: CancellationToken,
    ) -> Result<Self, Error> {
        Self::open_at(dir, settings, Access::Serve, (tasks, shutdown)).await
    }

    async fn open_at(
        dir: DataDir,
        settings: &Settings,
        access: Access,
        (tasks, shutdown): (&TaskTracker, CancellationToken),
    ) -> Result<Self, Error> {
        let db = Db::open(settings.database_url.as_deref(), dir.path()).await?;
        let cluster_bus: Arc<dyn ClusterBus> = match (settings.redis(), access) {
            (Some(redis), Access::Serve) => {
                Arc::new(RedisBus::open(&redis, tasks, shutdown.clone())?)
            }
            (Some(_), Access::Beside) | (None, _) => Arc::new(LocalBus::new()),
        };
        let mut address = None;
        let live: Arc<dyn LiveStore> = if let Some(redis) = settings.redis() {
            let live = RedisLive::open(&redis, access, tasks, shutdown).await?;
            address = Some(live.address().into());
            Arc::new(live)
        } else {
            let how = (access, settings.compression);
            live::in_database(&db, how, tasks, shutdown).await?
        };
        Ok(Self {
            dir,
            db,
            live,
            redis: address,
            cluster_bus,
        })
    }

    /// Opens a folder as the server would with default settings; for tests of other layers.
    pub async fn open_in(
        dir: &Path,
        tasks: &TaskTracker,
        shutdown: CancellationToken,
    ) -> Result<Self, Error> {
        let settings = Settings::in_folder(dir);
        Self::open(&settings, Access::Serve, tasks, shutdown).await
    }

    /// The address of the database server if the settings name one and it lets us in. Changes
    /// nothing there.
    pub async fn try_server(settings: &Settings) -> Result<Option<String>, Error> {
        db::try_server(settings.database_url.as_deref(), &settings.data_dir).await
    }

    /// What kind of database this is and where, without credentials, for people.
    pub fn database(&self) -> (&'static str, String) {
        self.db.describe()
    }

    /// The journals.
    pub fn live(&self) -> Arc<dyn LiveStore> {
        Arc::clone(&self.live)
    }

    /// Where the journals are, without user and password; `None` = in the database.
    pub fn redis(&self) -> Option<&str> {
        self.redis.as_deref()
    }

    /// Joins the other gateways on the same Redis, before the first session is touched. Records or a
    /// secret key that are not theirs are refused.
    pub async fn join(&self, sealer: &Sealer) -> Result<(), Error> {
        if !self.cluster_bus.is_shared() {
            return Ok(());
        }
        let records = self.records().installation().await?;
        self.cluster_bus.join(&records, &sealer.key_name()).await
    }

    /// The line to other gateways on the same journals.
    pub fn cluster_bus(&self) -> Arc<dyn ClusterBus> {
        Arc::clone(&self.cluster_bus)
    }

    /// Everything else.
    pub fn records(&self) -> Records {
        Records::new(self.db.clone())
    }

    /// The data folder.
    pub fn dir(&self) -> &DataDir {
        &self.dir
    }

    /// Asks database and journals for a sign of life, for `/readyz`; the error says which is away.
    pub async fn ping(&self) -> Result<(), Error> {
        let (records, journals) = tokio::join!(self.db.ping(), self.live.ping());
        records.and(journals)
    }

    /// Ends the connections of the records; the last one folds SQLite's log into the file. From then
    /// on nothing can be written, so the folder is free for the next server, whoever still holds a
    /// clone (a connection that is slow to notice the end).
    pub async fn close(&self) {
        self.db.close().await;
        self.dir.release();
    }
}
