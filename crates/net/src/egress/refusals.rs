//! Records the hosts that a program was refused, for people who may allow them.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::dial::{DialRefusal, Target};
use sepal_core::domain::{RefusedHost, Timestamp};

/// The most hosts that are remembered; a program can invent any number of names.
const MAX_REMEMBERED: usize = 32;

/// Observes every refusal, including repeated ones.
pub trait Witness: fmt::Debug + Send + Sync {
    /// Called for each refused host. Must not block.
    fn refused(&self, refused: &RefusedHost);
}

/// The hosts that were refused last. Clones share one list.
#[derive(Debug, Clone, Default)]
pub struct Refusals {
    list: Arc<Mutex<BTreeMap<(String, u16), RefusedHost>>>,
    witness: Option<Arc<dyn Witness>>,
}

impl Refusals {
    /// The same list with an observer.
    #[must_use]
    pub fn witnessed(self, witness: Arc<dyn Witness>) -> Self {
        Self {
            witness: Some(witness),
            ..self
        }
    }

    /// The refused hosts, latest first.
    pub fn list(&self) -> Vec<RefusedHost> {
        let mut list: Vec<_> = self.lock().values().cloned().collect();
        list.sort_by_key(|it| Reverse(it.at));
        list
    }

    /// Records a refusal, with the list entry that would allow the host, if any. Returns true for the first
    /// refusal of this host and port.
    pub(super) fn note(
        &self,
        target: &Target,
        entry: Option<String>,
        why: &DialRefusal,
        at: Timestamp,
    ) -> bool {
        let key = (target.host.clone(), target.port);
        let mut list = self.lock();
        if list.len() >= MAX_REMEMBERED
            && !list.contains_key(&key)
            && let Some(oldest) = list.values().min_by_key(|it| it.at)
        {
            let oldest = (oldest.host.clone(), oldest.port);
            list.remove(&oldest);
        }
        let known = list.entry(key).or_insert_with(|| RefusedHost {
            host: target.host.clone(),
            port: target.port,
            entry,
            reason: String::new(),
            at,
            count: 0,
        });
        known.count = known.count.saturating_add(1);
        known.reason = why.to_string();
        known.at = at;
        let noted = known.clone();
        drop(list);
        if let Some(witness) = &self.witness {
            witness.refused(&noted);
        }
        noted.count == 1
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(String, u16), RefusedHost>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
