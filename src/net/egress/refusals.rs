//! What a program wanted to reach and could not, for whoever may allow it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::dial::{Refused, Target};
use crate::domain::{RefusedHost, Timestamp};

/// Hosts that are remembered; a program can make up any number of them.
const MAX_REMEMBERED: usize = 32;

/// The hosts that were refused last. Clones are one list.
#[derive(Debug, Clone, Default)]
pub struct Refusals(Arc<Mutex<BTreeMap<(String, u16), RefusedHost>>>);

impl Refusals {
    /// What was refused, the latest first.
    pub fn list(&self) -> Vec<RefusedHost> {
        let mut list: Vec<_> = self.lock().values().cloned().collect();
        list.sort_by_key(|it| Reverse(it.at));
        list
    }

    /// Notes one; whether it is the first of that host and port.
    pub(super) fn note(&self, target: &Target, why: &Refused, at: Timestamp) -> bool {
        let mut list = self.lock();
        let key = (target.host.clone(), target.port);
        if let Some(known) = list.get_mut(&key) {
            known.count = known.count.saturating_add(1);
            known.reason = why.to_string();
            known.at = at;
            return false;
        }
        if list.len() >= MAX_REMEMBERED
            && let Some(oldest) = list.values().min_by_key(|it| it.at)
        {
            let oldest = (oldest.host.clone(), oldest.port);
            list.remove(&oldest);
        }
        let refused = RefusedHost {
            host: target.host.clone(),
            port: target.port,
            entry: matches!(why, Refused::Unlisted).then(|| target.entry()),
            reason: why.to_string(),
            at,
            count: 1,
        };
        list.insert(key, refused);
        true
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(String, u16), RefusedHost>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
