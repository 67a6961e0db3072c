//! How far counts of tokens are from what providers report: numbers by scope and address.

use super::super::Error;
use super::super::db::{Db, Statement, args};
use super::scope;
use crate::domain::{Scope, Timestamp};

/// What was learned of the models at one address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalibrationRow {
    pub scope: Scope,
    /// The digest of what is spoken there and where it is.
    pub address: String,
    /// By model, as JSON; read by those who wrote it.
    pub learned: String,
    pub updated_at: Timestamp,
}

/// The calibrations.
pub struct Calibrations<'s> {
    db: &'s Db,
}

impl<'s> Calibrations<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// Those of every scope and address.
    pub async fn all(&self) -> Result<Vec<CalibrationRow>, Error> {
        let sql = "SELECT * FROM calibrations ORDER BY scope, address";
        let rows: Vec<Row> = self.db.fetch_all(sql, args![]).await?;
        rows.into_iter().map(Row::into_calibration).collect()
    }

    /// Keeps one, and forgets those that nobody wrote since then.
    pub async fn put(&self, row: &CalibrationRow, oldest: Timestamp) -> Result<(), Error> {
        let write = "INSERT INTO calibrations (scope, address, learned, updated_at) \
                     VALUES ($1, $2, $3, $4) ON CONFLICT (scope, address) DO UPDATE SET \
                     learned = excluded.learned, updated_at = excluded.updated_at";
        let values = args![
            row.scope.as_str(),
            row.address.as_str(),
            row.learned.as_str(),
            row.updated_at.0
        ];
        let forget = "DELETE FROM calibrations WHERE updated_at < $1";
        self.db
            .execute_all(vec![
                Statement::new(write, values),
                Statement::new(forget, args![oldest.0]),
            ])
            .await?;
        Ok(())
    }
}

#[derive(sqlx::FromRow)]
struct Row {
    scope: String,
    address: String,
    learned: String,
    updated_at: i64,
}

impl Row {
    fn into_calibration(self) -> Result<CalibrationRow, Error> {
        Ok(CalibrationRow {
            scope: scope(self.scope)?,
            address: self.address,
            learned: self.learned,
            updated_at: Timestamp(self.updated_at),
        })
    }
}
