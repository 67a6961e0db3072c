//! Reads rows of any listed table with all their columns, for archives of tenants.

use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, Row as _, TypeInfo as _, ValueRef as _};

use super::super::Error;
use super::{Db, args};

/// The kind of values in a column, which is the same in both databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    Text,
    Int,
    Bool,
    Bytes,
}

/// A column of a table, as the database has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableColumn {
    pub(crate) name: String,
    pub(crate) kind: ColumnKind,
    pub(crate) is_nullable: bool,
    /// The place in the primary key, from 1; 0 = the column is not in it.
    pub(crate) key: i64,
}

/// A value in one of the types that the databases have.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Null,
    Int(i64),
    Bool(bool),
    Text(String),
    Bytes(Vec<u8>),
}

/// A row with its values in the order of the query.
#[derive(Debug)]
pub(crate) struct AnyRow(pub(crate) Vec<Cell>);

impl FromRow<'_, SqliteRow> for AnyRow {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        let cell = |at: usize| {
            let raw = row.try_get_raw(at)?;
            if raw.is_null() {
                return Ok(Cell::Null);
            }
            // The type of the value itself: booleans are integers.
            let name = raw.type_info().name().to_owned();
            match name.as_str() {
                "INTEGER" => row.try_get_unchecked(at).map(Cell::Int),
                "TEXT" => row.try_get_unchecked(at).map(Cell::Text),
                "BLOB" => row.try_get_unchecked(at).map(Cell::Bytes),
                _ => Err(unknown(&name)),
            }
        };
        (0..row.len()).map(cell).collect::<Result<_, _>>().map(Self)
    }
}

impl FromRow<'_, PgRow> for AnyRow {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let cell = |at: usize| {
            let raw = row.try_get_raw(at)?;
            if raw.is_null() {
                return Ok(Cell::Null);
            }
            let name = raw.type_info().name().to_owned();
            match name.as_str() {
                "INT8" => row.try_get(at).map(Cell::Int),
                "BOOL" => row.try_get(at).map(Cell::Bool),
                "TEXT" => row.try_get(at).map(Cell::Text),
                "BYTEA" => row.try_get(at).map(Cell::Bytes),
                _ => Err(unknown(&name)),
            }
        };
        (0..row.len()).map(cell).collect::<Result<_, _>>().map(Self)
    }
}

fn unknown(name: &str) -> sqlx::Error {
    sqlx::Error::Decode(format!("a value of the type {name}").into())
}

const SQLITE_COLUMNS: &str =
    "SELECT name, type, \"notnull\", pk FROM pragma_table_info($1) ORDER BY cid";

const POSTGRES_COLUMNS: &str = "SELECT c.column_name::text, c.data_type::text, \
     CASE c.is_nullable WHEN 'NO' THEN 1 ELSE 0 END::bigint, \
     COALESCE((SELECT k.ordinal_position FROM information_schema.table_constraints t \
     JOIN information_schema.key_column_usage k ON k.constraint_schema = t.constraint_schema \
     AND k.constraint_name = t.constraint_name AND k.table_name = t.table_name \
     WHERE t.constraint_type = 'PRIMARY KEY' AND t.table_schema = c.table_schema \
     AND t.table_name = c.table_name AND k.column_name = c.column_name), 0)::bigint \
     FROM information_schema.columns c WHERE c.table_schema = current_schema() \
     AND c.table_name::text = $1 ORDER BY c.ordinal_position";

impl Db {
    /// The columns of a table of ours, in the order of the database.
    pub(crate) async fn columns(&self, table: &'static str) -> Result<Vec<TableColumn>, Error> {
        let sql = match self {
            Self::Sqlite(_) => SQLITE_COLUMNS,
            Self::Postgres(_) => POSTGRES_COLUMNS,
        };
        let rows: Vec<(String, String, i64, i64)> = self.fetch_all(sql, args![table]).await?;
        let column = |(name, kind, not_null, key): (String, String, i64, i64)| {
            let kind = match kind.to_ascii_lowercase().as_str() {
                "text" => ColumnKind::Text,
                "bigint" | "integer" => ColumnKind::Int,
                "boolean" => ColumnKind::Bool,
                "blob" | "bytea" => ColumnKind::Bytes,
                _ => {
                    return Err(Error::corrupt(
                        "type of a column",
                        format!("{table}.{name}"),
                    ));
                }
            };
            Ok(TableColumn {
                name,
                kind,
                is_nullable: not_null == 0,
                key,
            })
        };
        rows.into_iter().map(column).collect()
    }
}
