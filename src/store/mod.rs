//! What outlives the process: journals of sessions ([`live`]) and everything else ([`records`]),
//! both in one SQLite file of a locked data folder.

mod data_dir;
mod db;
mod error;
pub mod live;
pub mod records;
pub mod sealed;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use data_dir::{DataDir, Holder};
pub use error::Error;
pub use live::{Appended, Head, LiveStore, NewRecord, Record, Snapshot};
pub use records::Records;
pub use sealed::Sealer;

use db::{Db, SqliteDb};
use live::SqliteLive;

/// Where things are kept and how.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The data folder; created if missing.
    pub data_dir: PathBuf,
    /// `sqlite://<file>`; without it, `sepal.db` in the data folder.
    pub database_url: Option<String>,
    /// Whether snapshots are written compressed; both forms are read.
    pub compression: bool,
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
        let file = db::sqlite_file(settings.database_url.as_deref(), dir.path())?;
        let sqlite = SqliteDb::open(&file).await?;
        let live = SqliteLive::start(sqlite.clone(), settings.compression, tasks, shutdown);
        Ok(Self {
            dir,
            db: Db::Sqlite(sqlite),
            live: Arc::new(live),
        })
    }

    /// Opens a folder as the server would with default settings; for tests of other layers.
    pub async fn open_in(
        dir: &Path,
        tasks: &TaskTracker,
        shutdown: CancellationToken,
    ) -> Result<Self, Error> {
        let settings = Settings {
            data_dir: dir.to_owned(),
            database_url: None,
            compression: true,
        };
        Self::open(&settings, Access::Serve, tasks, shutdown).await
    }

    /// The journals.
    pub fn live(&self) -> Arc<dyn LiveStore> {
        Arc::clone(&self.live)
    }

    /// Everything else.
    pub fn records(&self) -> Records {
        Records::new(self.db.clone())
    }

    /// The data folder.
    pub fn dir(&self) -> &DataDir {
        &self.dir
    }

    /// Asks the database for a sign of life, for `/readyz`.
    pub async fn ping(&self) -> Result<(), Error> {
        self.db.ping().await
    }

    /// Ends the connections of the records; the last one folds SQLite's log into the file.
    pub async fn close(&self) {
        self.db.close().await;
    }
}
