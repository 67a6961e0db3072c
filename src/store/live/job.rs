//! What the writer of the journals is given.

use tokio::sync::oneshot;

use super::NewRecord;
use super::packing::Packed;
use crate::domain::SessionKey;
use crate::store::Error;

/// One thing to write, and who waits for it.
pub(super) struct Job {
    pub(super) key: SessionKey,
    pub(super) work: Work,
    pub(super) answer: oneshot::Sender<Result<Written, Error>>,
}

/// What to write.
pub(super) enum Work {
    Append {
        expected_version: u64,
        record: NewRecord,
    },
    /// A whole journal, where there is none.
    Create {
        records: Vec<NewRecord>,
    },
    Snapshot {
        version: u64,
        schema: u32,
        packed: Packed,
    },
    Remove,
}

/// What became of a job whose transaction was committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    Done,
    Conflict,
}
