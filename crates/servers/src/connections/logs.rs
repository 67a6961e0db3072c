//! Keeps the last lines of each server's stderr, bounded, per tenant, without the server's secrets.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::catalogue::entry::ServerEntry;
use sepal_core::domain::{TenantId, Timestamp};

/// The most lines that are kept of one server.
const MAX_LINES: usize = 500;
/// The most bytes of one line.
const MAX_LINE: usize = 1_000;
/// The most servers, counted per tenant, whose lines are kept.
const MAX_RINGS: usize = 1_000;

/// One line of stderr.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    pub at: Timestamp,
    pub text: String,
}

type Key = (Option<TenantId>, String);

/// The lines of all servers.
#[derive(Default)]
pub(crate) struct Logs(Mutex<HashMap<Key, VecDeque<LogLine>>>);

impl Logs {
    fn all(&self) -> MutexGuard<'_, HashMap<Key, VecDeque<LogLine>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a line, from which secrets were already removed. At the limit, the server whose latest line is
    /// oldest is forgotten.
    pub(crate) fn keep(&self, whose: Option<&TenantId>, name: &str, line: LogLine) {
        let mut all = self.all();
        let key = (whose.cloned(), name.to_owned());
        if all.len() >= MAX_RINGS && !all.contains_key(&key) {
            let newest = |ring: &VecDeque<LogLine>| ring.back().map_or(0, |line| line.at.0);
            let oldest = all.iter().min_by_key(|(_, ring)| newest(ring));
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                all.remove(&oldest);
            }
        }
        let ring = all.entry(key).or_default();
        if ring.len() >= MAX_LINES {
            ring.pop_front();
        }
        ring.push_back(line);
    }

    /// Returns the lines that a tenant's admin may read, by time; with `shared`, also the lines of the
    /// installation's own probes.
    pub(crate) fn of(&self, tenant: &TenantId, name: &str, shared: bool) -> Vec<LogLine> {
        let all = self.all();
        let of = |whose: Option<&TenantId>| all.get(&(whose.cloned(), name.to_owned()));
        let own = of(Some(tenant)).into_iter().flatten();
        let shared = shared.then(|| of(None)).flatten().into_iter().flatten();
        let mut lines: Vec<LogLine> = own.chain(shared).cloned().collect();
        lines.sort_by_key(|line| line.at);
        lines
    }

    /// Forgets a removed server.
    pub(crate) fn forget(&self, entry: &ServerEntry) {
        let whose = entry.tenant();
        self.all().retain(|(of, name), _| {
            *name != entry.name || (whose.is_some() && of.as_ref() != whose)
        });
    }
}

/// Cuts a line to the longest length, between characters.
pub(crate) fn cut(mut text: String) -> String {
    if text.len() > MAX_LINE {
        text.truncate(text.floor_char_boundary(MAX_LINE));
        text.push('…');
    }
    text
}
