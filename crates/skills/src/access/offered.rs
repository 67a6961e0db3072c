//! Caches the offered skills of each person for some seconds, because sessions ask before every request.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sepal_core::domain::{TenantId, UserId};
use sepal_store as store;
use sepal_store::Records;
use sepal_store::records::OfferedSkill;

/// The time for which an offer is valid that another gateway may have changed, as for servers.
const AGE: Duration = Duration::from_secs(5);

/// The recently read offers.
#[derive(Default)]
pub(super) struct KeptOffers(Mutex<KnownSkills>);

#[derive(Default)]
struct KnownSkills {
    /// Counts the changes made here.
    changes: u64,
    of: HashMap<(TenantId, UserId), (Instant, Vec<OfferedSkill>)>,
}

impl KeptOffers {
    /// Returns the skills offered to sessions of that person, at most some seconds old.
    pub(super) async fn of(
        &self,
        records: &Records,
        tenant: &TenantId,
        person: &UserId,
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
        // An offer that was read before a change is not cached beyond it.
        if known.changes == changes {
            known.of.retain(|_, (read_at, _)| read_at.elapsed() < AGE);
            known.of.insert(whose, (read_at, offered.clone()));
        }
        Ok(offered)
    }

    /// Clears the cache after a change.
    pub(super) fn stale(&self) {
        let mut known = self.known();
        known.of.clear();
        known.changes += 1;
    }

    fn known(&self) -> MutexGuard<'_, KnownSkills> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
