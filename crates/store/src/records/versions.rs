//! Reads and counts the versions of records that are changed as a whole.

use crate::Error;
use crate::db::{Db, read_version};
use crate::versions::RecordName;

/// Access to the versions of records.
#[derive(Debug, Clone)]
pub struct RecordVersions {
    db: Db,
}

impl RecordVersions {
    pub(super) fn new(db: Db) -> Self {
        Self { db }
    }

    /// Counts a change of a record that is not stored here, or returns [`Error::Changed`].
    pub async fn count(&self, record: RecordName) -> Result<(), Error> {
        self.db.count(record).await
    }

    /// The version of a record: 0 until its first change. Read it before the record, so that it is never
    /// newer than what was read.
    pub async fn of(&self, record: &RecordName) -> Result<u64, Error> {
        read_version(&self.db, record).await
    }
}
