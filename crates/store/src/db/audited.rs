//! Finds writes of audited tables that no act covers.
//!
//! A write of an audited table has to belong to an act, so that the audit has a record of it. In debug builds a
//! transaction without one is refused: any test that runs the write finds the missing act. Other builds log it.

use super::Statement;

/// A table whose changes are acts.
struct AuditedTable {
    name: &'static str,
    /// Columns that the gateway keeps for itself, such as times of use. Updates of these alone are not acts.
    exempt: &'static [&'static str],
    /// True if only deletions and updates of [`Self::audited`] are acts, because rows are projected.
    is_projected: bool,
    /// The columns of a projected table that people change.
    audited: &'static [&'static str],
}

const fn all(name: &'static str) -> AuditedTable {
    but(name, &[])
}

const fn but(name: &'static str, exempt: &'static [&'static str]) -> AuditedTable {
    AuditedTable {
        name,
        exempt,
        is_projected: false,
        audited: &[],
    }
}

const TABLES: &[AuditedTable] = &[
    AuditedTable {
        name: "sessions",
        exempt: &[],
        is_projected: true,
        audited: &["delete_at"],
    },
    but("web_sessions", &["last_seen_at"]),
    but("api_keys", &["last_used_at"]),
    all("tenants"),
    all("users"),
    all("custom_roles"),
    all("role_holders"),
    all("user_groups"),
    all("group_members"),
    all("group_roles"),
    but("scim_tokens", &["last_used_at"]),
    all("directory_people"),
    all("directory_groups"),
    all("group_access"),
    but("session_readings", &["seen_at"]),
    AuditedTable {
        name: "session_transfers",
        exempt: &[],
        is_projected: true,
        audited: &["done_at"],
    },
    all("links"),
    all("invitations"),
    but("identities", &["last_used_at"]),
    but("passkeys", &["counter", "last_used_at"]),
    all("gestures"),
    all("providers"),
    all("secrets"),
    all("mcp_servers"),
    but("mcp_bundles", &["used_at"]),
    but("mcp_grants", &["lease", "lease_until", "needed_since"]),
    but("package_installations", &["lease_gateway", "lease_until"]),
    all("mcp_tool_settings"),
    all("rules"),
    all("budgets"),
    all("skills"),
    all("assistants"),
    all("assistant_access"),
    all("assistant_versions"),
    all("skill_switches"),
    all("model_defaults"),
    all("compaction_defaults"),
    but(
        "webhooks",
        &[
            "last_at",
            "last_status",
            "last_error",
            "failing_since",
            "disabled_at",
        ],
    ),
    all("shared_sessions"),
];

/// The audited table that a transaction changes without an act, if there is one. The statements of a
/// transaction with an act all belong to it.
pub(super) fn unrecorded(statements: &[Statement]) -> Option<&'static str> {
    if statements.iter().any(|statement| statement.act.is_some()) {
        return None;
    }
    let mut uncovered = statements.iter().filter(|statement| !statement.is_upkeep);
    uncovered.find_map(|statement| audited_table(statement.sql.start()))
}

/// The audited table that a statement changes. `sql` may end before its values.
pub(super) fn audited_table(sql: &str) -> Option<&'static str> {
    let (verb, rest) = sql.split_once(' ')?;
    let name_of = |rest: &str| -> Option<&'static AuditedTable> {
        let name = rest.split([' ', '(']).next()?;
        TABLES.iter().find(|table| table.name == name)
    };
    let table = match verb {
        "INSERT" => name_of(rest.strip_prefix("INTO ")?).filter(|table| !table.is_projected),
        "DELETE" => name_of(rest.strip_prefix("FROM ")?),
        "UPDATE" => name_of(rest).filter(|table| {
            let mut columns = set_columns(rest);
            if table.is_projected {
                columns.any(|column| table.audited.contains(&column))
            } else {
                columns.any(|column| !table.exempt.contains(&column))
            }
        }),
        _ => None,
    };
    table.map(|table| table.name)
}

/// The columns that an `UPDATE` sets.
fn set_columns(sql: &str) -> impl Iterator<Item = &str> {
    let set = sql.split_once(" SET ").map_or("", |(_, set)| set);
    let mut depth = 0_i32;
    let mut is_name = true;
    let words = set.split_inclusive([',', '(', ')', '=', ' ']);
    words
        .take_while(|word| word.trim() != "WHERE")
        .filter_map(move |word| {
            let was_name = is_name && depth == 0;
            let name = word.trim_end_matches([',', '(', ')', '=', ' ']);
            match word.chars().last() {
                Some('(') => depth += 1,
                Some(')') => depth -= 1,
                Some('=') => is_name = false,
                Some(',') if depth == 0 => is_name = true,
                _ => {}
            }
            (was_name && !name.is_empty()).then_some(name)
        })
}

#[cfg(test)]
mod tests {
    use super::super::{Sql, Statement, args};
    use super::{audited_table, set_columns, unrecorded};
    use crate::audit::{Act, ActName};
    use sepal_core::domain::Scope;

    #[test]
    fn the_columns_of_an_update_are_found() {
        for (sql, expected) in [
            ("t SET a = $1 WHERE b = 2", &["a"][..]),
            (
                "t SET a = COALESCE(a, $2), b = CASE WHEN $3 THEN c ELSE NULL END, d = NULL \
                 WHERE tenant = $1",
                &["a", "b", "d"],
            ),
            ("t SET a = excluded.a", &["a"]),
        ] {
            assert_eq!(set_columns(sql).collect::<Vec<_>>(), expected, "{sql}");
        }
    }

    #[test]
    fn writes_of_audited_tables_are_found() {
        for (sql, expected) in [
            (
                "INSERT INTO users (tenant, id) VALUES ($1, $2)",
                Some("users"),
            ),
            ("INSERT INTO sessions (tenant, id) VALUES ($1, $2)", None),
            ("DELETE FROM sessions WHERE tenant = $1", Some("sessions")),
            (
                "UPDATE sessions SET pinned = $3, marked = marked + 1 WHERE id = $2",
                None,
            ),
            (
                "UPDATE sessions SET delete_at = NULL WHERE id = $2",
                Some("sessions"),
            ),
            (
                "UPDATE web_sessions SET last_seen_at = $3 WHERE id = $2",
                None,
            ),
            (
                "UPDATE passkeys SET counter = $5, last_used_at = $6 WHERE id = $3",
                None,
            ),
            (
                "UPDATE passkeys SET name = $4 WHERE id = $3",
                Some("passkeys"),
            ),
            ("DELETE FROM journal WHERE tenant = $1", None),
            ("INSERT INTO model_requests (tenant) VALUES ($1)", None),
        ] {
            assert_eq!(audited_table(sql), expected, "{sql}");
        }
    }

    #[test]
    fn a_transaction_needs_one_act_or_is_upkeep() {
        let sql = "DELETE FROM links WHERE hash = $1";
        let plain = || Statement::new(Sql::from(sql), args![""]);
        let act = || Act::new(ActName::LinkUsed, &Scope::Installation, "link", "");
        assert_eq!(unrecorded(&[plain()]), Some("links"));
        assert_eq!(unrecorded(&[plain().upkeep()]), None);
        assert_eq!(unrecorded(&[plain().upkeep(), plain()]), Some("links"));
        assert_eq!(unrecorded(&[plain(), plain().recorded(act())]), None);
    }
}
