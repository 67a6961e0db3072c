//! Records in SQL.

use super::db::Db;

/// What is known beside the journals.
#[derive(Debug, Clone)]
pub struct Records {
    db: Db,
}

impl Records {
    pub(super) fn new(db: Db) -> Self {
        Self { db }
    }
}
