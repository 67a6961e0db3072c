//! What people allowed at remote MCP servers. Only sealed tokens come here.

use super::super::Error;
use super::super::db::{Arg, Db, Statement, args};
use super::scope;
use crate::domain::{Scope, TenantId, Timestamp, UserId};

/// One person at one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantKey {
    /// Whose entry it is.
    pub scope: Scope,
    /// The entry's name.
    pub server: String,
    pub tenant: TenantId,
    pub user: UserId,
}

/// What is kept of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRow {
    /// Their tokens, sealed; none while they are not connected.
    pub sealed: Option<String>,
    /// What they allowed.
    pub scopes: Vec<String>,
    pub connected_at: Option<Timestamp>,
    /// Counts their tokens.
    pub version: i64,
    /// Since when the server wants them, because a request of theirs met it.
    pub needed_since: Option<Timestamp>,
    /// What it wants them for, as JSON.
    pub challenge: Option<String>,
}

/// Tokens to keep.
#[derive(Clone, Copy)]
pub struct SealedTokens<'a> {
    pub sealed: &'a str,
    pub scopes: &'a [String],
}

/// The grants.
pub struct McpGrants<'s> {
    db: &'s Db,
}

impl<'s> McpGrants<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// What is kept of a person at a server.
    pub async fn get(&self, key: &GrantKey) -> Result<Option<GrantRow>, Error> {
        let sql = "SELECT * FROM mcp_grants WHERE scope = $1 AND server = $2 AND tenant = $3 \
                   AND user_id = $4";
        let row: Option<Row> = self.db.fetch_optional(sql, key.args()).await?;
        row.map(|row| Ok(row.into_parts()?.2)).transpose()
    }

    /// All that is kept of a person, with scope and name of the servers.
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

    /// The person has connected.
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
        self.db.execute(sql, values).await?;
        Ok(())
    }

    /// Whether `owner` alone may renew the tokens of that version, until `until`.
    pub async fn lease(
        &self,
        key: &GrantKey,
        (version, owner): (i64, &str),
        (now, until): (Timestamp, Timestamp),
    ) -> Result<bool, Error> {
        let sql = "UPDATE mcp_grants SET lease = $5, lease_until = $6 WHERE scope = $1 \
                   AND server = $2 AND tenant = $3 AND user_id = $4 AND version = $7 \
                   AND sealed IS NOT NULL AND (lease IS NULL OR lease_until <= $8)";
        let mut values = key.args();
        values.extend(args![owner, until.0, version, now.0]);
        Ok(self.db.execute(sql, values).await? > 0)
    }

    /// Puts renewed tokens in place of those that `owner` had the lease of; false if the lease was
    /// another's by then, or the person has connected anew.
    pub async fn renew(
        &self,
        key: &GrantKey,
        (version, owner): (i64, &str),
        tokens: SealedTokens<'_>,
    ) -> Result<bool, Error> {
        let sql = "UPDATE mcp_grants SET sealed = $5, scopes = $6, version = version + 1, \
                   lease = NULL, lease_until = NULL WHERE scope = $1 AND server = $2 \
                   AND tenant = $3 AND user_id = $4 AND version = $7 AND lease = $8";
        let mut values = key.args();
        let scopes = tokens.scopes.join(" ");
        values.extend(args![tokens.sealed, scopes.as_str(), version, owner]);
        Ok(self.db.execute(sql, values).await? > 0)
    }

    /// Gives a lease back whose tokens stay as they are.
    pub async fn release(&self, key: &GrantKey, owner: &str) -> Result<(), Error> {
        let sql = "UPDATE mcp_grants SET lease = NULL, lease_until = NULL WHERE scope = $1 \
                   AND server = $2 AND tenant = $3 AND user_id = $4 AND lease = $5";
        let mut values = key.args();
        values.extend(args![owner]);
        self.db.execute(sql, values).await?;
        Ok(())
    }

    /// The tokens of that version are worth nothing any more.
    pub async fn end(&self, key: &GrantKey, version: i64) -> Result<(), Error> {
        let sql = "UPDATE mcp_grants SET sealed = NULL, connected_at = NULL, \
                   version = version + 1, lease = NULL, lease_until = NULL WHERE scope = $1 \
                   AND server = $2 AND tenant = $3 AND user_id = $4 AND version = $5";
        let mut values = key.args();
        values.extend(args![version]);
        self.db.execute(sql, values).await?;
        Ok(())
    }

    /// The server wants the person.
    pub async fn need(&self, key: &GrantKey, challenge: &str, now: Timestamp) -> Result<(), Error> {
        let sql = "INSERT INTO mcp_grants (scope, server, tenant, user_id, scopes, version, \
                   needed_since, challenge) VALUES ($1, $2, $3, $4, '', 0, $5, $6) \
                   ON CONFLICT (scope, server, tenant, user_id) DO UPDATE SET \
                   needed_since = COALESCE(mcp_grants.needed_since, excluded.needed_since), \
                   challenge = excluded.challenge";
        let mut values = key.args();
        values.extend(args![now.0, challenge]);
        self.db.execute(sql, values).await?;
        Ok(())
    }

    /// The person does not want to connect now; whether the server wanted them.
    pub async fn dismiss(&self, key: &GrantKey) -> Result<bool, Error> {
        let sql = "UPDATE mcp_grants SET needed_since = NULL WHERE scope = $1 AND server = $2 \
                   AND tenant = $3 AND user_id = $4 AND needed_since IS NOT NULL";
        Ok(self.db.execute(sql, key.args()).await? > 0)
    }

    /// Forgets a person at a server: their sealed tokens, if they were connected. That people connect to it
    /// stays known.
    pub async fn disconnect(&self, key: &GrantKey) -> Result<Option<String>, Error> {
        let sql = "DELETE FROM mcp_grants WHERE scope = $1 AND server = $2 AND tenant = $3 \
                   AND user_id = $4 RETURNING sealed";
        let rows: Vec<(Option<String>,)> = self.db.change_returning(sql, key.args()).await?;
        let Some((sealed,)) = rows.into_iter().next() else {
            return Ok(None);
        };
        let sql = "INSERT INTO mcp_grants (scope, server, tenant, user_id, scopes, version) \
                   VALUES ($1, $2, $3, $4, '', 0) ON CONFLICT DO NOTHING";
        self.db.execute(sql, key.args()).await?;
        Ok(sealed)
    }

    /// Whether anybody connected to the server, or was wanted by it.
    pub async fn is_for_people(&self, scope: &Scope, server: &str) -> Result<bool, Error> {
        let sql = "SELECT version FROM mcp_grants WHERE scope = $1 AND server = $2 LIMIT 1";
        let found: Option<(i64,)> = self
            .db
            .fetch_optional(sql, args![scope.as_str(), server])
            .await?;
        Ok(found.is_some())
    }

    /// Forgets everybody at a server: its entry is gone or leads elsewhere.
    pub async fn forget(&self, scope: &Scope, server: &str) -> Result<(), Error> {
        let which = || args![scope.as_str(), server];
        let grants = "DELETE FROM mcp_grants WHERE scope = $1 AND server = $2";
        let begun = "DELETE FROM mcp_authorizations WHERE scope = $1 AND server = $2";
        self.db
            .execute_all(vec![
                Statement::new(grants, which()),
                Statement::new(begun, which()),
            ])
            .await?;
        Ok(())
    }
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

#[derive(sqlx::FromRow)]
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
