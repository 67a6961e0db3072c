//! Knows which models are open to whom, as groups say, and refuses others.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::Providers;
use sepal_core::domain::{AccessKind, Code, GroupAccess, TenantId, Used, UserId};
use sepal_core::session::{ModelChoice, Refusal};
use sepal_store as store;

/// The time for which what groups say is used before the records are read again, because it may have been changed
/// on the command line.
const AGE: Duration = Duration::from_secs(5);

/// The cached access rules of a tenant, with the time at which they were read; `None` = to be read again.
type Known = (Option<Instant>, Arc<GroupAccess>);

/// Caches which models and servers the groups of each tenant name.
#[derive(Default)]
pub(crate) struct KnownAccess {
    tenants: HashMap<TenantId, Known>,
    /// The number of changes that were told: what was read before the last one is read again.
    changes: u64,
}

/// The model of a choice.
pub(crate) fn used(choice: &ModelChoice) -> Used<'_> {
    Used::Model {
        provider: &choice.provider,
        model: &choice.model,
    }
}

impl Providers {
    /// Reads again what the groups of a tenant say, if that was not done a moment ago. While the records are away,
    /// what was known stays. Called before somebody chooses or asks a model.
    pub async fn refresh_access(&self, tenant: &TenantId) -> Arc<GroupAccess> {
        let (known, changes) = self.known(tenant);
        if let Some((Some(at), access)) = &known
            && at.elapsed() < AGE
        {
            return Arc::clone(access);
        }
        let begun = Instant::now();
        match self.0.records.group_access().of_tenant(tenant).await {
            Ok(access) => {
                let mut access = Arc::new(access);
                if let Some((_, known)) = &known
                    && **known == *access
                {
                    access = Arc::clone(known);
                }
                let now = Arc::clone(&access);
                self.change_known(|all| {
                    // What was read before a change takes nothing's place.
                    if all.changes == changes {
                        all.tenants.insert(tenant.clone(), (Some(begun), now));
                    } else {
                        all.tenants.entry(tenant.clone()).or_insert((None, now));
                    }
                });
                access
            }
            Err(error) => {
                tracing::warn!(?error, "For whom models are open cannot be read now");
                known.map(|(_, access)| access).unwrap_or_default()
            }
        }
    }

    /// Makes the next look read the records again: the groups of a tenant have changed.
    pub fn forget_access(&self, tenant: &TenantId) {
        self.change_known(|all| {
            all.changes += 1;
            if let Some((at, _)) = all.tenants.get_mut(tenant) {
                *at = None;
            }
        });
    }

    /// The same for all tenants: changes may have been missed.
    pub fn forget_all_access(&self) {
        self.change_known(|all| {
            all.changes += 1;
            all.tenants.values_mut().for_each(|(at, _)| *at = None);
        });
    }

    /// Returns true if a model is open to a person.
    pub fn may_use(&self, (tenant, user): (&TenantId, &UserId), choice: &ModelChoice) -> bool {
        self.access_of(tenant).may_use(user, used(choice))
    }

    /// Returns the id and the name of each group that names a provider or a model.
    pub fn groups_of(&self, tenant: &TenantId, name: &str) -> Vec<(String, String)> {
        let access = self.access_of(tenant);
        let naming = access.that_name(AccessKind::Model, name).into_iter();
        naming
            .map(|(id, name)| (id.to_owned(), name.to_owned()))
            .collect()
    }

    /// Refuses a model that is not open to a person.
    pub fn check_open(
        &self,
        whose: (&TenantId, &UserId),
        choice: &ModelChoice,
    ) -> Result<(), Refusal> {
        if self.may_use(whose, choice) {
            return Ok(());
        }
        let text = format!(
            "the model `{}/{}` is only for members of its groups, and you are in none of them: choose another \
             model, or ask an administrator of your tenant",
            choice.provider, choice.model
        );
        Err(Refusal::of_field(Code::NotAllowed, "model", text))
    }

    /// Returns the access rules of a tenant as they were last read.
    pub(crate) fn access_of(&self, tenant: &TenantId) -> Arc<GroupAccess> {
        let (known, _) = self.known(tenant);
        known.map(|(_, access)| access).unwrap_or_default()
    }

    /// Reads what the groups of all tenants say.
    pub(crate) async fn reload_access(&self) -> Result<(), store::Error> {
        // Each is read again when it is first needed.
        let all = self.0.records.group_access().all().await?.into_iter();
        let fresh = all.map(|(tenant, access)| (tenant, (None, Arc::new(access))));
        self.change_known(|known| known.tenants = fresh.collect());
        Ok(())
    }

    /// What is known of a tenant, and the number of changes so far.
    fn known(&self, tenant: &TenantId) -> (Option<Known>, u64) {
        let known = self.0.access.read();
        let known = known.unwrap_or_else(PoisonError::into_inner);
        (known.tenants.get(tenant).cloned(), known.changes)
    }

    fn change_known(&self, change: impl FnOnce(&mut KnownAccess)) {
        let known = self.0.access.write();
        change(&mut known.unwrap_or_else(PoisonError::into_inner));
    }
}
