//! Reads and counts the versions of records that are changed as a whole.

use crate::Error;
use crate::db::{Db, read_versions};
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

    /// The versions of records, in their order and as of one moment: 0 until the first change. Read them before
    /// the records, so that they are never newer than what was read.
    pub async fn of(&self, records: &[RecordName]) -> Result<Vec<u64>, Error> {
        let records: Vec<&RecordName> = records.iter().collect();
        read_versions(&self.db, &records).await
    }
}
