//! The lines of an export: a header, marks that begin a part, and rows as arrays in between.

use serde::{Deserialize, Serialize};

/// The value of `format` that distinguishes an export from any other file.
pub(super) const FORMAT: &str = "sepal-tenant";
/// The version of the format that this program writes.
pub(super) const VERSION: u32 = 1;

/// The longest line in bytes: a content of 40 MiB in base64.
pub(super) const MAX_LINE: usize = 56 << 20;
/// The longest header, in bytes.
pub(super) const MAX_HEADER: usize = 64 << 10;

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Header {
    pub(super) format: String,
    pub(super) version: u32,
    /// The version of Sepal that wrote the export.
    pub(super) program: String,
    /// The newest migration of its database.
    pub(super) schema: i64,
    /// The time of the export, as RFC 3339.
    pub(super) created_at: String,
    pub(super) tenant: TenantFacts,
    pub(super) audit: ChainEnd,
}

/// The fields that every version of the header has.
#[derive(Debug, Deserialize)]
pub(super) struct HeaderStart {
    pub(super) format: String,
    pub(super) version: u32,
    pub(super) program: String,
    pub(super) schema: i64,
}

/// The row of the tenant itself, other than what an import decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TenantFacts {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) created_at: i64,
    pub(super) allows_links: bool,
}

/// The end of the tenant's chain in the audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ChainEnd {
    /// The number of the last record; 0 = there is none.
    pub(super) records: i64,
    /// The link of the last record.
    pub(super) link: Option<String>,
}

/// A line that begins a part, or ends the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) enum Mark {
    /// The rows of a table follow, each an array of the values of these columns.
    Table { name: String, columns: Vec<String> },
    /// The records of a session's journal follow, each as [`RecordLine`].
    Journal {
        session: String,
        /// The version of the journal that the session's row shows.
        version: i64,
        /// The version up to which usage and decisions are indexed.
        used: i64,
    },
    /// The audit follows, in lines as those of `sepal audit export`.
    Audit {},
    /// Nothing follows.
    End {
        rows: u64,
        sessions: u64,
        records: u64,
        /// The SHA-256 digest of all lines before, in hex.
        sha256: String,
    },
}

/// A record of a journal: its commit id, its first and last `seq`, and its body in base64.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RecordLine(
    pub(super) String,
    pub(super) u64,
    pub(super) u64,
    pub(super) String,
);
