//! Defines the errors of the store.

use std::path::PathBuf;
use std::sync::Arc;

use sqlx::postgres::PgDatabaseError;

use sepal_core::domain::{Code, Fault};

/// An operation of the store that failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The database refused a statement, failed or is unavailable; [`Error::fault`] tells these apart.
    #[error("the database did not do it")]
    Database(#[source] Arc<sqlx::Error>),
    /// Redis is unavailable, full, read-only or failed.
    #[error("{trouble}")]
    Redis {
        trouble: RedisTrouble,
        /// The error from Redis, if it sent one.
        #[source]
        source: Option<Arc<redis::RedisError>>,
    },
    /// No answer came in time, or the task that should answer has ended. The operation may have taken
    /// effect.
    #[error("the database did not answer")]
    NoAnswer,
    /// No worker thread compressed or decompressed a value: too much such work waits, or the process is
    /// stopping. Nothing is damaged.
    #[error("the store is too busy or stopping; try again in a moment")]
    NoWorker(#[from] sepal_jobs::Error),
    /// The tables could not be migrated to this version of the program.
    #[error("the tables of the database do not fit this version")]
    Migration(#[source] Arc<sqlx::migrate::MigrateError>),
    /// The name exists already; choose another one.
    #[error("the name `{0}` is taken")]
    Taken(String),
    /// The record does not have the version that the writer requires. Nothing was written.
    #[error("the record was changed since it was read; read it again")]
    Changed,
    /// The tenant of an act was deleted meanwhile. Nothing was written.
    #[error("the tenant was deleted")]
    TenantDeleted,
    /// The content exceeds the size limit of one record. Nothing was written.
    #[error("{bytes} bytes do not fit into one record of at most {limit}")]
    TooLarge { bytes: usize, limit: usize },
    /// A stored value that this program cannot parse.
    #[error("the stored {what} `{value}` cannot be read")]
    Corrupt {
        /// The kind of value.
        what: &'static str,
        /// The value, or its location.
        value: String,
    },
    /// A change of an audited table has no record in the audit: a defect of this program.
    #[error("a change of `{0}` has no record in the audit")]
    Unrecorded(&'static str),
    /// A sealed value cannot be opened.
    #[error(transparent)]
    Sealed(#[from] super::sealed::UnsealError),
    /// The keyring of the installation was sealed with another secret key.
    #[error(
        "the secret key is not the one of this installation: use that one again (`secret.key` in the data folder, or \
         SPL_SECRET_KEY); to change the key, give the old one as SPL_FORMER_SECRET_KEY; if it is lost, run `sepal \
         admin forget-secret-key`"
    )]
    OtherSecretKey,
    /// There is no secret key to try.
    #[error(
        "there is no secret key to try: run this with the settings of the gateway (SPL_SECRET_KEY, or `secret.key` in \
         its data folder)"
    )]
    NoSecretKey,
    /// The data folder, the database or Redis cannot be used because of a setting, the file system, the
    /// server, or tables that are too old.
    #[error("cannot use `{path}`: {reason}")]
    Unusable {
        /// The folder, file or address (without credentials).
        path: PathBuf,
        /// The reason the path or address cannot be used.
        reason: &'static str,
        /// The error from the operating system or the server, if there is one.
        #[source]
        source: Option<Arc<dyn std::error::Error + Send + Sync>>,
    },
    /// Another server uses the same data folder or database.
    #[error("{what} `{path}` is in use by {holder}")]
    Locked {
        /// The kind of locked resource: "data folder" or "database".
        what: &'static str,
        /// The folder, or the address without credentials.
        path: PathBuf,
        holder: super::Holder,
    },
}

/// The reason a Redis command failed. The text is also shown to clients and probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RedisTrouble {
    /// There is no connection to Redis.
    #[error("Redis is away")]
    Away,
    /// Redis is connected but did not answer in time. The command may still take effect.
    #[error("Redis did not answer in time")]
    Silent,
    /// `maxmemory` is reached; with `noeviction`, Redis refuses commands that need more memory.
    #[error("Redis is full: raise its `maxmemory`, or delete sessions")]
    Full,
    /// Redis accepts no writes.
    #[error("Redis is read-only: the address leads to a replica")]
    ReadOnly,
    /// Redis is loading its data, waits for replicas, or cannot write its own files.
    #[error("Redis is not ready")]
    NotReady,
    /// Any other error.
    #[error("Redis did not do it")]
    Refused,
}

impl RedisTrouble {
    fn fault(self) -> Fault {
        match self {
            Self::Away | Self::Silent | Self::Full | Self::ReadOnly | Self::NotReady => {
                Fault::Transient
            }
            Self::Refused => Fault::Internal,
        }
    }
}

impl Error {
    /// The kind of fault, which determines who has to act.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Database(error) => fault_of(error),
            Self::Redis { trouble, .. } => trouble.fault(),
            Self::NoAnswer | Self::NoWorker(_) => Fault::Transient,
            Self::Migration(_) | Self::Corrupt { .. } | Self::Unrecorded(_) | Self::Sealed(_) => {
                Fault::Internal
            }
            Self::Taken(_)
            | Self::Changed
            | Self::TenantDeleted
            | Self::TooLarge { .. }
            | Self::OtherSecretKey
            | Self::NoSecretKey
            | Self::Unusable { .. }
            | Self::Locked { .. } => Fault::Validation,
        }
    }

    /// Returns true if stored data is damaged, so that retries fail until someone repairs it. An unavailable
    /// store is not damaged.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Corrupt { .. } => true,
            Self::Database(error) => is_damage(error),
            Self::Redis { .. }
            | Self::NoAnswer
            | Self::NoWorker(_)
            | Self::Migration(_)
            | Self::Taken(_)
            | Self::Changed
            | Self::TenantDeleted
            | Self::TooLarge { .. }
            | Self::Unrecorded(_)
            | Self::Sealed(_)
            | Self::OtherSecretKey
            | Self::NoSecretKey
            | Self::Unusable { .. }
            | Self::Locked { .. } => false,
        }
    }

    /// The error code for clients.
    pub fn code(&self) -> Code {
        match (self, self.fault()) {
            (Self::TooLarge { .. }, _) => Code::TooLarge,
            (Self::Changed, _) => Code::ChangedSinceShown,
            // Whoever acted had a sign-in of that tenant.
            (Self::TenantDeleted, _) => Code::Unauthorized,
            (_, Fault::Transient) => Code::StoreUnavailable,
            (_, Fault::Validation) => Code::InvalidArguments,
            (_, Fault::External | Fault::Internal) => Code::Internal,
        }
    }

    /// Builds an [`Error::Unusable`] with the operating system's error.
    pub(super) fn unusable(
        path: impl Into<PathBuf>,
        reason: &'static str,
        source: std::io::Error,
    ) -> Self {
        Self::Unusable {
            path: path.into(),
            reason,
            source: Some(Arc::new(source)),
        }
    }

    /// Builds an [`Error::Corrupt`] for a stored value that cannot be parsed.
    pub fn corrupt(what: &'static str, value: impl Into<String>) -> Self {
        Self::Corrupt {
            what,
            value: value.into(),
        }
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(Arc::new(error))
    }
}

/// SQLSTATE classes of PostgreSQL for transient errors: connection, transaction rollback, insufficient
/// resources, object not in required state, operator intervention, system error.
const PASSING_CLASSES: [&str; 6] = ["08", "40", "53", "55", "57", "58"];

/// The SQLSTATE for a write on a server that became a standby. Another server takes writes.
const READ_ONLY: &str = "25006";

/// Primary result codes of SQLite for transient errors: busy, locked, no memory, I/O, full, cannot open.
const PASSING: [u32; 6] = [5, 6, 7, 10, 13, 14];

/// Primary result codes of SQLite for a damaged file: corrupt, not a database.
const BROKEN: [u32; 2] = [11, 26];

/// The SQLSTATE class of PostgreSQL for damaged pages and indexes.
const BROKEN_CLASS: &str = "XX";

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "sqlx's errors are non-exhaustive"
)]
fn is_damage(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(refusal) => {
            let is_postgres = refusal.try_downcast_ref::<PgDatabaseError>().is_some();
            let code = refusal.code().unwrap_or_default();
            if is_postgres {
                return code.starts_with(BROKEN_CLASS);
            }
            code.parse::<u32>()
                .is_ok_and(|code| BROKEN.contains(&(code & 0xff)))
        }
        // The column holds a value of an unexpected type.
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => true,
        _ => false,
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "sqlx's errors are non-exhaustive"
)]
fn fault_of(error: &sqlx::Error) -> Fault {
    match error {
        sqlx::Error::Database(refusal)
            if refusal.try_downcast_ref::<PgDatabaseError>().is_some() =>
        {
            let code = refusal.code().unwrap_or_default();
            let is_passing = PASSING_CLASSES.iter().any(|class| code.starts_with(class));
            if is_passing || code == READ_ONLY {
                Fault::Transient
            } else {
                Fault::Internal
            }
        }
        sqlx::Error::Database(refusal) => {
            // The low byte of an extended code is the primary code.
            let code = refusal.code().and_then(|code| code.parse::<u32>().ok());
            match code {
                Some(code) if PASSING.contains(&(code & 0xff)) => Fault::Transient,
                _ => Fault::Internal,
            }
        }
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => Fault::Transient,
        _ => Fault::Internal,
    }
}
