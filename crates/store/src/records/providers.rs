//! Stores model providers that were added while the server runs. Those of the settings are not stored here.

use super::super::Error;
use super::super::audit::{Act, ActName};
use super::super::db::{Db, args};
use super::super::versions::RecordName;
use super::{from_json, scope, to_json};
use sepal_core::domain::{Scope, TenantId, Timestamp};

/// A stored provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderRow {
    pub scope: Scope,
    /// The name, unique in the scope.
    pub id: String,
    /// The protocol, by the name that settings use.
    pub kind: String,
    /// The address; `None` = the vendor's default.
    pub base_url: Option<String>,
    /// The variant of the protocol, by the name that settings use; `None` = detect it.
    pub api: Option<String>,
    /// The models to offer; empty = all models that the provider lists.
    pub models: Vec<String>,
    /// The configured context windows of its models, as JSON; `None` = none configured.
    pub windows: Option<String>,
    /// The API key, sealed by [`Sealer`](crate::Sealer).
    pub sealed_key: Option<String>,
    /// The time of the last change.
    pub updated_at: Timestamp,
}

/// Access to the stored providers.
pub struct Providers<'s> {
    db: &'s Db,
}

impl<'s> Providers<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// The providers that a tenant may use: those of the installation and its own, sorted by scope and id.
    pub async fn list(&self, visible_to: &TenantId) -> Result<Vec<ProviderRow>, Error> {
        let rows: Vec<Row> = self
            .db
            .fetch_all(
                "SELECT * FROM providers WHERE scope IN ('installation', $1) ORDER BY scope, id",
                args![visible_to.as_str()],
            )
            .await?;
        rows.into_iter().map(Row::into_row).collect()
    }

    /// The providers of every scope, for the start of the server.
    pub async fn all(&self) -> Result<Vec<ProviderRow>, Error> {
        let sql = "SELECT * FROM providers ORDER BY scope, id";
        let rows: Vec<Row> = self.db.fetch_all(sql, args![]).await?;
        rows.into_iter().map(Row::into_row).collect()
    }

    /// The provider of a scope with this id.
    pub async fn get(&self, scope: &Scope, id: &str) -> Result<Option<ProviderRow>, Error> {
        let row: Option<Row> = self
            .db
            .fetch_optional(
                "SELECT * FROM providers WHERE scope = $1 AND id = $2",
                args![scope.as_str(), id],
            )
            .await?;
        row.map(Row::into_row).transpose()
    }

    /// Adds or replaces a provider.
    pub async fn put(&self, provider: &ProviderRow) -> Result<(), Error> {
        let act = of(ActName::ProviderSet, &provider.scope, &provider.id)
            .detail("kind", provider.kind.as_str())
            .detail("models", provider.models.len())
            .detail("key", provider.sealed_key.is_some());
        self.db
            .change(
                RecordName::provider(&provider.scope, &provider.id),
                act,
                "INSERT INTO providers (scope, id, kind, base_url, api, models, sealed_key, \
                 updated_at, windows) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
                 ON CONFLICT (scope, id) DO UPDATE SET kind = excluded.kind, \
                 base_url = excluded.base_url, api = excluded.api, models = excluded.models, \
                 sealed_key = excluded.sealed_key, updated_at = excluded.updated_at, \
                 windows = excluded.windows",
                args![
                    provider.scope.as_str(),
                    provider.id.as_str(),
                    provider.kind.as_str(),
                    provider.base_url.as_deref(),
                    provider.api.as_deref(),
                    to_json("models of a provider", &provider.models)?.as_str(),
                    provider.sealed_key.as_deref(),
                    provider.updated_at.0,
                    provider.windows.as_deref()
                ],
            )
            .await?;
        Ok(())
    }

    /// Deletes a provider. Returns false if it does not exist.
    pub async fn delete(&self, scope: &Scope, id: &str) -> Result<bool, Error> {
        let sql = "DELETE FROM providers WHERE scope = $1 AND id = $2";
        let act = of(ActName::ProviderRemoved, scope, id);
        let record = RecordName::provider(scope, id);
        let changed = self.db.change(record, act, sql, args![scope.as_str(), id]);
        Ok(changed.await? > 0)
    }
}

/// An act on a provider.
fn of(name: ActName, scope: &Scope, id: &str) -> Act {
    Act::new(name, scope, "provider", id)
}

#[derive(sqlx_macros::FromRow)]
struct Row {
    scope: String,
    id: String,
    kind: String,
    base_url: Option<String>,
    api: Option<String>,
    models: String,
    windows: Option<String>,
    sealed_key: Option<String>,
    updated_at: i64,
}

impl Row {
    fn into_row(self) -> Result<ProviderRow, Error> {
        Ok(ProviderRow {
            scope: scope(self.scope)?,
            id: self.id,
            kind: self.kind,
            base_url: self.base_url,
            api: self.api,
            models: from_json("models of a provider", &self.models)?,
            windows: self.windows,
            sealed_key: self.sealed_key,
            updated_at: Timestamp(self.updated_at),
        })
    }
}
