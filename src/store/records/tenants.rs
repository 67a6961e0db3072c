//! Tenants.

use super::super::Error;
use super::super::db::{Db, args, taken};
use super::tenant_id;
use crate::domain::{Tenant, TenantId, Timestamp};

/// The tenants of the installation.
pub struct Tenants<'s> {
    db: &'s Db,
}

impl<'s> Tenants<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// Adds a tenant; its name must be free.
    pub async fn add(&self, tenant: &Tenant, now: Timestamp) -> Result<(), Error> {
        self.db
            .execute(
                "INSERT INTO tenants (id, name, created_at) VALUES ($1, $2, $3)",
                args![tenant.id.as_str(), tenant.name.as_str(), now.0],
            )
            .await
            .map_err(taken(&tenant.name))?;
        Ok(())
    }

    /// The tenant of that name, added under `id` if there is none.
    pub async fn find_or_add(&self, tenant: Tenant, now: Timestamp) -> Result<Tenant, Error> {
        self.db
            .execute(
                "INSERT INTO tenants (id, name, created_at) VALUES ($1, $2, $3) \
                 ON CONFLICT (name) DO NOTHING",
                args![tenant.id.as_str(), tenant.name.as_str(), now.0],
            )
            .await?;
        Ok(self.find_by_name(&tenant.name).await?.unwrap_or(tenant))
    }

    /// The tenant of that name.
    pub async fn find_by_name(&self, name: &str) -> Result<Option<Tenant>, Error> {
        let row: Option<TenantRow> = self
            .db
            .fetch_optional("SELECT id, name FROM tenants WHERE name = $1", args![name])
            .await?;
        row.map(TenantRow::into_tenant).transpose()
    }

    /// The tenant of that id.
    pub async fn find(&self, id: &TenantId) -> Result<Option<Tenant>, Error> {
        let row: Option<TenantRow> = self
            .db
            .fetch_optional(
                "SELECT id, name FROM tenants WHERE id = $1",
                args![id.as_str()],
            )
            .await?;
        row.map(TenantRow::into_tenant).transpose()
    }

    /// Whether people of a tenant may share by link.
    pub async fn allows_links(&self, id: &TenantId) -> Result<bool, Error> {
        let sql = "SELECT allows_links FROM tenants WHERE id = $1";
        let row: Option<(bool,)> = self.db.fetch_optional(sql, args![id.as_str()]).await?;
        Ok(row.is_some_and(|(allows_links,)| allows_links))
    }

    /// Lets people of a tenant share by link, or no longer.
    pub async fn set_allows_links(&self, id: &TenantId, allows_links: bool) -> Result<(), Error> {
        let sql = "UPDATE tenants SET allows_links = $2 WHERE id = $1";
        self.db
            .execute(sql, args![id.as_str(), allows_links])
            .await?;
        Ok(())
    }

    /// All tenants by name.
    pub async fn list(&self) -> Result<Vec<Tenant>, Error> {
        let rows: Vec<TenantRow> = self
            .db
            .fetch_all("SELECT id, name FROM tenants ORDER BY name", args![])
            .await?;
        rows.into_iter().map(TenantRow::into_tenant).collect()
    }
}

#[derive(sqlx::FromRow)]
struct TenantRow {
    id: String,
    name: String,
}

impl TenantRow {
    fn into_tenant(self) -> Result<Tenant, Error> {
        Ok(Tenant {
            id: tenant_id(self.id)?,
            name: self.name,
        })
    }
}
