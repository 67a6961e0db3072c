//! The hosts that servers wanted to reach and may not, per tenant, bounded and in memory like health.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::domain::{RefusedHost, TenantId};
use crate::net::Refusals;
use crate::servers::catalogue::entry::ServerEntry;

/// Servers whose refused hosts are remembered.
const MAX_SERVERS: usize = 1_000;

type Key = (Option<TenantId>, String);

/// What all servers were refused.
#[derive(Default)]
pub(crate) struct RefusedHosts(Mutex<HashMap<Key, Refusals>>);

impl RefusedHosts {
    /// Where the programs of a server note it that run for that tenant; without one, for the
    /// installation itself.
    pub(crate) fn of_server(&self, whose: Option<&TenantId>, name: &str) -> Refusals {
        let mut all = self.all();
        let key = (whose.cloned(), name.to_owned());
        if all.len() >= MAX_SERVERS && !all.contains_key(&key) {
            let last = |refusals: &Refusals| refusals.list().first().map(|it| it.at);
            let oldest = all.iter().min_by_key(|(_, refusals)| last(refusals));
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                all.remove(&oldest);
            }
        }
        all.entry(key).or_default().clone()
    }

    /// What a tenant's programs of that server were refused, but for what its entry allows by now; the
    /// latest first.
    pub(crate) fn list(&self, tenant: &TenantId, entry: &ServerEntry) -> Vec<RefusedHost> {
        let key = (Some(tenant.clone()), entry.name.clone());
        let refusals = self.all().get(&key).cloned().unwrap_or_default();
        let allowed = entry.allowed_hosts();
        let mut list = refusals.list();
        list.retain(|it| it.entry.is_none() || allowed.find(&it.host, it.port).is_none());
        list
    }

    /// Forgets a server that is gone.
    pub(crate) fn forget(&self, entry: &ServerEntry) {
        let whose = entry.tenant();
        self.all().retain(|(of, name), _| {
            *name != entry.name || (whose.is_some() && of.as_ref() != whose)
        });
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Key, Refusals>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
