//! Defines the jobs of the journal writer.

use tokio::sync::oneshot;

use super::NewRecord;
use super::packing::PackedSnapshot;
use crate::Error;
use sepal_core::domain::SessionKey;

/// One write, with the channel for its outcome.
pub(super) struct Job {
    pub(super) key: SessionKey,
    pub(super) work: Work,
    pub(super) answer: oneshot::Sender<Result<JobOutcome, Error>>,
}

/// The kind of write.
pub(super) enum Work {
    Append {
        expected_version: u64,
        record: NewRecord,
    },
    /// Writes a whole journal if none exists.
    Create {
        records: Vec<NewRecord>,
    },
    Snapshot {
        version: u64,
        schema: u32,
        packed: PackedSnapshot,
    },
    Remove,
}

/// The outcome of a job whose transaction was committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JobOutcome {
    Done,
    Conflict,
}
