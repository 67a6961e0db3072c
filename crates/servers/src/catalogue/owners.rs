//! Remembers the owners of personal servers, as this gateway last read or heard, so that news of such a
//! server reaches nobody else.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use sepal_core::domain::{Scope, TenantId, UserId};

/// The owners of personal servers. A removed server keeps its owner until its name is reused, so that the
/// news of its removal reaches the owner.
#[derive(Default)]
pub(crate) struct Owners(Mutex<HashMap<(TenantId, String), UserId>>);

impl Owners {
    /// Records the owner of a server; `None` if it belongs to everybody.
    pub(crate) fn note(&self, scope: &Scope, server: &str, owner: Option<&UserId>) {
        let Scope::Tenant(tenant) = scope else {
            return;
        };
        let key = (tenant.clone(), server.to_owned());
        let mut owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match owner {
            Some(owner) => owners.insert(key, owner.clone()),
            None => owners.remove(&key),
        };
    }

    /// Returns the owner of a personal server.
    pub(crate) fn of(&self, tenant: &TenantId, server: &str) -> Option<UserId> {
        let owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        owners.get(&(tenant.clone(), server.to_owned())).cloned()
    }
}
