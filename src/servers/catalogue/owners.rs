//! Whose alone servers are, as this gateway last read or heard it: news of such a server are told to
//! nobody else.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::domain::{Scope, TenantId, UserId};

/// The owners of servers that people have for themselves alone. A server that is gone keeps its owner
/// until its name is another's, so that the news of its end finds them.
#[derive(Default)]
pub(crate) struct Owners(Mutex<HashMap<(TenantId, String), UserId>>);

impl Owners {
    /// Whose a server is from now on; `None` = everybody's.
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

    /// The person whose server it is alone.
    pub(crate) fn of(&self, tenant: &TenantId, server: &str) -> Option<UserId> {
        let owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        owners.get(&(tenant.clone(), server.to_owned())).cloned()
    }
}
