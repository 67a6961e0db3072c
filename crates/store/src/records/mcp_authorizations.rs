//! Stores running authorisations of people at the authorisation servers of MCP servers, and our client
//! registrations there. The values are already sealed.

use super::super::Error;
use super::super::db::{Db, args};
use super::admission::SecretHash;
use super::mcp_grants::GrantKey;
use super::scope;
use sepal_core::domain::{Scope, TenantId, Timestamp, UserId};

/// Access to running authorisations and client registrations.
pub struct McpAuthorizations<'s> {
    db: &'s Db,
}

impl<'s> McpAuthorizations<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// Stores the state needed when the authorisation server answers, and deletes expired authorisations.
    pub async fn begin(
        &self,
        key: &GrantKey,
        state: &SecretHash,
        sealed: &str,
        now: Timestamp,
        expires_at: Timestamp,
    ) -> Result<(), Error> {
        let old = "DELETE FROM mcp_authorizations WHERE expires_at <= $1";
        self.db.execute(old, args![now.0]).await?;
        let sql = "INSERT INTO mcp_authorizations (scope, server, tenant, user_id, hash, sealed, \
                   expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7)";
        let mut values = key.args();
        values.extend(args![state.as_str(), sealed, expires_at.0]);
        self.db.execute(sql, values).await?;
        Ok(())
    }

    /// Uses up an authorisation of this person and returns its server and sealed state. Returns `None` if
    /// the person began no authorisation with this `state`, or it is used up or expired.
    pub async fn take(
        &self,
        tenant: &TenantId,
        user: &UserId,
        state: &SecretHash,
        now: Timestamp,
    ) -> Result<Option<(GrantKey, String)>, Error> {
        let sql = "DELETE FROM mcp_authorizations WHERE hash = $1 AND tenant = $2 \
                   AND user_id = $3 AND expires_at > $4 RETURNING scope, server, sealed";
        let values = args![state.as_str(), tenant.as_str(), user.as_str(), now.0];
        let rows: Vec<(String, String, String)> = self.db.execute_returning(sql, values).await?;
        let Some((of, server, sealed)) = rows.into_iter().next() else {
            return Ok(None);
        };
        let key = GrantKey {
            scope: scope(of)?,
            server,
            tenant: tenant.clone(),
            user: user.clone(),
        };
        Ok(Some((key, sealed)))
    }

    /// Our sealed client registration.
    pub async fn client(&self, scope: &Scope, hash: &SecretHash) -> Result<Option<String>, Error> {
        let sql = "SELECT sealed FROM mcp_clients WHERE scope = $1 AND hash = $2";
        let which = args![scope.as_str(), hash.as_str()];
        let row: Option<(String,)> = self.db.fetch_optional(sql, which).await?;
        Ok(row.map(|(sealed,)| sealed))
    }

    /// Stores a client registration.
    pub async fn keep_client(
        &self,
        scope: &Scope,
        hash: &SecretHash,
        sealed: &str,
        now: Timestamp,
    ) -> Result<(), Error> {
        let sql = "INSERT INTO mcp_clients (scope, hash, sealed, created_at) \
                   VALUES ($1, $2, $3, $4) ON CONFLICT (scope, hash) DO UPDATE SET \
                   sealed = excluded.sealed, created_at = excluded.created_at";
        let values = args![scope.as_str(), hash.as_str(), sealed, now.0];
        self.db.execute(sql, values).await?;
        Ok(())
    }

    /// Deletes a registration that the authorisation server no longer knows.
    pub async fn forget_client(&self, scope: &Scope, hash: &SecretHash) -> Result<(), Error> {
        let sql = "DELETE FROM mcp_clients WHERE scope = $1 AND hash = $2";
        let which = args![scope.as_str(), hash.as_str()];
        self.db.execute(sql, which).await?;
        Ok(())
    }
}
