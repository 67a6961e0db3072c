//! Trials and restarts that run side by side, so that nobody fills the machine with them, and no
//! tenant takes the turns of the others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::domain::TenantId;

/// Servers that people try out at once.
const AT_ONCE: usize = 6;
/// Those of one tenant.
const PER_TENANT: usize = 2;

/// Who tries how many.
pub(crate) struct ProbeLimits {
    all: Arc<Semaphore>,
    /// Never held across an await.
    own: Mutex<HashMap<TenantId, Arc<Semaphore>>>,
}

/// A turn; dropping it gives it back.
pub(crate) struct ProbePermit {
    /// Never closed, so there is always a turn.
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
    /// Waits for a turn. Whoever waits for the tenant's own takes nobody else's meanwhile.
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
        // Turns and those who wait for one hold theirs.
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
    use crate::domain::TenantId;

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
