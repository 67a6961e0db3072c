//! Stores calibrations: how much token counts differ from what providers report, by scope and address.

use super::super::Error;
use super::super::db::{Db, Statement, args};
use super::scope;
use sepal_core::domain::{Scope, Timestamp};

/// The calibration of the models at one address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalibrationRow {
    pub scope: Scope,
    /// A digest of the protocol and the location of the address.
    pub address: String,
    /// The calibration of each model, as JSON. Only the calibration's own module interprets it.
    pub learned: String,
    pub updated_at: Timestamp,
}

/// Access to the stored calibrations.
pub struct Calibrations<'s> {
    db: &'s Db,
}

impl<'s> Calibrations<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// The calibrations of every scope and address.
    pub async fn all(&self) -> Result<Vec<CalibrationRow>, Error> {
        let sql = "SELECT * FROM calibrations ORDER BY scope, address";
        let rows: Vec<Row> = self.db.fetch_all(sql, args![]).await?;
        rows.into_iter().map(Row::into_calibration).collect()
    }

    /// Stores a calibration, and deletes those last updated before `oldest`.
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

#[derive(sqlx_macros::FromRow)]
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
