//! Deletes users with everything of theirs.

use super::super::super::Error;
use super::super::super::audit::ActName;
use super::super::super::db::{Statement, args};
use super::super::{tenant_id, user_id};
use super::{Users, ended_access, is_not_last_owner, of};
use sepal_core::domain::{TenantId, Timestamp, UserId};

/// Builds the statements that delete a user's rows, from tables with the columns that name the tenant and the
/// user.
macro_rules! purges {
    ($($table:literal: $tenant:literal, $user:literal);* $(;)?) => {
        [$(concat!("DELETE FROM ", $table, " WHERE ", $tenant, " = $1 AND ", $user, " = $2")),*]
    };
}

/// Every table with rows that belong to a user; a test compares the list with the migrations. The rows of
/// sessions and of servers are not in it: whoever removes those deletes them.
const PURGES: &[&str] = &purges! {
    "model_defaults": "scope", "user_id";
    "budget_reservations": "tenant", "owner";
    "budget_warnings": "tenant", "subject";
    "budgets": "tenant", "subject";
    "idempotency_keys": "tenant", "owner";
    "rules": "tenant", "owner";
    "notifications": "tenant", "owner";
    "notifications": "tenant", "target";
    "passkeys": "tenant", "user_id";
    "gestures": "tenant", "user_id";
    "mcp_grants": "tenant", "user_id";
    "mcp_authorizations": "tenant", "user_id";
    "skill_switches": "tenant", "person";
    "skills": "tenant", "owner";
    "assistant_access": "tenant", "person";
    "assistants": "tenant", "owner";
    "role_holders": "tenant", "user_id";
    "group_members": "tenant", "user_id";
    "session_readings": "tenant", "owner";
    "session_readings": "tenant", "reader";
    "session_transfers": "tenant", "user_id";
    "links": "tenant", "user_id";
    "web_sessions": "tenant", "user_id";
    "identities": "tenant", "user_id";
    "directory_people": "tenant", "user_id";
    "api_keys": "tenant", "user_id";
};

/// Deletes the rows that refer to assistants of a user, before the assistants.
const PARTS_OF_ASSISTANTS: [&str; 3] = [
    "DELETE FROM assistant_versions WHERE tenant = $1 AND assistant IN \
     (SELECT id FROM assistants WHERE tenant = $1 AND owner = $2)",
    "DELETE FROM assistant_access WHERE tenant = $1 AND assistant IN \
     (SELECT id FROM assistants WHERE tenant = $1 AND owner = $2)",
    "DELETE FROM assistant_files WHERE tenant = $1 AND assistant IN \
     (SELECT id FROM assistants WHERE tenant = $1 AND owner = $2)",
];

/// Deletes the warnings of budgets that groups give each member: these name the group and the user.
const WARNINGS_OF_GROUPS: &str =
    "DELETE FROM budget_warnings WHERE tenant = $1 AND subject LIKE '% ' || $2";

/// Deletes the files of skills that no skill has any more.
const ORPHANS: &str = "DELETE FROM skill_bundles WHERE tenant = $1 AND hash NOT IN \
                       (SELECT hash FROM skills WHERE tenant = $1)";

impl Users<'_> {
    /// Ends the access of a user for good, so that a living gateway deletes them. Returns false if the user does
    /// not exist or is the last owner.
    pub async fn give_up(
        &self,
        tenant: &TenantId,
        id: &UserId,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let sql = concat!(
            "UPDATE users SET is_disabled = TRUE, delete_at = COALESCE(delete_at, $3) \
             WHERE tenant = $1 AND id = $2 AND ",
            is_not_last_owner!()
        );
        let values = args![tenant.as_str(), id.as_str(), now.0];
        let ended = Statement::required(sql, values).recorded(of(ActName::UserGivenUp, tenant, id));
        let mut statements = vec![ended];
        statements.extend(ended_access(tenant, id));
        Ok(self.db.execute_all(statements).await?.is_some())
    }

    /// The users that are to be deleted, of tenants that stay.
    pub async fn given_up(&self) -> Result<Vec<(TenantId, UserId)>, Error> {
        let sql = "SELECT u.tenant, u.id FROM users u JOIN tenants t ON t.id = u.tenant \
                   WHERE u.delete_at IS NOT NULL AND t.delete_at IS NULL ORDER BY u.tenant, u.id";
        let rows: Vec<(String, String)> = self.db.fetch_all(sql, args![]).await?;
        rows.into_iter()
            .map(|(tenant, id)| Ok((tenant_id(tenant)?, user_id(id)?)))
            .collect()
    }

    /// Deletes a user and their rows in every table. Their sessions and servers must already be removed. What they
    /// used stays counted under their id, and the audit keeps its records.
    pub async fn purge(&self, tenant: &TenantId, id: &UserId) -> Result<(), Error> {
        let whom = || args![tenant.as_str(), id.as_str()];
        let purges = PARTS_OF_ASSISTANTS.iter().chain(PURGES);
        let mut statements: Vec<Statement> =
            purges.map(|sql| Statement::new(*sql, whom())).collect();
        statements.push(Statement::new(WARNINGS_OF_GROUPS, whom()));
        statements.push(Statement::new(ORPHANS, args![tenant.as_str()]));
        let last = "DELETE FROM users WHERE tenant = $1 AND id = $2 AND delete_at IS NOT NULL";
        let last = Statement::required(last, whom());
        statements.push(last.recorded(of(ActName::UserDeleted, tenant, id)));
        // Another gateway may have been faster.
        self.db.execute_all(statements).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::super::tenants::schema_columns::texts;
    use super::PURGES;

    /// Columns that name a person in rows that are deleted with sessions or servers, or that stay: sums of what
    /// was used, and who once made or changed something of the team's.
    const OTHERS: &[&str] = &[
        "sessions.owner",
        "texts.owner",
        "mcp_servers.owner",
        "model_requests.owner",
        "group_spend.owner",
        "request_tools.owner",
        "tool_calls.owner",
        "daily_spend.owner",
        "decisions.person",
        "audit.person",
        "audit.subject",
        "identities.subject",
        "web_sessions.subject",
    ];

    /// Asserts that no table keeps rows of a deleted person: each column of the migrations that names one is
    /// purged, or named above.
    #[test]
    fn every_table_with_rows_of_a_person_is_purged() {
        let mut purged: BTreeSet<String> = PURGES
            .iter()
            .map(|sql| {
                let words: Vec<&str> = sql.split_whitespace().collect();
                format!("{}.{}", words[2], words[8])
            })
            .collect();
        assert!(purged.remove("notifications.target"));
        for kind in ["sqlite", "postgres"] {
            let found: BTreeSet<String> = texts(kind)
                .into_iter()
                .filter(|(_, column)| {
                    ["owner", "user_id", "person", "subject", "reader"].contains(&column.as_str())
                })
                .map(|(table, column)| format!("{table}.{column}"))
                .filter(|column| !OTHERS.contains(&column.as_str()))
                .collect();
            assert_eq!(found, purged, "{kind}");
        }
    }
}
