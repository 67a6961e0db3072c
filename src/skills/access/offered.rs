//! What the sessions of each person are offered, kept for some seconds: sessions ask before every request.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::domain::{TenantId, UserId};
use crate::store;
use crate::store::Records;
use crate::store::records::OfferedSkill;

/// How long an offer holds that another gateway may have changed, as with servers.
const AGE: Duration = Duration::from_secs(5);

/// The offers that were read lately.
#[derive(Default)]
pub(super) struct KeptOffers(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// How often something was changed here.
    changes: u64,
    of: HashMap<(TenantId, UserId), (Instant, Vec<OfferedSkill>)>,
}

impl KeptOffers {
    /// What the sessions of that person are offered, as of some seconds ago at most.
    pub(super) async fn of(
        &self,
        records: &Records,
        (tenant, person): (&TenantId, &UserId),
    ) -> Result<Vec<OfferedSkill>, store::Error> {
        let whose = (tenant.clone(), person.clone());
        let changes = {
            let known = self.known();
            if let Some((read_at, offered)) = known.of.get(&whose)
                && read_at.elapsed() < AGE
            {
                return Ok(offered.clone());
            }
            known.changes
        };
        let read_at = Instant::now();
        let offered = records.skills().offered(tenant, person).await?;
        let mut known = self.known();
        // What was read before a change is not kept beyond it.
        if known.changes == changes {
            known.of.retain(|_, (read_at, _)| read_at.elapsed() < AGE);
            known.of.insert(whose, (read_at, offered.clone()));
        }
        Ok(offered)
    }

    /// The next look reads everything again.
    pub(super) fn stale(&self) {
        let mut known = self.known();
        known.of.clear();
        known.changes += 1;
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
