//! Applies changed rules about tools to waiting calls at once, not only at the next decision.

use std::collections::HashSet;
use std::sync::{Arc, Weak};

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use super::registry::SessionRegistry;
use crate::domain::TenantId;
use crate::store::Error;

/// The tenants whose rules have changed.
enum ChangedTenants {
    /// These tenants.
    Some(HashSet<TenantId>),
    /// Any tenant, because changes were missed.
    Anybody,
}

/// Makes unfinished sessions review their calls whenever rules have changed, until the registry stops.
pub(super) async fn heed_rules(inner: Weak<SessionRegistry>) {
    let Some(registry) = inner.upgrade() else {
        return;
    };
    let mut changes = registry.factory.parts.servers.rule_changes();
    let stop = registry.stop.clone();
    drop(registry);
    loop {
        let first = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            first = changes.recv() => first,
        };
        let whose = match first {
            Ok(tenant) => with_those_behind(tenant, &mut changes),
            Err(RecvError::Lagged(_)) => ChangedTenants::Anybody,
            Err(RecvError::Closed) => return,
        };
        let Some(registry) = inner.upgrade() else {
            return;
        };
        let providers = &registry.factory.parts.providers;
        match &whose {
            // The groups of a tenant are told like its rules.
            ChangedTenants::Some(tenants) => {
                for tenant in tenants {
                    providers.forget_access(tenant);
                }
            }
            ChangedTenants::Anybody => providers.forget_all_access(),
        }
        if let Err(error) = review(&registry, &whose).await {
            // A later decision about one of those calls uses the rules of that time.
            tracing::warn!(
                ?error,
                "Calls that wait are not decided by the changed rules yet"
            );
        }
    }
}

/// Merges changes that come close together.
fn with_those_behind(tenant: TenantId, changes: &mut Receiver<TenantId>) -> ChangedTenants {
    let mut tenants = HashSet::from([tenant]);
    loop {
        match changes.try_recv() {
            Ok(tenant) => drop(tenants.insert(tenant)),
            Err(TryRecvError::Lagged(_)) => return ChangedTenants::Anybody,
            Err(TryRecvError::Empty | TryRecvError::Closed) => {
                return ChangedTenants::Some(tenants);
            }
        }
    }
}

/// Reviews the unfinished sessions concerned. A session that another living gateway runs is left to that
/// gateway, which is told too.
async fn review(registry: &Arc<SessionRegistry>, whose: &ChangedTenants) -> Result<(), Error> {
    for key in registry.store.active().await? {
        let is_concerned = match whose {
            ChangedTenants::Some(tenants) => tenants.contains(&key.tenant),
            ChangedTenants::Anybody => true,
        };
        if is_concerned {
            registry.review_one(&key).await;
        }
    }
    Ok(())
}
