//! The connections that are open for sessions of this gateway, so that somebody can end them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::opening::Opened;
use crate::domain::TenantId;

/// Who uses which server.
type Key = (TenantId, String);

/// All open connections, by tenant and server.
#[derive(Default)]
pub(super) struct RunningServers(
    /// Never held across an await.
    Mutex<HashMap<Key, Vec<Weak<Opened>>>>,
);

impl RunningServers {
    /// Takes note of a connection; it is forgotten with its session's hold on it.
    pub(super) fn note(&self, tenant: &TenantId, server: &str, opened: &Arc<Opened>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, open| {
            open.retain(|one| one.strong_count() > 0);
            !open.is_empty()
        });
        let key = (tenant.clone(), server.to_owned());
        all.entry(key).or_default().push(Arc::downgrade(opened));
    }

    /// The open ones of a tenant to a server, which are no longer noted.
    pub(super) fn take(&self, tenant: &TenantId, server: &str) -> Vec<Arc<Opened>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open = all.remove(&(tenant.clone(), server.to_owned()));
        let open = open.into_iter().flatten();
        open.filter_map(|one| one.upgrade())
            .filter(|one| !one.connection.is_closed())
            .collect()
    }
}
