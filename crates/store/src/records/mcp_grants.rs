//! Stores the access that people granted to remote MCP servers. The tokens are already sealed.

use super::super::Error;
use super::super::audit::{Act, ActName};
use super::super::db::{Arg, Db, Statement, args};
use super::scope;
use sepal_core::domain::{Scope, TenantId, Timestamp, UserId};

/// Identifies one person's grant at one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantKey {
    /// The scope of the server entry.
    pub scope: Scope,
    /// The name of the server entry.
    pub server: String,
    pub tenant: TenantId,
    pub user: UserId,
}

/// The stored grant of a person at a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRow {
    /// The sealed tokens; `None` while the person is not connected.
    pub sealed: Option<String>,
    /// The OAuth scopes that the person granted.
    pub scopes: Vec<String>,
    pub connected_at: Option<Timestamp>,
    /// Counts the changes of the tokens.
    pub version: i64,
    /// The time at which the server first refused a request of the person for lack of authorization.
    pub needed_since: Option<Timestamp>,
    /// The server's challenge, as JSON.
    pub challenge: Option<String>,
}

/// Sealed tokens to store, with their OAuth scopes.
#[derive(Clone, Copy)]
pub struct SealedTokens<'a> {
    pub sealed: &'a str,
    pub scopes: &'a [String],
}

/// Access to the stored grants.
pub struct McpGrants<'s> {
    db: &'s Db,
}

impl<'s> McpGrants<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// The grant of a person at a server.
    pub async fn get(&self, key: &GrantKey) -> Result<Option<GrantRow>, Error> {
        let sql = "SELECT * FROM mcp_grants WHERE scope = $1 AND server = $2 AND tenant = $3 \
                   AND user_id = $4";
        let row: Option<Row> = self.db.fetch_optional(sql, key.args()).await?;
        row.map(|row| Ok(row.into_parts()?.2)).transpose()
    }

    /// All grants of a person, with the scope and name of each server.
    pub async fn of_person(
        &self,
        tenant: &TenantId,
        user: &UserId,
    ) -> Result<Vec<(Scope, String, GrantRow)>, Error> {
        let sql = "SELECT * FROM mcp_grants WHERE tenant = $1 AND user_id = $2 ORDER BY server";
        let whose = args![tenant.as_str(), user.as_str()];
        let rows: Vec<Row> = self.db.fetch_all(sql, whose).await?;
        rows.into_iter().map(Row::into_parts).collect()
    }

    /// Stores the tokens of a person who has connected.
    pub async fn connect(
        &self,
        key: &GrantKey,
        tokens: SealedTokens<'_>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let sql = "INSERT INTO mcp_grants (scope, server, tenant, user_id, sealed, scopes, \
                   connected_at, version) VALUES ($1, $2, $3, $4, $5, $6, $7, 1) \
                   ON CONFLICT (scope, server, tenant, user_id) DO UPDATE SET \
                   sealed = excluded.sealed, scopes = excluded.scopes, \
                   connected_at = excluded.connected_at, version = mcp_grants.version + 1, \
                   lease = NULL, lease_until = NULL, needed_since = NULL, challenge = NULL";
        let mut values = key.args();
        values.extend(args![
            tokens.sealed,
            tokens.scopes.join(" ").as_str(),
            now.0
        ]);
        let act = of(ActName::GrantGiven, key).detail("scopes", tokens.scopes.join(" "));
        self.db.record(act, sql, values).await?;
        Ok(())
    }

    /// Takes the lease to renew the tokens of this version until `until`. Returns false if another owner has
    /// the lease, the version changed, or the person is not connected.
    pub async fn lease(
        &self,
        key: &GrantKey,
        version: i64,
        owner: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, Error> {
        let sql = "UPDATE mcp_grants SET lease = $5, lease_until = $6 WHERE scope = $1 \
                   AND server = $2 AND tenant = $3 AND user_id = $4 AND version = $7 \
                   AND sealed IS NOT NULL AND (lease IS NULL OR lease_until <= $8)";
        let mut values = key.args();
        values.extend(args![owner, until.0, version, now.0]);
        Ok(self.db.execute(sql, values).await? > 0)
    }

    /// Stores renewed tokens if `owner` has the lease. Returns false if another owner has the lease, or the
    /// person has connected again since.
    pub async fn renew(
        &self,
        key: &GrantKey,
        version: i64,
        owner: &str,
        tokens: SealedTokens<'_>,
    ) -> Result<bool, Error> {
        let sql = "UPDATE mcp_grants SET sealed = $5, scopes = $6, version = version + 1, \
                   lease = NULL, lease_until = NULL WHERE scope = $1 AND server = $2 \
                   AND tenant = $3 AND user_id = $4 AND version = $7 AND lease = $8";
        let mut values = key.args();
        let scopes = tokens.scopes.join(" ");
        values.extend(args![tokens.sealed, scopes.as_str(), version, owner]);
        Ok(self.db.keep_up(sql, values).await? > 0)
    }

    /// Releases a lease without changing the tokens.
    pub async fn release(&self, key: &GrantKey, owner: &str) -> Result<(), Error> {
        let sql = "UPDATE mcp_grants SET lease = NULL, lease_until = NULL WHERE scope = $1 \
                   AND server = $2 AND tenant = $3 AND user_id = $4 AND lease = $5";
        let mut values = key.args();
        values.extend(args![owner]);
        self.db.execute(sql, values).await?;
        Ok(())
    }

    /// Deletes the tokens of this version, which are no longer valid.
    pub async fn end(&self, key: &GrantKey, version: i64) -> Result<(), Error> {
        let sql = "UPDATE mcp_grants SET sealed = NULL, connected_at = NULL, \
                   version = version + 1, lease = NULL, lease_until = NULL WHERE scope = $1 \
                   AND server = $2 AND tenant = $3 AND user_id = $4 AND version = $5";
        let mut values = key.args();
        values.extend(args![version]);
        self.db
            .record(of(ActName::GrantEnded, key), sql, values)
            .await?;
        Ok(())
    }

    /// Records that the server requires the person to connect.
    pub async fn need(&self, key: &GrantKey, challenge: &str, now: Timestamp) -> Result<(), Error> {
        let sql = "INSERT INTO mcp_grants (scope, server, tenant, user_id, scopes, version, \
                   needed_since, challenge) VALUES ($1, $2, $3, $4, '', 0, $5, $6) \
                   ON CONFLICT (scope, server, tenant, user_id) DO UPDATE SET \
                   needed_since = COALESCE(mcp_grants.needed_since, excluded.needed_since), \
                   challenge = excluded.challenge";
        let mut values = key.args();
        values.extend(args![now.0, challenge]);
        self.db.keep_up(sql, values).await?;
        Ok(())
    }

    /// Dismisses the server's request to connect. Returns true if there was one.
    pub async fn dismiss(&self, key: &GrantKey) -> Result<bool, Error> {
        let sql = "UPDATE mcp_grants SET needed_since = NULL WHERE scope = $1 AND server = $2 \
                   AND tenant = $3 AND user_id = $4 AND needed_since IS NOT NULL";
        Ok(self.db.execute(sql, key.args()).await? > 0)
    }

    /// Empties a person's grant and returns the sealed tokens, if the person was connected. The empty row
    /// remains, so that [`Self::is_for_people`] stays true for the server. One statement does it, so at no
    /// moment is there no row.
    pub async fn disconnect(&self, key: &GrantKey) -> Result<Option<String>, Error> {
        let sql = "UPDATE mcp_grants SET sealed = NULL, scopes = '', connected_at = NULL, \
                   version = version + 1, lease = NULL, lease_until = NULL, needed_since = NULL, \
                   challenge = NULL WHERE scope = $1 AND server = $2 AND tenant = $3 \
                   AND user_id = $4 AND version = $5";
        loop {
            let Some(row) = self.get(key).await? else {
                return Ok(None);
            };
            let mut values = key.args();
            values.extend(args![row.version]);
            // No row changes if the tokens were renewed meanwhile; the renewed ones are returned then.
            let act = of(ActName::GrantEnded, key);
            if self.db.record(act, sql, values).await? > 0 {
                return Ok(row.sealed);
            }
        }
    }

    /// Returns true if anyone has connected to the server, or was required to connect.
    pub async fn is_for_people(&self, scope: &Scope, server: &str) -> Result<bool, Error> {
        let sql = "SELECT version FROM mcp_grants WHERE scope = $1 AND server = $2 LIMIT 1";
        let found: Option<(i64,)> = self
            .db
            .fetch_optional(sql, args![scope.as_str(), server])
            .await?;
        Ok(found.is_some())
    }

    /// Deletes all grants and running authorisations of a server whose entry was removed or has a new
    /// address.
    pub async fn forget(&self, scope: &Scope, server: &str) -> Result<(), Error> {
        let which = || args![scope.as_str(), server];
        let grants = "DELETE FROM mcp_grants WHERE scope = $1 AND server = $2";
        let begun = "DELETE FROM mcp_authorizations WHERE scope = $1 AND server = $2";
        self.db
            .execute_all(vec![
                Statement::new(grants, which()).recorded(Act::new(
                    ActName::GrantsForgotten,
                    scope,
                    "server",
                    server,
                )),
                Statement::new(begun, which()),
            ])
            .await?;
        Ok(())
    }
}

/// An act on the grant of a person, told in the chain of the person's tenant.
fn of(name: ActName, key: &GrantKey) -> Act {
    Act::new(name, &key.tenant, "server", key.server.as_str())
        .detail("user", key.user.as_str())
        .detail("scope", key.scope.as_str())
}

impl GrantKey {
    pub(super) fn args(&self) -> Vec<Arg> {
        args![
            self.scope.as_str(),
            self.server.as_str(),
            self.tenant.as_str(),
            self.user.as_str()
        ]
    }
}

#[derive(sqlx_macros::FromRow)]
struct Row {
    scope: String,
    server: String,
    sealed: Option<String>,
    scopes: String,
    connected_at: Option<i64>,
    version: i64,
    needed_since: Option<i64>,
    challenge: Option<String>,
}

impl Row {
    fn into_parts(self) -> Result<(Scope, String, GrantRow), Error> {
        let row = GrantRow {
            sealed: self.sealed,
            scopes: self
                .scopes
                .split_whitespace()
                .map(ToOwned::to_owned)
                .collect(),
            connected_at: self.connected_at.map(Timestamp),
            version: self.version,
            needed_since: self.needed_since.map(Timestamp),
            challenge: self.challenge,
        };
        Ok((scope(self.scope)?, self.server, row))
    }
}
