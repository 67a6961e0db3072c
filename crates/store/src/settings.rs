//! The settings of the store.

use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;

use crate::live::RedisSettings;

/// The settings of the store.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The data folder; created if missing.
    pub data_dir: PathBuf,
    /// `sqlite://<file>` or `postgres://…`; without it, `sepal.db` in the data folder.
    pub database_url: Option<String>,
    /// True if snapshots are written compressed; both forms can be read.
    pub compression: bool,
    /// The address of the Redis that holds the journals: `redis://`, `rediss://` (TLS) or `unix://`. Without
    /// it, they are in the database.
    pub redis_url: Option<SecretString>,
    /// True if a Redis that may lose acknowledged writes is accepted.
    pub allow_volatile: bool,
    /// The time for which Redis keeps a finished session after its last commit; `None` = for ever.
    pub history_ttl: Option<Duration>,
}

impl Settings {
    /// Default settings, which keep everything in one folder.
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

    pub(crate) fn redis(&self) -> Option<RedisSettings> {
        let url = self.redis_url.clone()?;
        Some(RedisSettings {
            url,
            allow_volatile: self.allow_volatile,
            history_ttl: self.history_ttl,
            compression: self.compression,
        })
    }
}
