//! Tracks the open connections of this gateway's sessions, so that a restart or removal of a server can end
//! them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::opening::Opened;
use sepal_core::domain::TenantId;

fn still_open(open: impl Iterator<Item = Weak<Opened>>) -> Vec<Arc<Opened>> {
    open.filter_map(|one| one.upgrade())
        .filter(|one| !one.connection.is_closed())
        .collect()
}

/// The tenant and the server.
type Key = (TenantId, String);

/// All open connections, by tenant and server.
#[derive(Default)]
pub(crate) struct RunningServers(
    /// Never held across an await.
    Mutex<HashMap<Key, Vec<Weak<Opened>>>>,
);

impl RunningServers {
    /// Tracks a connection, with a weak reference: dropping it in its session ends the tracking.
    pub(crate) fn note(&self, tenant: &TenantId, server: &str, opened: &Arc<Opened>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, open| {
            open.retain(|one| one.strong_count() > 0);
            !open.is_empty()
        });
        let key = (tenant.clone(), server.to_owned());
        all.entry(key).or_default().push(Arc::downgrade(opened));
    }

    /// Removes and returns the open connections of a tenant to a server.
    pub(crate) fn take(&self, tenant: &TenantId, server: &str) -> Vec<Arc<Opened>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open = all.remove(&(tenant.clone(), server.to_owned()));
        still_open(open.into_iter().flatten())
    }

    /// Removes and returns the open connections of one tenant or of all tenants to a removed server.
    pub(crate) fn take_removed(&self, tenant: Option<&TenantId>, server: &str) -> Vec<Arc<Opened>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_removed =
            |(whose, name): &Key| name == server && tenant.is_none_or(|tenant| tenant == whose);
        let open = all.extract_if(|key, _| is_removed(key));
        still_open(open.flat_map(|(_, open)| open))
    }
}
