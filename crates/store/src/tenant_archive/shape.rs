//! The tables and columns that an export of this version has, and what their values may be.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::Error;
use crate::db::{Arg, Cell, ColumnKind, Db, TableColumn, newest_schema};
use crate::records::SessionState;
use crate::records::tenant_tables::{Owner, TenantTable, exported_tables};
use sepal_core::domain::{Role, SandboxId, SessionId, TenantId, UserId};

/// The columns whose values are sealed with keys of the installation.
const SEALED: &[(&str, &str)] = &[
    ("providers", "sealed_key"),
    // Further keys, beside what is not sealed.
    ("providers", "windows"),
    ("secrets", "sealed"),
    ("mcp_servers", "sealed"),
    ("mcp_grants", "sealed"),
    ("mcp_clients", "sealed"),
    ("webhooks", "secret"),
    ("webhooks", "sealed_url"),
];

/// A table of an export.
#[derive(Debug, Clone)]
pub(super) struct ExportedTable {
    pub(super) table: &'static TenantTable,
    /// The columns without the one that is the tenant.
    pub(super) columns: Vec<TableColumn>,
}

/// The tables of an export, in their order.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    pub(super) schema: i64,
    pub(super) tables: Vec<ExportedTable>,
}

impl Shape {
    /// The tables with the columns that the database has.
    pub(super) async fn of(db: &Db) -> Result<Self, Error> {
        let mut tables = Vec::new();
        for table in exported_tables() {
            let mut columns = db.columns(table.name).await?;
            if let Owner::Column(owner) = table.owner {
                columns.retain(|column| column.name != owner);
            }
            tables.push(ExportedTable { table, columns });
        }
        Ok(Self {
            schema: newest_schema(),
            tables,
        })
    }
}

impl ExportedTable {
    /// The text for a query of rows after the last one that was read, or of the first ones. `$1` is the tenant,
    /// and the values of the last row's key follow.
    pub(super) fn query(&self, is_first: bool, limit: usize) -> String {
        let names: Vec<&str> = self.columns.iter().map(|it| it.name.as_str()).collect();
        let keys: Vec<&str> = self.keys().map(|it| it.name.as_str()).collect();
        let places: Vec<String> = (2..).take(keys.len()).map(|at| format!("${at}")).collect();
        let (list, places) = (keys.join(", "), places.join(", "));
        let (after, order) = match (is_first, keys.is_empty()) {
            (_, true) => (String::new(), String::new()),
            (true, false) => (String::new(), format!(" ORDER BY {list}")),
            (false, false) => (
                format!(" AND ({list}) > ({places})"),
                format!(" ORDER BY {list}"),
            ),
        };
        format!(
            "SELECT {} FROM {} WHERE {}{after}{order} LIMIT {limit}",
            names.join(", "),
            self.table.name,
            self.table.condition()
        )
    }

    /// The columns of the primary key other than the tenant, in the order of the key.
    pub(super) fn keys(&self) -> impl Iterator<Item = &TableColumn> {
        let mut keys: Vec<&TableColumn> = self.columns.iter().filter(|it| it.key > 0).collect();
        keys.sort_by_key(|it| it.key);
        keys.into_iter()
    }

    /// The values of a row's key, for the query of the next rows.
    pub(super) fn key_of(&self, row: &[Cell]) -> Vec<Arg> {
        self.keys()
            .filter_map(|key| {
                let at = self.columns.iter().position(|it| it.name == key.name)?;
                row.get(at)
            })
            .map(|cell| match cell {
                Cell::Int(number) => Arg::from(*number),
                Cell::Bool(is) => Arg::from(*is),
                Cell::Text(text) => Arg::from(text.as_str()),
                Cell::Bytes(bytes) => Arg::from(bytes.clone()),
                Cell::Null => Arg::Text(None),
            })
            .collect()
    }

    /// True if a row may be as large as a file.
    pub(super) fn has_contents(&self) -> bool {
        self.columns.iter().any(|it| it.kind == ColumnKind::Bytes)
    }

    /// The text for adding a row with these columns; `$1` is the tenant if a column is the tenant.
    pub(super) fn insertion(&self, columns: &[usize]) -> String {
        let owner = match self.table.owner {
            Owner::Column(column) => Some(column),
            Owner::Prefix { .. } => None,
        };
        // The names are those of our own tables.
        let given = columns.iter().filter_map(|at| self.columns.get(*at));
        let names = owner.into_iter().chain(given.map(|it| it.name.as_str()));
        let names: Vec<&str> = names.collect();
        let places: Vec<String> = (1..).take(names.len()).map(|at| format!("${at}")).collect();
        format!(
            "INSERT INTO {} ({}) VALUES ({})",
            self.table.name,
            names.join(", "),
            places.join(", ")
        )
    }

    /// The value in an export. A boolean is an integer in SQLite, and bytes are base64.
    pub(super) fn to_json(&self, tenant: &TenantId, row: Vec<Cell>) -> Result<Value, Error> {
        let corrupt = |column: &TableColumn| {
            Error::corrupt("value of", format!("{}.{}", self.table.name, column.name))
        };
        let value = |(column, cell): (&TableColumn, Cell)| {
            Ok(match (column.kind, cell) {
                (_, Cell::Null) => Value::Null,
                (ColumnKind::Bool, Cell::Int(number)) => Value::Bool(number != 0),
                (ColumnKind::Bool, Cell::Bool(is)) => Value::Bool(is),
                (ColumnKind::Int, Cell::Int(number)) => number.into(),
                (ColumnKind::Bytes, Cell::Bytes(bytes)) => STANDARD.encode(bytes).into(),
                (ColumnKind::Text, Cell::Text(text)) => match self.prefix(&column.name, tenant) {
                    Some(prefix) => text
                        .strip_prefix(&prefix)
                        .ok_or_else(|| corrupt(column))?
                        .into(),
                    None => text.into(),
                },
                (ColumnKind::Text | ColumnKind::Int | ColumnKind::Bool | ColumnKind::Bytes, _) => {
                    return Err(corrupt(column));
                }
            })
        };
        let values = self.columns.iter().zip(row).map(value);
        Ok(Value::Array(values.collect::<Result<_, Error>>()?))
    }

    /// Reads a value of an export that a row of this tenant may have. The error is the reason the value is refused.
    pub(super) fn read(
        &self,
        column: &TableColumn,
        tenant: &TenantId,
        value: Value,
    ) -> Result<Arg, &'static str> {
        let (table, name) = (self.table.name, column.name.as_str());
        let arg = match (column.kind, value) {
            (ColumnKind::Text, Value::String(text)) => match self.prefix(name, tenant) {
                Some(prefix) => Arg::Text(Some(prefix + &text)),
                None => Arg::Text(Some(text)),
            },
            (ColumnKind::Int, Value::Number(number)) => {
                Arg::Int(Some(number.as_i64().ok_or("is too large")?))
            }
            (ColumnKind::Bool, Value::Bool(is)) => Arg::Bool(is),
            (ColumnKind::Bytes, Value::String(text)) => {
                Arg::Bytes(STANDARD.decode(text).map_err(|_| "is not base64")?)
            }
            (ColumnKind::Text, Value::Null) if column.is_nullable => Arg::Text(None),
            (ColumnKind::Int, Value::Null) if column.is_nullable => Arg::Int(None),
            (ColumnKind::Text | ColumnKind::Int | ColumnKind::Bool | ColumnKind::Bytes, _) => {
                return Err("has a value of another kind");
            }
        };
        check(table, name, tenant, &arg)?;
        Ok(fixed(table, name).unwrap_or(arg))
    }

    /// The beginning that the values of a column have in the database, and not in an export.
    fn prefix(&self, column: &str, tenant: &TenantId) -> Option<String> {
        match self.table.owner {
            Owner::Prefix { column: of, prefix } if of == column => {
                Some(format!("{prefix}{}:", tenant.as_str()))
            }
            Owner::Prefix { .. } | Owner::Column(_) => None,
        }
    }

    /// Returns true if a column is the tenant.
    pub(super) fn has_owner_column(&self) -> bool {
        matches!(self.table.owner, Owner::Column(_))
    }

    /// Returns true if the values of the column are sealed.
    pub(super) fn is_sealed(&self, column: &str) -> bool {
        SEALED.contains(&(self.table.name, column))
    }
}

/// Checks the values that gateways read across tenants, or that may name somebody else's things.
fn check(table: &str, column: &str, tenant: &TenantId, value: &Arg) -> Result<(), &'static str> {
    let text = match value {
        Arg::Text(text) => text.as_deref(),
        Arg::Int(_) | Arg::Bool(_) | Arg::Bytes(_) => None,
    };
    let (is_right, reason) = match (table, column) {
        ("sessions", "id") | ("sandboxes", "session") => (
            text.and_then(SessionId::parse).is_some(),
            "is not the id of a session",
        ),
        ("sessions", "parent" | "root") => (
            text.is_none_or(|text| SessionId::parse(text).is_some()),
            "is not the id of a session",
        ),
        ("sessions", "state") => (
            matches!(
                text.and_then(SessionState::parse),
                Some(SessionState::Idle | SessionState::Failed)
            ),
            "is not the state of a session at rest",
        ),
        ("sessions", "owner") | ("users", "id") | ("mcp_bundles", "created_by") => (
            text.and_then(UserId::parse).is_some(),
            "is not the id of a person",
        ),
        ("users", "role") => (text.and_then(Role::parse).is_some(), "is not a role"),
        ("mcp_grants", "scope") => (
            text.is_some_and(|text| text == "installation" || text == tenant.as_str()),
            "is the scope of another tenant",
        ),
        ("mcp_servers", "sealed") | ("webhooks", "sealed_url") => (
            text.is_some(),
            "is not sealed; start this version where the tenant is, and export it again",
        ),
        _ => return Ok(()),
    };
    if is_right { Ok(()) } else { Err(reason) }
}

/// The value that a column gets in every import, whatever the export says.
fn fixed(table: &str, column: &str) -> Option<Arg> {
    Some(match (table, column) {
        // Who administered the installation there does not administer this one.
        ("users", "is_installation_admin") => Arg::Bool(false),
        // The row is complete when the journal is there, and until then nobody looks for it. Nothing waits, and no
        // gateway is at work on anything.
        (
            "sessions",
            "version" | "usage_version" | "indexed" | "waiting" | "asks_approvers" | "asks_members"
            | "asks_admins" | "asks_owners",
        )
        | ("package_installations", "lease_until") => Arg::Int(Some(0)),
        ("sessions", "waiting_since" | "batch_turn" | "batch_iteration" | "expires_at")
        | ("mcp_grants", "lease_until") => Arg::Int(None),
        ("sessions", "batch_tools")
        | ("package_installations", "lease_gateway")
        | ("mcp_grants", "lease") => Arg::Text(None),
        // An export cannot name a workspace that is here. With the same engine the session begins an empty one, with
        // another engine its calls say where the files are.
        ("sandboxes", "id") => Arg::from(SandboxId::from_bits(rand::random()).as_str()),
        // The receivers there have them.
        ("decisions", "is_posted" | "is_logged") => Arg::Bool(true),
        _ => return None,
    })
}

/// The sealed texts in a value: itself, or those in its JSON.
pub(super) fn sealed_texts(value: &str) -> Vec<String> {
    fn collect(value: Value, found: &mut Vec<String>) {
        match value {
            Value::String(text) => found.push(text),
            Value::Array(values) => values.into_iter().for_each(|it| collect(it, found)),
            Value::Object(members) => members.into_iter().for_each(|(_, it)| collect(it, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    match serde_json::from_str(value) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => {
            let mut found = Vec::new();
            collect(value, &mut found);
            found
        }
        Ok(_) | Err(_) => vec![value.to_owned()],
    }
}
