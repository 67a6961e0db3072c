//! Stores the sign-ins of browsers.

use super::super::Error;
use super::super::audit::{Act, ActName};
use super::super::db::{Db, Statement, args};
use super::admission::{Admission, AdmissionRow, SecretHash, person_of};
use sepal_core::domain::{TenantId, Timestamp, UserId};

/// A sign-in to add.
#[derive(Clone)]
pub struct NewWebSession {
    /// The tenant of the user.
    pub tenant: TenantId,
    /// The id, which is different from the secret.
    pub id: String,
    pub user: UserId,
    /// The hash of the cookie.
    pub hash: SecretHash,
    /// The user's password hash that was verified, if the user signed in with a password.
    pub verified: Option<String>,
    /// True if the user signed in by a passkey.
    pub by_passkey: bool,
}

/// An account at an OpenID provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The issuer's address.
    pub issuer: String,
    /// The account's id at the issuer.
    pub subject: String,
    /// The session at the issuer; `None` = the issuer named none.
    pub sid: Option<String>,
}

/// A browser in which a user is signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignIn {
    pub id: String,
    pub created_at: Timestamp,
    /// The approximate time of its last use.
    pub last_seen_at: Timestamp,
}

/// Access to the stored sign-ins.
pub struct WebSessions<'s> {
    db: &'s Db,
}

impl<'s> WebSessions<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// Adds a sign-in. Returns false if, meanwhile, the user was disabled, their tenant suspended or their
    /// password changed.
    pub async fn add(&self, new: &NewWebSession, now: Timestamp) -> Result<bool, Error> {
        let added = self.db.execute_all(vec![insert(new, None, now)]).await?;
        Ok(added.is_some())
    }

    /// The user to whom a cookie gives access. The caller must check the age of the sign-in.
    pub async fn open(&self, hash: &SecretHash) -> Result<Option<Admission>, Error> {
        let row: Option<AdmissionRow> = self
            .db
            .fetch_optional(
                person_of!(
                    "c.id AS credential, c.created_at, c.last_seen_at AS used_at, c.issuer, \
                     c.subject",
                    "web_sessions c",
                    "WHERE c.hash = $1"
                ),
                args![hash.as_str()],
            )
            .await?;
        row.map(AdmissionRow::into_admission).transpose()
    }

    /// Looks up a sign-in that was opened before; `None` if it is no longer valid.
    pub async fn check(&self, tenant: &TenantId, id: &str) -> Result<Option<Admission>, Error> {
        let row: Option<AdmissionRow> = self
            .db
            .fetch_optional(
                person_of!(
                    "c.id AS credential, c.created_at, c.last_seen_at AS used_at, c.issuer, \
                     c.subject",
                    "web_sessions c",
                    "WHERE c.tenant = $1 AND c.id = $2"
                ),
                args![tenant.as_str(), id],
            )
            .await?;
        row.map(AdmissionRow::into_admission).transpose()
    }

    /// Records the time of a use.
    pub async fn touch(&self, tenant: &TenantId, id: &str, now: Timestamp) -> Result<(), Error> {
        self.db
            .execute(
                "UPDATE web_sessions SET last_seen_at = $3 WHERE tenant = $1 AND id = $2",
                args![tenant.as_str(), id, now.0],
            )
            .await?;
        Ok(())
    }

    /// A user's sign-ins, the last seen first.
    pub async fn of_user(&self, tenant: &TenantId, user: &UserId) -> Result<Vec<SignIn>, Error> {
        let sql = "SELECT id, created_at, last_seen_at FROM web_sessions \
                   WHERE tenant = $1 AND user_id = $2 ORDER BY last_seen_at DESC, id";
        let rows: Vec<(String, i64, i64)> = self
            .db
            .fetch_all(sql, args![tenant.as_str(), user.as_str()])
            .await?;
        let sign_in = |(id, created_at, last_seen_at)| SignIn {
            id,
            created_at: Timestamp(created_at),
            last_seen_at: Timestamp(last_seen_at),
        };
        Ok(rows.into_iter().map(sign_in).collect())
    }

    /// Ends a sign-in.
    pub async fn end(&self, tenant: &TenantId, id: &str) -> Result<(), Error> {
        self.db
            .record(
                Act::new(ActName::SignedOut, tenant, "sign_in", id),
                "DELETE FROM web_sessions WHERE tenant = $1 AND id = $2",
                args![tenant.as_str(), id],
            )
            .await?;
        Ok(())
    }

    /// Ends sign-ins that were last seen before `seen` or made before `made`. Returns their number.
    pub async fn end_old(&self, seen: Timestamp, made: Timestamp) -> Result<u64, Error> {
        self.db
            .keep_up(
                "DELETE FROM web_sessions WHERE last_seen_at < $1 OR created_at < $2",
                args![seen.0, made.0],
            )
            .await
    }
}

/// The statement that adds a sign-in, by a password or a link, or by an account at a provider. It is required: it
/// changes nothing if, meanwhile, the user was disabled, their tenant suspended or their password changed. Whatever the
/// door, a service account is never signed in.
pub(super) fn insert(
    new: &NewWebSession,
    identity: Option<&Identity>,
    now: Timestamp,
) -> Statement {
    let mut act = Act::new(ActName::SignedIn, &new.tenant, "sign_in", new.id.as_str())
        .by(&new.tenant, &new.user)
        .detail("password", new.verified.is_some());
    if new.by_passkey {
        act = act.detail("passkey", true);
    }
    if let Some(identity) = identity {
        act = act.detail("issuer", identity.issuer.as_str());
    }
    Statement::required(
        "INSERT INTO web_sessions (tenant, id, user_id, hash, created_at, last_seen_at, issuer, \
         subject, sid) SELECT tenant, $2, id, $4, $5, $5, $7, $8, $9 FROM users \
         WHERE tenant = $1 AND id = $3 AND NOT is_disabled AND NOT is_service AND NOT EXISTS (SELECT 1 FROM tenants \
         WHERE tenants.id = $1 AND suspended_at IS NOT NULL) AND password_hash IS NOT DISTINCT FROM \
         coalesce($6, password_hash) AND ($6 IS NULL OR NOT is_passkey_only)",
        args![
            new.tenant.as_str(),
            new.id.as_str(),
            new.user.as_str(),
            new.hash.as_str(),
            now.0,
            new.verified.as_deref(),
            identity.map(|it| it.issuer.as_str()),
            identity.map(|it| it.subject.as_str()),
            identity.and_then(|it| it.sid.as_deref())
        ],
    )
    .recorded(act)
}
