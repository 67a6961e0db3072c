//! What can go wrong with stored things.

use std::path::PathBuf;
use std::sync::Arc;

use sqlx::postgres::PgDatabaseError;

use crate::domain::{Code, Fault};

/// A situation in which the store could not do what was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The database refused, broke or is away; [`Error::fault`] tells which.
    #[error("the database did not do it")]
    Database(#[source] Arc<sqlx::Error>),
    /// Redis is away, full, read-only or broke.
    #[error("{trouble}")]
    Redis {
        trouble: RedisTrouble,
        /// What it said itself, if it said something.
        #[source]
        source: Option<Arc<redis::RedisError>>,
    },
    /// No answer in time, or the task that would answer has ended: it may still have happened.
    #[error("the database did not answer")]
    NoAnswer,
    /// The tables could not be brought to this version of the program.
    #[error("the tables of the database do not fit this version")]
    Migration(#[source] Arc<sqlx::migrate::MigrateError>),
    /// Another name, because this one exists.
    #[error("the name `{0}` is taken")]
    Taken(String),
    /// More than one record may hold. Nothing was written.
    #[error("{bytes} bytes do not fit into one record of at most {limit}")]
    TooLarge { bytes: usize, limit: usize },
    /// A stored value that this program cannot have written.
    #[error("the stored {what} `{value}` cannot be read")]
    Corrupt {
        /// The kind of value.
        what: &'static str,
        /// The value, or where it lies.
        value: String,
    },
    /// A sealed value cannot be opened here.
    #[error(transparent)]
    Sealed(#[from] super::sealed::Unopened),
    /// A setting or the file system does not allow the data folder or database.
    #[error("cannot use `{path}`: {reason}")]
    Unusable {
        /// The folder, file or address (without credentials).
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
        /// What the operating system or the server said itself, if it was asked.
        #[source]
        source: Option<Arc<dyn std::error::Error + Send + Sync>>,
    },
    /// A second server on the same data.
    #[error("{what} `{path}` is in use by {holder}")]
    Locked {
        /// Whether it is a data folder or a database.
        what: &'static str,
        /// The folder, or the address without credentials.
        path: PathBuf,
        holder: super::Holder,
    },
}

/// Why Redis did not do what it was asked. The text is for clients and probes too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RedisTrouble {
    /// There is no connection.
    #[error("Redis is away")]
    Away,
    /// The connection stands, and no answer came in time: it may still happen.
    #[error("Redis did not answer in time")]
    Silent,
    /// `maxmemory` is reached; with `noeviction` it refuses what would grow.
    #[error("Redis is full: raise its `maxmemory`, or delete sessions")]
    Full,
    /// It takes no writes.
    #[error("Redis is read-only: the address leads to a replica")]
    ReadOnly,
    /// It loads its data, waits for replicas, or cannot write its own files.
    #[error("Redis is not ready")]
    NotReady,
    /// Anything else.
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
    /// Who has to act.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Database(error) => fault_of(error),
            Self::Redis { trouble, .. } => trouble.fault(),
            Self::NoAnswer => Fault::Transient,
            Self::Migration(_) | Self::Corrupt { .. } | Self::Sealed(_) => Fault::Internal,
            Self::Taken(_)
            | Self::TooLarge { .. }
            | Self::Unusable { .. }
            | Self::Locked { .. } => Fault::Validation,
        }
    }

    /// Whether what is stored is broken: asking again gives the same until somebody mends it. A
    /// store that is merely away is not.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Corrupt { .. } => true,
            Self::Database(error) => is_damage(error),
            Self::Redis { .. }
            | Self::NoAnswer
            | Self::Migration(_)
            | Self::Taken(_)
            | Self::TooLarge { .. }
            | Self::Sealed(_)
            | Self::Unusable { .. }
            | Self::Locked { .. } => false,
        }
    }

    /// What a client is told.
    pub fn code(&self) -> Code {
        match (self, self.fault()) {
            (Self::TooLarge { .. }, _) => Code::TooLarge,
            (_, Fault::Transient) => Code::StoreUnavailable,
            (_, Fault::Validation) => Code::InvalidArguments,
            (_, Fault::External | Fault::Internal) => Code::Internal,
        }
    }

    /// An unusable path with the system's reason.
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

    /// A stored value that cannot be read.
    pub(crate) fn corrupt(what: &'static str, value: impl Into<String>) -> Self {
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

/// SQLSTATE classes of PostgreSQL under which the same statement may work later: connection,
/// broken off by another one, no resources, object busy, cancelled or stopped, system.
const PASSING_CLASSES: [&str; 6] = ["08", "40", "53", "55", "57", "58"];

/// The server became a standby: another one takes writes.
const READ_ONLY: &str = "25006";

/// Primary result codes of SQLite under which the same statement may work later:
/// busy, locked, no memory, I/O, full, cannot open.
const PASSING: [u32; 6] = [5, 6, 7, 10, 13, 14];

/// Primary result codes of SQLite for a file that is broken: corrupt, no database.
const BROKEN: [u32; 2] = [11, 26];

/// SQLSTATE class of PostgreSQL for its own broken pages and indexes.
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
        // A value of another type than ours stands in the row.
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
            // Extended codes carry the primary one in their low byte.
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
