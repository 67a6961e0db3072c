//! Stores named secrets, for `${secret:NAME}` in configurations. The values are already sealed.

use super::super::Error;
use super::super::audit::{Act, ActName};
use super::super::db::{Db, args};
use sepal_core::domain::{Scope, Timestamp};

/// A stored secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretRow {
    /// The scope whose entries may refer to the secret.
    pub scope: Scope,
    /// The name, unique in the scope.
    pub name: String,
    /// The value, sealed by [`Sealer`](crate::Sealer).
    pub sealed: String,
    /// The time of the last change.
    pub updated_at: Timestamp,
}

/// Access to the stored secrets.
pub struct Secrets<'s> {
    db: &'s Db,
}

impl<'s> Secrets<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// The names of the secrets in a scope.
    pub async fn names(&self, scope: &Scope) -> Result<Vec<String>, Error> {
        let sql = "SELECT name FROM secrets WHERE scope = $1 ORDER BY name";
        let rows: Vec<(String,)> = self.db.fetch_all(sql, args![scope.as_str()]).await?;
        Ok(rows.into_iter().map(|(name,)| name).collect())
    }

    /// The sealed value of a secret in exactly this scope.
    pub async fn get(&self, scope: &Scope, name: &str) -> Result<Option<String>, Error> {
        let sql = "SELECT sealed FROM secrets WHERE scope = $1 AND name = $2";
        let row: Option<(String,)> = self
            .db
            .fetch_optional(sql, args![scope.as_str(), name])
            .await?;
        Ok(row.map(|(sealed,)| sealed))
    }

    /// Adds or replaces a secret.
    pub async fn put(&self, secret: &SecretRow) -> Result<(), Error> {
        self.db
            .record(
                Act::new(
                    ActName::SecretSet,
                    &secret.scope,
                    "secret",
                    secret.name.as_str(),
                ),
                "INSERT INTO secrets (scope, name, sealed, updated_at) VALUES ($1, $2, $3, $4) \
                 ON CONFLICT (scope, name) DO UPDATE SET sealed = excluded.sealed, \
                 updated_at = excluded.updated_at",
                args![
                    secret.scope.as_str(),
                    secret.name.as_str(),
                    secret.sealed.as_str(),
                    secret.updated_at.0
                ],
            )
            .await?;
        Ok(())
    }

    /// Deletes a secret. Returns false if it does not exist.
    pub async fn delete(&self, scope: &Scope, name: &str) -> Result<bool, Error> {
        let sql = "DELETE FROM secrets WHERE scope = $1 AND name = $2";
        let act = Act::new(ActName::SecretRemoved, scope, "secret", name);
        let changed = self.db.record(act, sql, args![scope.as_str(), name]);
        Ok(changed.await? > 0)
    }
}
