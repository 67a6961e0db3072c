//! Browsers that are signed in.

use super::super::Error;
use super::super::db::{Db, args};
use super::admission::{Admission, AdmissionRow, SecretHash, person_of};
use crate::domain::{TenantId, Timestamp, UserId};

/// A sign-in to keep.
#[derive(Clone)]
pub struct NewWebSession {
    /// The tenant of the user.
    pub tenant: TenantId,
    /// Its id, which is not its secret.
    pub id: String,
    pub user: UserId,
    /// The hash of the cookie.
    pub hash: SecretHash,
    /// The password hash that was verified, if one was.
    pub verified: Option<String>,
}

/// The sign-ins.
pub struct WebSessions<'s> {
    db: &'s Db,
}

impl<'s> WebSessions<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// Keeps a sign-in; false if the user was disabled or got another password meanwhile.
    pub async fn add(&self, new: &NewWebSession, now: Timestamp) -> Result<bool, Error> {
        let added = self
            .db
            .execute(
                "INSERT INTO web_sessions (tenant, id, user_id, hash, created_at, last_seen_at) \
                 SELECT tenant, $2, id, $4, $5, $5 FROM users WHERE tenant = $1 AND id = $3 \
                 AND NOT is_disabled AND NOT EXISTS (SELECT 1 FROM tenants \
                 WHERE tenants.id = $1 AND suspended_at IS NOT NULL) AND password_hash IS NOT DISTINCT FROM \
                 coalesce($6, password_hash)",
                args![
                    new.tenant.as_str(),
                    new.id.as_str(),
                    new.user.as_str(),
                    new.hash.as_str(),
                    now.0,
                    new.verified.as_deref()
                ],
            )
            .await?;
        Ok(added > 0)
    }

    /// Whom a cookie lets in; its age is the caller's to judge.
    pub async fn open(&self, hash: &SecretHash) -> Result<Option<Admission>, Error> {
        let row: Option<AdmissionRow> = self
            .db
            .fetch_optional(
                person_of!(
                    "c.id AS credential, c.created_at, c.last_seen_at AS used_at",
                    "web_sessions c",
                    "WHERE c.hash = $1"
                ),
                args![hash.as_str()],
            )
            .await?;
        row.map(AdmissionRow::into_admission).transpose()
    }

    /// Whether a sign-in that was opened before still lets somebody in.
    pub async fn check(&self, tenant: &TenantId, id: &str) -> Result<Option<Admission>, Error> {
        let row: Option<AdmissionRow> = self
            .db
            .fetch_optional(
                person_of!(
                    "c.id AS credential, c.created_at, c.last_seen_at AS used_at",
                    "web_sessions c",
                    "WHERE c.tenant = $1 AND c.id = $2"
                ),
                args![tenant.as_str(), id],
            )
            .await?;
        row.map(AdmissionRow::into_admission).transpose()
    }

    /// Notes a use.
    pub async fn touch(&self, tenant: &TenantId, id: &str, now: Timestamp) -> Result<(), Error> {
        self.db
            .execute(
                "UPDATE web_sessions SET last_seen_at = $3 WHERE tenant = $1 AND id = $2",
                args![tenant.as_str(), id, now.0],
            )
            .await?;
        Ok(())
    }

    /// The ids of a user's sign-ins.
    pub async fn of_user(&self, tenant: &TenantId, user: &UserId) -> Result<Vec<String>, Error> {
        let rows: Vec<(String,)> = self
            .db
            .fetch_all(
                "SELECT id FROM web_sessions WHERE tenant = $1 AND user_id = $2",
                args![tenant.as_str(), user.as_str()],
            )
            .await?;
        Ok(rows.into_iter().map(|(id,)| id).collect())
    }

    /// Ends one.
    pub async fn end(&self, tenant: &TenantId, id: &str) -> Result<(), Error> {
        self.db
            .execute(
                "DELETE FROM web_sessions WHERE tenant = $1 AND id = $2",
                args![tenant.as_str(), id],
            )
            .await?;
        Ok(())
    }

    /// Ends those that were last seen before `seen` or made before `made`.
    pub async fn end_old(&self, seen: Timestamp, made: Timestamp) -> Result<u64, Error> {
        self.db
            .execute(
                "DELETE FROM web_sessions WHERE last_seen_at < $1 OR created_at < $2",
                args![seen.0, made.0],
            )
            .await
    }
}
