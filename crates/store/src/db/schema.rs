//! Knows the migrations of both databases, and takes over databases from before [`FIRST`].
//!
//! `0035_schema.sql` replaced the migrations 1 to 34 and makes the same tables. A database of migration 34
//! thus needs no change of its tables: only the rows in which sqlx recorded the old migrations are replaced.

use std::path::Path;
use std::sync::Arc;

use sqlx::migrate::{Migrate, MigrateError, Migrator};
use sqlx::{Connection, Database, Executor};

use super::super::Error;

/// The migrations of an SQLite file.
pub(super) static SQLITE: Migrator = sqlx_macros::migrate!("../../migrations/sqlite");

/// The migrations of a PostgreSQL database.
pub(super) static POSTGRES: Migrator = sqlx_macros::migrate!("../../migrations/postgres");

/// The migration that makes the whole schema. Later ones change it.
const FIRST: i64 = 35;

/// The table in which sqlx records the migrations that ran.
const TABLE: &str = "_sqlx_migrations";

/// The reason a database from before migration 34 is refused.
const OUTDATED: &str = "its tables are older than this version can take over; start the previous version \
                        of Sepal, whose newest migration is 34, on it once, or restore a newer backup into \
                        an empty folder";

/// The newest migration that this program knows.
pub(crate) fn newest_schema() -> i64 {
    let versions = SQLITE.iter().map(|migration| migration.version);
    versions.max().unwrap_or(0)
}

/// Takes over a database whose newest migration is 34: records that [`FIRST`] ran on it. Leaves new and newer
/// databases as they are, and refuses older ones. Call this before [`Migrator::run`], and close the
/// connection after an error, because it then still holds sqlx's lock.
///
/// `begin` starts a transaction; on SQLite it must take the write lock, because sqlx has no lock there. On
/// PostgreSQL, gateways that start at once wait for sqlx's lock. `database` names the database in errors.
pub(super) async fn take_over<Db, C>(
    connection: &mut C,
    migrations: &Migrator,
    begin: &'static str,
    database: &Path,
) -> Result<(), Error>
where
    Db: Database<Connection = C>,
    C: Connection<Database = Db> + Migrate,
    for<'c> &'c mut C: Executor<'c, Database = Db>,
{
    connection.lock().await.map_err(unmigrated)?;
    connection
        .ensure_migrations_table(TABLE)
        .await
        .map_err(unmigrated)?;
    match newest(connection).await? {
        // A new database.
        None => {}
        Some(version) if version >= FIRST => {}
        Some(version) if version == FIRST - 1 => replace(connection, migrations, begin).await?,
        Some(_) => {
            return Err(Error::Unusable {
                path: database.to_owned(),
                reason: OUTDATED,
                source: None,
            });
        }
    }
    connection.unlock().await.map_err(unmigrated)
}

/// Replaces the rows of the old migrations by the row of [`FIRST`], in one transaction.
async fn replace<Db, C>(
    connection: &mut C,
    migrations: &Migrator,
    begin: &'static str,
) -> Result<(), Error>
where
    Db: Database<Connection = C>,
    C: Connection<Database = Db> + Migrate,
    for<'c> &'c mut C: Executor<'c, Database = Db>,
{
    let mut tx = connection.begin_with(begin).await?;
    if let Some(version) = tx.dirty_version(TABLE).await.map_err(unmigrated)? {
        return Err(unmigrated(MigrateError::Dirty(version)));
    }
    // On SQLite, another process may have been first.
    if newest(&mut *tx).await? == Some(FIRST - 1) {
        (&mut *tx)
            .execute("DELETE FROM _sqlx_migrations WHERE version < 35")
            .await?;
        let schema = migrations.iter().find(|it| it.version == FIRST);
        let schema = schema.ok_or_else(|| unmigrated(MigrateError::VersionNotPresent(FIRST)))?;
        tx.skip(TABLE, schema).await.map_err(unmigrated)?;
    }
    tx.commit().await?;
    Ok(())
}

/// The newest migration that ran on the database.
async fn newest(connection: &mut impl Migrate) -> Result<Option<i64>, Error> {
    let applied = connection.list_applied_migrations(TABLE).await;
    let applied = applied.map_err(unmigrated)?;
    Ok(applied.iter().map(|migration| migration.version).max())
}

/// The error for tables that could not be brought to this version.
pub(super) fn unmigrated(error: MigrateError) -> Error {
    Error::Migration(Arc::new(error))
}

#[cfg(test)]
mod tests {
    use super::{FIRST, POSTGRES, SQLITE};

    /// A backup stores only its newest migration number, so a migration inserted before that number would
    /// never run.
    #[test]
    fn migrations_are_numbered_without_a_gap() {
        for migrations in [&SQLITE, &POSTGRES] {
            let versions: Vec<i64> = migrations.iter().map(|it| it.version).collect();
            let expected: Vec<i64> = (FIRST..).take(versions.len()).collect();
            assert!(!versions.is_empty() && versions == expected, "{versions:?}");
        }
    }
}
