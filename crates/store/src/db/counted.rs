//! The statements that count the changes of records.

use super::super::Error;
use super::super::versions::{RecordName, required};
use super::{Db, PerRow, Statement, args};

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

    /// Returns [`Error::Changed`] if one of the records does not have the required version.
    pub(crate) async fn check(db: &Db, counted: &[Self]) -> Result<(), Error> {
        let required = || counted.iter().filter(|it| it.required.is_some());
        let records: Vec<&RecordName> = required().map(|it| &it.record).collect();
        let found = read_versions(db, &records).await?;
        let required = required().filter_map(|it| it.required);
        if required.eq(found) {
            Ok(())
        } else {
            Err(Error::Changed)
        }
    }
}

/// Reads the versions of records in one statement, so that they are of one moment. The order is that of the
/// records.
pub(crate) async fn read_versions(db: &Db, records: &[&RecordName]) -> Result<Vec<u64>, Error> {
    const READ: PerRow = PerRow {
        before: "SELECT scope, record, version FROM record_versions WHERE ",
        row: "(scope = ? AND record = ?)",
        between: " OR ",
        after: "",
    };
    let names = records
        .iter()
        .map(|it| args![it.scope.as_str(), it.name.as_str()]);
    let Some((sql, args)) = READ.query(names) else {
        return Ok(Vec::new());
    };
    let rows: Vec<(String, String, i64)> = db.fetch_all(sql, args).await?;
    let version_of = |record: &&RecordName| {
        let mut rows = rows.iter();
        let row = rows.find(|(scope, name, _)| *scope == record.scope && *name == record.name);
        row.map_or(0, |(_, _, version)| u64::try_from(*version).unwrap_or(0))
    };
    Ok(records.iter().map(version_of).collect())
}
