//! Holds the compaction strategies that tenants' admins set. They are looked up at each model request, like
//! the models that use them.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::Error;
use sepal_core::domain::{Code, StrategyName, TenantId, Timestamp};
use sepal_core::session::Refusal;
use sepal_store::{self as store, Records};

/// The strategies that tenants' admins set.
pub(super) struct CompactionDefaults {
    records: Records,
    /// Never held across an await.
    said: RwLock<HashMap<TenantId, Arc<[StrategyName]>>>,
}

impl CompactionDefaults {
    /// Makes an empty set; nothing is read yet.
    pub(super) fn new(records: Records) -> Self {
        Self {
            records,
            said: RwLock::default(),
        }
    }

    pub(super) fn of(&self, tenant: &TenantId) -> Option<Arc<[StrategyName]>> {
        let said = self.said.read().unwrap_or_else(PoisonError::into_inner);
        said.get(tenant).map(Arc::clone)
    }

    /// Sets the strategies, or removes the setting.
    pub(super) async fn set(
        &self,
        tenant: &TenantId,
        strategies: Option<Vec<StrategyName>>,
    ) -> Result<(), Error> {
        if let Some(wrong) = strategies.as_deref().and_then(StrategyName::problem_of) {
            return Err(Refusal::of_field(Code::InvalidArguments, "strategies", wrong).into());
        }
        let records = self.records.compaction_defaults();
        match &strategies {
            Some(strategies) => {
                let now = Timestamp(jiff::Timestamp::now().as_millisecond());
                records.put(tenant, strategies, now).await?;
            }
            None => records.delete(tenant).await?,
        }
        tracing::info!(tenant.id = %tenant, ?strategies, "What makes room in contexts was set");
        let mut said = self.said.write().unwrap_or_else(PoisonError::into_inner);
        match strategies {
            Some(strategies) => said.insert(tenant.clone(), strategies.into()),
            None => said.remove(tenant),
        };
        Ok(())
    }

    /// Reads the records again.
    pub(super) async fn reload(&self) -> Result<(), store::Error> {
        let rows = self.records.compaction_defaults().all().await?;
        let fresh = rows
            .into_iter()
            .map(|(tenant, strategies)| (tenant, strategies.into()));
        let mut said = self.said.write().unwrap_or_else(PoisonError::into_inner);
        *said = fresh.collect();
        Ok(())
    }
}
