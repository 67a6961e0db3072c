//! Finds the user to whom a secret gives access, and hashes secrets for storage.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::super::Error;
use super::key_grants::StoredGrant;
use super::{tenant_id, user_id};
use sepal_core::domain::{Caller, Rights, Role, Tenant, Timestamp, User};

/// The SHA-256 digest of a random 256-bit secret. A secret of that size cannot be guessed from its digest,
/// and the digest cannot be used to sign in. Do not use this for passwords.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SecretHash(String);

impl SecretHash {
    /// Hashes a secret.
    pub fn of(secret: &str) -> Self {
        Self(hex::encode(Sha256::digest(secret.as_bytes())))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash(…)")
    }
}

/// A valid key or sign-in and its user, who is not disabled and whose tenant is not suspended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission {
    /// The id of the key or sign-in.
    pub credential: String,
    /// The user with their current rights.
    pub caller: Caller,
    /// The time at which the credential was created.
    pub created_at: Timestamp,
    /// The approximate time of its last use.
    pub used_at: Timestamp,
    /// The account by which a browser signed in; `None` = by a password or a link, or it is a key.
    pub account: Option<AccountName>,
}

/// The name of an account elsewhere, by which a person signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountName {
    pub issuer: String,
    /// The account's id at the issuer.
    pub subject: String,
}

/// Builds a query for the columns of [`AdmissionRow`]: those of the credential, then those of the user, with
/// joins.
macro_rules! person_of {
    ($credential:literal, $table:literal, $rest:literal) => {
        concat!(
            "SELECT ",
            $credential,
            ", u.tenant, t.name AS tenant_name, u.id AS user_id, u.name, u.role, \
             u.is_installation_admin, ",
            $crate::records::given_rights::custom_rights!(),
            " FROM ",
            $table,
            " JOIN users u ON u.tenant = c.tenant AND u.id = c.user_id AND NOT u.is_disabled \
             JOIN tenants t ON t.id = c.tenant AND t.suspended_at IS NULL ",
            $rest
        )
    };
}
pub(super) use person_of;

#[derive(sqlx_macros::FromRow)]
pub(super) struct AdmissionRow {
    credential: String,
    created_at: i64,
    used_at: i64,
    tenant: String,
    tenant_name: String,
    user_id: String,
    name: String,
    role: String,
    is_installation_admin: bool,
    custom_rights: Option<String>,
    /// What a key may do; sign-ins have no such columns.
    #[sqlx(default)]
    scopes: Option<String>,
    #[sqlx(default)]
    sessions: Option<String>,
    #[sqlx(default)]
    servers: Option<String>,
    #[sqlx(default)]
    issuer: Option<String>,
    #[sqlx(default)]
    subject: Option<String>,
}

impl AdmissionRow {
    pub(super) fn into_admission(self) -> Result<Admission, Error> {
        let tenant = tenant_id(self.tenant)?;
        let grant = StoredGrant::new(self.scopes, self.sessions, self.servers).into_grant();
        Ok(Admission {
            credential: self.credential,
            caller: Caller {
                user: User {
                    id: user_id(self.user_id)?,
                    tenant: tenant.clone(),
                    name: self.name,
                    role: role(&self.role)?,
                    installation_admin: self.is_installation_admin,
                },
                tenant: Tenant {
                    id: tenant,
                    name: self.tenant_name,
                },
                custom_rights: Rights::from_text(&self.custom_rights.unwrap_or_default()),
                credential: None,
                grant: (!grant.is_unlimited()).then(|| Arc::new(grant)),
            },
            created_at: Timestamp(self.created_at),
            used_at: Timestamp(self.used_at),
            account: self
                .issuer
                .zip(self.subject)
                .map(|(issuer, subject)| AccountName { issuer, subject }),
        })
    }
}

pub(super) fn role(text: &str) -> Result<Role, Error> {
    Role::parse(text).ok_or_else(|| Error::corrupt("role", text))
}
