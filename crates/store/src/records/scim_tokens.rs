//! Stores the tokens by which directories manage people and groups (SCIM), which are looked up by the hash of
//! their secret.

use super::super::Error;
use super::super::audit::{Act, ActName};
use super::super::db::{Db, args};
use super::admission::{SecretHash, role};
use super::{tenant_id, user_id};
use sepal_core::domain::{Role, Tenant, TenantId, Timestamp, UserId};

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScimToken {
    pub tenant: TenantId,
    /// `sct_…`.
    pub id: String,
    /// The directory that uses the token, in the words of who made it.
    pub name: String,
    /// The role of people whom the directory makes.
    pub role: Role,
    /// True if a person whom the directory deletes is deleted here for good.
    pub deletes: bool,
    /// The user who made it; `None` = the operator, on the command line.
    pub created_by: Option<UserId>,
    pub created_at: Timestamp,
    /// The approximate time of the last use.
    pub last_used_at: Option<Timestamp>,
}

/// Access to the stored tokens.
pub struct ScimTokens<'s> {
    db: &'s Db,
}

impl<'s> ScimTokens<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// Adds a token.
    pub async fn add(&self, token: &ScimToken, hash: &SecretHash) -> Result<(), Error> {
        let act = of(ActName::ScimTokenAdded, &token.tenant, &token.id)
            .detail("name", token.name.as_str())
            .detail("role", token.role.as_str())
            .detail("deletes", token.deletes);
        let sql = "INSERT INTO scim_tokens (tenant, id, name, hash, role, deletes, created_by, created_at) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
        let values = args![
            token.tenant.as_str(),
            token.id.as_str(),
            token.name.as_str(),
            hash.as_str(),
            token.role.as_str(),
            token.deletes,
            token.created_by.as_ref().map(UserId::as_str),
            token.created_at.0
        ];
        self.db.record(act, sql, values).await?;
        Ok(())
    }

    /// The tokens of a tenant, newest first.
    pub async fn list(&self, tenant: &TenantId) -> Result<Vec<ScimToken>, Error> {
        let sql = "SELECT c.*, '' AS tenant_name FROM scim_tokens c WHERE c.tenant = $1 \
                   ORDER BY c.created_at DESC, c.id";
        let rows: Vec<TokenRow> = self.db.fetch_all(sql, args![tenant.as_str()]).await?;
        let tokens = rows.into_iter().map(TokenRow::into_token);
        tokens.map(|token| Ok(token?.0)).collect()
    }

    /// Deletes a token, which opens nothing from then on. Returns false if there is none with this id.
    pub async fn revoke(&self, tenant: &TenantId, id: &str) -> Result<bool, Error> {
        let act = of(ActName::ScimTokenRevoked, tenant, id);
        let sql = "DELETE FROM scim_tokens WHERE tenant = $1 AND id = $2";
        Ok(self.db.record(act, sql, args![tenant.as_str(), id]).await? > 0)
    }

    /// The token with this hash and its tenant; `None` if there is none, or its tenant is suspended.
    pub async fn open(&self, hash: &SecretHash) -> Result<Option<(ScimToken, Tenant)>, Error> {
        let sql = "SELECT c.*, t.name AS tenant_name FROM scim_tokens c JOIN tenants t \
                   ON t.id = c.tenant AND t.suspended_at IS NULL WHERE c.hash = $1";
        let row: Option<TokenRow> = self.db.fetch_optional(sql, args![hash.as_str()]).await?;
        row.map(TokenRow::into_token).transpose()
    }

    /// Records the time of a use.
    pub async fn touch(&self, tenant: &TenantId, id: &str, now: Timestamp) -> Result<(), Error> {
        let sql = "UPDATE scim_tokens SET last_used_at = $3 WHERE tenant = $1 AND id = $2";
        self.db
            .execute(sql, args![tenant.as_str(), id, now.0])
            .await?;
        Ok(())
    }
}

fn of(name: ActName, tenant: &TenantId, id: &str) -> Act {
    Act::new(name, tenant, "scim_token", id)
}

#[derive(sqlx_macros::FromRow)]
struct TokenRow {
    tenant: String,
    tenant_name: String,
    id: String,
    name: String,
    role: String,
    deletes: bool,
    created_by: Option<String>,
    created_at: i64,
    last_used_at: Option<i64>,
}

impl TokenRow {
    fn into_token(self) -> Result<(ScimToken, Tenant), Error> {
        let tenant = tenant_id(self.tenant)?;
        let token = ScimToken {
            tenant: tenant.clone(),
            id: self.id,
            name: self.name,
            role: role(&self.role)?,
            deletes: self.deletes,
            created_by: self.created_by.map(user_id).transpose()?,
            created_at: Timestamp(self.created_at),
            last_used_at: self.last_used_at.map(Timestamp),
        };
        let name = self.tenant_name;
        Ok((token, Tenant { id: tenant, name }))
    }
}
