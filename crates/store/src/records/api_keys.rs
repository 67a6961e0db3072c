//! Stores API keys, which are looked up by the hash of their secret.

use super::super::Error;
use super::super::audit::{Act, ActName};
use super::super::db::{Db, args};
use super::admission::{Admission, AdmissionRow, SecretHash, person_of};
use super::key_grants::StoredGrant;
use super::user_id;
use sepal_core::domain::{ApiKeyId, KeyGrant, TenantId, Timestamp, UserId};

/// A key as people see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    pub id: ApiKeyId,
    /// The user whose rights the key has.
    pub user: UserId,
    /// The purpose of the key.
    pub name: String,
    /// The time at which the key was created.
    pub created_at: Timestamp,
    /// The approximate time of the last use.
    pub last_used_at: Option<Timestamp>,
    /// The time at which the key was revoked.
    pub revoked_at: Option<Timestamp>,
    /// The time from which the key is not valid any more; `None` = it is valid until it is revoked.
    pub expires_at: Option<Timestamp>,
    /// What the key may do beyond what its user may.
    pub grant: KeyGrant,
}

/// A key to add.
#[derive(Debug, Clone)]
pub struct NewApiKey {
    /// The tenant of the user.
    pub tenant: TenantId,
    pub id: ApiKeyId,
    /// The user whose rights the key has.
    pub user: UserId,
    /// The purpose of the key.
    pub name: String,
    /// The hash of the key's secret.
    pub hash: SecretHash,
    /// The time from which the key is not valid any more; `None` = it is valid until it is revoked.
    pub expires_at: Option<Timestamp>,
    /// What the key may do beyond what its user may.
    pub grant: KeyGrant,
}

/// Access to the stored API keys.
pub struct ApiKeys<'s> {
    db: &'s Db,
}

impl<'s> ApiKeys<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// Adds a key of an existing user.
    pub async fn add(&self, key: &NewApiKey, now: Timestamp) -> Result<(), Error> {
        let stored = StoredGrant::of(&key.grant);
        let act = Act::new(ActName::KeyAdded, &key.tenant, "key", key.id.as_str())
            .detail("user", key.user.as_str())
            .detail("name", key.name.as_str())
            .detail("expiresAt", key.expires_at.map(|at| at.0))
            .detail("scopes", stored.scopes.as_deref())
            .detail("sessions", stored.sessions.as_deref())
            .detail("servers", stored.servers.as_deref());
        self.db
            .record(
                act,
                "INSERT INTO api_keys (tenant, id, user_id, name, hash, created_at, expires_at, scopes, \
                 sessions, servers) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
                args![
                    key.tenant.as_str(),
                    key.id.as_str(),
                    key.user.as_str(),
                    key.name.as_str(),
                    key.hash.as_str(),
                    now.0,
                    key.expires_at.map(|at| at.0),
                    stored.scopes.as_deref(),
                    stored.sessions.as_deref(),
                    stored.servers.as_deref()
                ],
            )
            .await?;
        Ok(())
    }

    /// The keys of a tenant, newest first, revoked ones included.
    pub async fn list(&self, tenant: &TenantId) -> Result<Vec<ApiKey>, Error> {
        let rows: Vec<KeyRow> = self
            .db
            .fetch_all(
                "SELECT id, user_id, name, created_at, last_used_at, revoked_at, expires_at, scopes, \
                 sessions, servers FROM api_keys WHERE tenant = $1 ORDER BY created_at DESC, id",
                args![tenant.as_str()],
            )
            .await?;
        rows.into_iter().map(KeyRow::into_key).collect()
    }

    /// Revokes a key. Returns false if no valid key has this id.
    pub async fn revoke(
        &self,
        tenant: &TenantId,
        id: &ApiKeyId,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let changed = self
            .db
            .record(
                Act::new(ActName::KeyRevoked, tenant, "key", id.as_str()),
                "UPDATE api_keys SET revoked_at = $3 \
                 WHERE tenant = $1 AND id = $2 AND revoked_at IS NULL",
                args![tenant.as_str(), id.as_str(), now.0],
            )
            .await?;
        Ok(changed > 0)
    }

    /// The user to whom a secret gives access; `None` if no valid key has this hash.
    pub async fn open(
        &self,
        hash: &SecretHash,
        now: Timestamp,
    ) -> Result<Option<Admission>, Error> {
        let row: Option<AdmissionRow> = self
            .db
            .fetch_optional(
                person_of!(
                    "c.id AS credential, c.created_at, coalesce(c.last_used_at, 0) AS used_at, c.scopes, \
                     c.sessions, c.servers",
                    "api_keys c",
                    "WHERE c.hash = $1 AND c.revoked_at IS NULL \
                     AND (c.expires_at IS NULL OR c.expires_at > $2)"
                ),
                args![hash.as_str(), now.0],
            )
            .await?;
        row.map(AdmissionRow::into_admission).transpose()
    }

    /// Looks up a key that was opened before; `None` if the key is no longer valid.
    pub async fn check(
        &self,
        tenant: &TenantId,
        id: &ApiKeyId,
        now: Timestamp,
    ) -> Result<Option<Admission>, Error> {
        let row: Option<AdmissionRow> = self
            .db
            .fetch_optional(
                person_of!(
                    "c.id AS credential, c.created_at, coalesce(c.last_used_at, 0) AS used_at, c.scopes, \
                     c.sessions, c.servers",
                    "api_keys c",
                    "WHERE c.tenant = $1 AND c.id = $2 AND c.revoked_at IS NULL \
                     AND (c.expires_at IS NULL OR c.expires_at > $3)"
                ),
                args![tenant.as_str(), id.as_str(), now.0],
            )
            .await?;
        row.map(AdmissionRow::into_admission).transpose()
    }

    /// Records the time of a use.
    pub async fn touch(
        &self,
        tenant: &TenantId,
        id: &ApiKeyId,
        now: Timestamp,
    ) -> Result<(), Error> {
        self.db
            .execute(
                "UPDATE api_keys SET last_used_at = $3 WHERE tenant = $1 AND id = $2",
                args![tenant.as_str(), id.as_str(), now.0],
            )
            .await?;
        Ok(())
    }
}

#[derive(sqlx_macros::FromRow)]
struct KeyRow {
    id: String,
    user_id: String,
    name: String,
    created_at: i64,
    last_used_at: Option<i64>,
    revoked_at: Option<i64>,
    expires_at: Option<i64>,
    #[sqlx(flatten)]
    grant: StoredGrant,
}

impl KeyRow {
    fn into_key(self) -> Result<ApiKey, Error> {
        Ok(ApiKey {
            id: ApiKeyId::parse(&self.id).ok_or_else(|| Error::corrupt("key id", self.id))?,
            user: user_id(self.user_id)?,
            name: self.name,
            created_at: Timestamp(self.created_at),
            last_used_at: self.last_used_at.map(Timestamp),
            revoked_at: self.revoked_at.map(Timestamp),
            expires_at: self.expires_at.map(Timestamp),
            grant: self.grant.into_grant(),
        })
    }
}
