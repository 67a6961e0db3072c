//! Stores the compaction strategies that admins set as the default for a tenant's sessions.

use super::super::Error;
use super::super::audit::{Act, ActName};
use super::super::db::{Db, args};
use super::super::versions::RecordName;
use super::{from_json, tenant_id, to_json};
use sepal_core::domain::{StrategyName, TenantId, Timestamp};

/// Access to the stored defaults.
pub struct CompactionDefaults<'s> {
    db: &'s Db,
}

impl<'s> CompactionDefaults<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// The defaults of every tenant, for the start of the server.
    pub async fn all(&self) -> Result<Vec<(TenantId, Vec<StrategyName>)>, Error> {
        let sql = "SELECT tenant, strategies FROM compaction_defaults ORDER BY tenant";
        let rows: Vec<(String, String)> = self.db.fetch_all(sql, args![]).await?;
        let rows = rows.into_iter().map(|(tenant, strategies)| {
            Ok((tenant_id(tenant)?, from_json("strategies", &strategies)?))
        });
        rows.collect()
    }

    /// Sets the default of a tenant.
    pub async fn put(
        &self,
        tenant: &TenantId,
        strategies: &[StrategyName],
        at: Timestamp,
    ) -> Result<(), Error> {
        let strategies = to_json("strategies", strategies)?;
        let act = Act::new(ActName::CompactionSet, tenant, "tenant", tenant.as_str());
        self.db
            .change(
                RecordName::compaction(tenant),
                act.detail("strategies", strategies.as_str()),
                "INSERT INTO compaction_defaults (tenant, strategies, updated_at) \
                 VALUES ($1, $2, $3) ON CONFLICT (tenant) DO UPDATE SET \
                 strategies = excluded.strategies, updated_at = excluded.updated_at",
                args![tenant.as_str(), strategies.as_str(), at.0],
            )
            .await?;
        Ok(())
    }

    /// Deletes the default of a tenant.
    pub async fn delete(&self, tenant: &TenantId) -> Result<(), Error> {
        let sql = "DELETE FROM compaction_defaults WHERE tenant = $1";
        let act = Act::new(
            ActName::CompactionRemoved,
            tenant,
            "tenant",
            tenant.as_str(),
        );
        let record = RecordName::compaction(tenant);
        let deleted = self.db.change(record, act, sql, args![tenant.as_str()]);
        deleted.await?;
        Ok(())
    }
}
