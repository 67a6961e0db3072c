//! Exports a whole tenant into one file, and imports the file into this or another installation, whatever
//! database and store of journals each of them has.
//!
//! The file is JSON in lines within gzip, written and read in one go: a header, the rows of each table that
//! [`tenant_tables`](super::records::tenant_tables) lists, the journal of each session, the audit for reading, and
//! at the end what was counted, with a digest of everything before it. A tenant is suspended while it is exported,
//! so that it stands still.
//!
//! An import trusts nothing in the file. It reads the whole file once before it writes anything. No row names its
//! tenant: the import adds that. While it runs, the tenant is locked out and due for deletion some minutes ahead;
//! each step puts that time off, and the last one lifts it. What a killed import leaves is thus deleted like any
//! tenant that was given up.

mod export;
mod format;
#[cfg(test)]
mod fuzz;
mod import;
mod reading;
mod shape;
mod writing;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use super::audit::{Seal, StoredRecord};
use sepal_core::domain::Scope;
use sepal_jobs::Pool;

pub(super) use export::export;
pub(super) use import::{Importing, import};

/// The reason an export or an import failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// People may still enter the tenant.
    #[error(
        "the tenant `{0}` is not suspended, and an export needs it to stand still; run `sepal admin tenant suspend \
         {0}` first"
    )]
    NotSuspended(String),
    /// Something of the tenant runs.
    #[error(
        "{sessions} sessions of the tenant `{name}` have not ended their turns; a running gateway ends them within \
         seconds after the tenant was suspended: start one if none runs, and try again"
    )]
    Busy {
        name: String,
        /// The number of its sessions that are unfinished.
        sessions: usize,
    },
    /// A session of the tenant changed meanwhile.
    #[error("the tenant changed while it was exported, and nothing was written; try again")]
    Changed,
    /// The target exists.
    #[error("`{0}` exists; give another name")]
    InTheWay(PathBuf),
    /// The file is not an export of a tenant, or has content that no export has.
    #[error("`{path}` is not an export of a tenant that can be imported: {reason}")]
    Foreign {
        path: PathBuf,
        /// The reason the file is refused.
        reason: String,
    },
    /// The file is an export that was damaged after it was made.
    #[error("`{path}` is damaged: {reason}; take another copy of it")]
    Damaged {
        path: PathBuf,
        /// The mismatch that was found.
        reason: String,
    },
    /// The tables of the export are those of another version.
    #[error(
        "Sepal {program} wrote the export with the tables of migration {schema}, and this version has those of \
         migration {ours}; start this version on the installation that has the tenant, and export it again with \
         this version"
    )]
    OtherSchema {
        /// The version that wrote the export.
        program: String,
        schema: i64,
        ours: i64,
    },
    /// Another tenant has the name.
    #[error("there is a tenant `{0}` already; give the imported one another name with --name")]
    Taken(String),
    /// The tenant itself is here.
    #[error(
        "the tenant of this export is here, by the name `{0}`; delete it first if the export is to replace it"
    )]
    Here(String),
    /// The tenant itself is here, and goes.
    #[error(
        "the tenant of this export is being deleted here, by the name `{0}`; try again when a running gateway has \
         done so"
    )]
    BeingDeleted(String),
    /// Somebody deleted the tenant during its import.
    #[error(
        "the tenant was deleted while it was imported, or the import stood still for too long; run it again"
    )]
    Overtaken,
    /// A file operation failed.
    #[error("`{path}` {reason}")]
    Disk {
        path: PathBuf,
        reason: &'static str,
        /// The error from the operating system.
        source: io::Error,
    },
    /// The database or the journals returned an error.
    #[error(transparent)]
    Store(#[from] super::Error),
}

impl Error {
    fn disk(path: &Path, reason: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Disk {
            path,
            reason,
            source,
        }
    }
}

/// Writes the lines of the audit in an export, as `sepal audit export` does.
#[derive(Debug, Clone, Copy)]
pub struct AuditLines {
    pub record: fn(&Scope, StoredRecord) -> String,
    pub seal: fn(&Scope, &Seal) -> String,
}

/// The numbers of what an export or an import has written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TenantCounts {
    /// Rows of tables.
    pub rows: u64,
    pub sessions: u64,
    /// Records of the sessions' journals.
    pub records: u64,
}

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedTenant {
    /// The name that it has here.
    pub name: String,
    pub counts: TenantCounts,
    /// The number of secrets that another installation sealed, so that they cannot be opened here.
    pub closed_secrets: u64,
    /// The number of people who administered the installation from which the export comes, and do not administer
    /// this one.
    pub former_admins: u64,
}

/// Reads and writes the files on a pool of threads.
static FILES: LazyLock<Pool> = LazyLock::new(|| Pool::new("export of a tenant", 4));

fn broken(path: &Path) -> impl FnOnce(sepal_jobs::Error) -> Error {
    let path = path.to_owned();
    move |error| Error::Disk {
        path,
        reason: "was not read or written to its end",
        source: io::Error::other(error),
    }
}
