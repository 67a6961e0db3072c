//! Limits how many trials and restarts run at the same time, in all and for each tenant, so that they do not
//! overload the machine and no tenant blocks the others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use sepal_core::domain::TenantId;

/// The most trials and restarts at the same time.
const AT_ONCE: usize = 6;
/// The most for one tenant.
const PER_TENANT: usize = 2;

/// The semaphores that limit trials and restarts.
pub(crate) struct ProbeLimits {
    all: Arc<Semaphore>,
    /// Never held across an await.
    own: Mutex<HashMap<TenantId, Arc<Semaphore>>>,
}

/// A permit; dropping it gives it back.
pub(crate) struct ProbePermit {
    /// The semaphores are never closed, so this is always a permit.
    _all: Option<OwnedSemaphorePermit>,
    _own: Option<OwnedSemaphorePermit>,
}

impl Default for ProbeLimits {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(AT_ONCE)),
            own: Mutex::default(),
        }
    }
}

impl ProbeLimits {
    /// Waits for a permit. While it waits for the tenant's own permit, it holds none of the common permits.
    pub(crate) async fn turn(&self, tenant: &TenantId) -> ProbePermit {
        let own = self.of(tenant).acquire_owned().await.ok();
        let all = Arc::clone(&self.all).acquire_owned().await.ok();
        ProbePermit {
            _all: all,
            _own: own,
        }
    }

    fn of(&self, tenant: &TenantId) -> Arc<Semaphore> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        // Permits and waiting callers hold references to their tenant's semaphore, so an unused one has only
        // this reference.
        own.retain(|_, turns| Arc::strong_count(turns) > 1);
        let turns = own.entry(tenant.clone());
        let turns = turns.or_insert_with(|| Arc::new(Semaphore::new(PER_TENANT)));
        Arc::clone(turns)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::ProbeLimits;
    use sepal_core::domain::TenantId;

    #[test]
    fn a_tenant_that_tries_much_waits_for_itself_alone() {
        let probe_limits = ProbeLimits::default();
        let (a, b) = (TenantId::from_bits(1), TenantId::from_bits(2));
        let first = probe_limits.turn(&a).now_or_never();
        let second = probe_limits.turn(&a).now_or_never();
        assert!(first.is_some() && second.is_some());
        let mut waits: Vec<_> = (0..10).map(|_| Box::pin(probe_limits.turn(&a))).collect();
        for wait in &mut waits {
            assert!(wait.now_or_never().is_none());
        }
        assert!(probe_limits.turn(&b).now_or_never().is_some());
        drop(first);
        assert!(waits.remove(0).now_or_never().is_some());
        drop((waits, second));
        assert!(probe_limits.turn(&b).now_or_never().is_some());
        assert_eq!(
            probe_limits.own.lock().unwrap().len(),
            1,
            "none is kept for a"
        );
    }
}
