//! Opens the store: the data folder, the database and what holds the journals.

use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock;
use crate::data_dir::DataDir;
use crate::db::{self, Db};
use crate::error::Error;
use crate::live::cluster_bus::{ClusterBus, LocalBus};
use crate::live::{self, LiveStore, RedisBus, RedisLive};
use crate::records::Records;
use crate::sealed::{Sealer, SecretKeys};
use crate::settings::Settings;
use crate::tenant_archive::{self, AuditLines, ImportedTenant, Importing, TenantCounts};
use sepal_core::domain::Tenant;

/// The kind of program that opens the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The server, which takes the lock. Only one can run on a data folder.
    Serve,
    /// A command that runs beside the server. It reads journals and changes records, but must not append to
    /// journals that the server may open.
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
    /// Opens the data folder and the database, and starts the writer on `tasks`. After `shutdown` the writer
    /// writes what is queued and ends, so cancel it last.
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
        Self::open_at(dir, settings, access, tasks, shutdown).await
    }

    /// Opens the store as [`Self::open`] does for the server, in a folder that is already locked.
    pub async fn open_locked(
        dir: DataDir,
        settings: &Settings,
        tasks: &TaskTracker,
        shutdown: CancellationToken,
    ) -> Result<Self, Error> {
        Self::open_at(dir, settings, Access::Serve, tasks, shutdown).await
    }

    async fn open_at(
        dir: DataDir,
        settings: &Settings,
        access: Access,
        tasks: &TaskTracker,
        shutdown: CancellationToken,
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
            live::in_database(&db, access, settings.compression, tasks, shutdown).await?
        };
        Ok(Self {
            dir,
            db,
            live,
            redis: address,
            cluster_bus,
        })
    }

    /// Opens a store as a server with default settings would; for tests of other layers.
    pub async fn open_in(
        dir: &Path,
        tasks: &TaskTracker,
        shutdown: CancellationToken,
    ) -> Result<Self, Error> {
        let settings = Settings::in_folder(dir);
        Self::open(&settings, Access::Serve, tasks, shutdown).await
    }

    /// Connects to the database server, if the settings name one, and returns its address. Changes nothing
    /// there.
    pub async fn try_server(settings: &Settings) -> Result<Option<String>, Error> {
        db::try_server(settings.database_url.as_deref(), &settings.data_dir).await
    }

    /// The kind of database, and its location without credentials, for people to read.
    pub fn database(&self) -> (&'static str, String) {
        self.db.describe()
    }

    /// The live store, which holds the journals.
    pub fn live(&self) -> Arc<dyn LiveStore> {
        Arc::clone(&self.live)
    }

    /// The address of the Redis that holds the journals, without user and password; `None` if they are in
    /// the database.
    pub fn redis(&self) -> Option<&str> {
        self.redis.as_deref()
    }

    /// Opens the keys that seal the secrets of this installation; the first call draws them.
    pub async fn sealer(&self, keys: &SecretKeys) -> Result<Sealer, Error> {
        let (current, former) = keys.resolve(&self.dir)?;
        let is_changing = keys.former.is_some();
        self.records().keyring(&current, &former, is_changing).await
    }

    /// Puts the keys aside that a lost secret key sealed. Returns false, and does nothing, if a secret key opens them.
    /// Returns [`Error::NoSecretKey`] if neither the settings nor the data folder have one to try.
    pub async fn forget_secret_key(&self, keys: &SecretKeys) -> Result<bool, Error> {
        let known = keys.known(&self.dir);
        if known.is_empty() {
            return Err(Error::NoSecretKey);
        }
        self.records().forget_keyring(&known, clock::now()).await
    }

    /// Joins the other gateways on the same Redis; call it before the first session is used. Returns an
    /// error if the others have different records.
    pub async fn join(&self) -> Result<(), Error> {
        if !self.cluster_bus.is_shared() {
            return Ok(());
        }
        let records = self.records().installation().await?;
        self.cluster_bus.join(&records).await
    }

    /// The bus to the other gateways that share the journals.
    pub fn cluster_bus(&self) -> Arc<dyn ClusterBus> {
        Arc::clone(&self.cluster_bus)
    }

    /// The records: all data that is not part of a journal.
    pub fn records(&self) -> Records {
        Records::new(self.db.clone())
    }

    /// Writes everything of a suspended tenant into `target`, a file that must not exist yet.
    pub async fn export_tenant(
        &self,
        tenant: &Tenant,
        target: &Path,
        lines: AuditLines,
    ) -> Result<TenantCounts, tenant_archive::Error> {
        let parts = (&self.db, &self.records(), &*self.live);
        Box::pin(tenant_archive::export(parts, tenant, target, lines)).await
    }

    /// Reads the whole file of an export and checks it, for an import under another name if one is given. Writes
    /// nothing.
    pub async fn verify_export(
        &self,
        file: &Path,
        sealer: &Sealer,
        name: Option<&str>,
    ) -> Result<Importing, tenant_archive::Error> {
        Importing::verify(&self.db, sealer, file, name).await
    }

    /// Imports the tenant of a verified export. The tenant is suspended afterwards.
    pub async fn import_tenant(
        &self,
        export: Importing,
    ) -> Result<ImportedTenant, tenant_archive::Error> {
        Box::pin(tenant_archive::import(self, export)).await
    }

    /// The database.
    pub(crate) fn db(&self) -> &Db {
        &self.db
    }

    /// The data folder.
    pub fn dir(&self) -> &DataDir {
        &self.dir
    }

    /// A handle that can only check whether the store answers.
    pub fn probe(&self) -> Probe {
        Probe(self.clone())
    }

    /// Closes the connections of the database; the last one checkpoints SQLite's log. Then releases the
    /// folder for the next server, even if clones of this store remain (for example in a slow connection),
    /// because nothing can be written any more.
    pub async fn close(&self) {
        self.db.close().await;
        self.dir.release();
    }
}

/// Checks whether a store answers, for doors that need nothing else of it.
#[derive(Clone)]
pub struct Probe(Store);

impl Probe {
    /// Checks that database and journals answer, for `/readyz`. The error names the one that does not.
    pub async fn ping(&self) -> Result<(), Error> {
        let (records, journals) = tokio::join!(self.0.db.ping(), self.0.live.ping());
        records.and(journals)
    }
}
