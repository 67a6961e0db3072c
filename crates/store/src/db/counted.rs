//! The statements that count the changes of records.

use super::super::Error;
use super::super::versions::{RecordName, required};
use super::{Db, Statement, args};

/// A record that a transaction changes, with the version that it must have.
pub(crate) struct Counted {
    record: RecordName,
    required: Option<u64>,
}

impl Counted {
    pub(crate) fn of(record: RecordName) -> Self {
        let required = required(&record);
        Self { record, required }
    }

    /// Returns the statement that counts the change. It changes no row if the version is another.
    pub(crate) fn statement(&self) -> Statement {
        let RecordName { scope, name } = &self.record;
        let of_record = || args![scope.as_str(), name.as_str()];
        let sql = match self.required {
            None => {
                "INSERT INTO record_versions (scope, record, version) VALUES ($1, $2, 1) \
                 ON CONFLICT (scope, record) DO UPDATE SET version = record_versions.version + 1"
            }
            Some(0) => {
                "INSERT INTO record_versions (scope, record, version) VALUES ($1, $2, 1) \
                 ON CONFLICT (scope, record) DO NOTHING"
            }
            Some(version) => {
                let sql = "UPDATE record_versions SET version = version + 1 \
                           WHERE scope = $1 AND record = $2 AND version = $3";
                let version = i64::try_from(version).unwrap_or(i64::MAX);
                let args = args![scope.as_str(), name.as_str(), version];
                return Statement::required(sql, args);
            }
        };
        Statement::required(sql, of_record())
    }

    /// Returns [`Error::Changed`] if the record does not have the required version.
    pub(crate) async fn check(&self, db: &Db) -> Result<(), Error> {
        match self.required {
            Some(required) if read_version(db, &self.record).await? != required => {
                Err(Error::Changed)
            }
            Some(_) | None => Ok(()),
        }
    }
}

pub(crate) async fn read_version(
    db: &Db,
    RecordName { scope, name }: &RecordName,
) -> Result<u64, Error> {
    let sql = "SELECT version FROM record_versions WHERE scope = $1 AND record = $2";
    let values = args![scope.as_str(), name.as_str()];
    let row: Option<(i64,)> = db.fetch_optional(sql, values).await?;
    Ok(row.map_or(0, |(version,)| u64::try_from(version).unwrap_or(0)))
}
