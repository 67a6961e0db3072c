//! Remembers the hosts that servers tried to reach and were refused, per tenant, bounded and in memory like
//! health.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::catalogue::entry::ServerEntry;
use sepal_core::domain::{RefusedHost, TenantId};
use sepal_net::Refusals;

/// The most servers, counted per tenant, whose refused hosts are remembered.
const MAX_SERVERS: usize = 1_000;

type Key = (Option<TenantId>, String);

/// The refused hosts of all servers.
#[derive(Default)]
pub(crate) struct RefusedHosts(Mutex<HashMap<Key, Refusals>>);

impl RefusedHosts {
    /// Returns the record into which a server's programs that run for that tenant note refused hosts; without
    /// a tenant, the record of the installation itself. At the limit, a server without refusals is forgotten,
    /// or else the one whose latest refusal is oldest.
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

    /// Returns the hosts that a tenant's programs of that server were refused, without those that its entry
    /// allows by now, latest first.
    pub(crate) fn list(&self, tenant: &TenantId, entry: &ServerEntry) -> Vec<RefusedHost> {
        let key = (Some(tenant.clone()), entry.name.clone());
        let refusals = self.all().get(&key).cloned().unwrap_or_default();
        let allowed = entry.allowed_hosts();
        let mut list = refusals.list();
        list.retain(|it| it.entry.is_none() || allowed.find(&it.host, it.port).is_none());
        list
    }

    /// Forgets a removed server.
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
