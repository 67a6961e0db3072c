//! Schedules the probes of servers: tenants take turns, so that a tenant whose servers hang delays only its
//! own probes.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use crate::catalogue::entry::ServerEntry;
use sepal_core::domain::{Digest, TenantId};

/// The most probes at the same time.
const AT_ONCE: usize = 6;
/// The most for one tenant, or for the installation.
const PER_TENANT: usize = 2;

/// The pause before a server that could not be listed is tried again; each failure doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
/// The longest of these pauses.
const LONGEST_PAUSE: Duration = Duration::from_hours(1);

/// The tenant that owns a server; `None` for the installation.
type Whose = Option<TenantId>;

/// The servers that wait for a probe, and those that are being probed.
#[derive(Default)]
pub(crate) struct ProbeSchedule {
    waiting: BTreeMap<Whose, VecDeque<ServerEntry>>,
    running: HashMap<Digest, Whose>,
    looked: HashMap<Digest, Looked>,
    looks: u64,
    /// The owner whose server was started last.
    last: Option<Whose>,
}

/// The last probe of a server.
#[derive(Default)]
struct Looked {
    /// Its number, counted over all probes.
    count: u64,
    /// The number of consecutive failures.
    failures: u32,
    /// When the server may be tried again, if the probe failed.
    again: Option<Instant>,
}

impl ProbeSchedule {
    /// Returns true if a server that was never listed has to be tried now: for the first time, or again after
    /// a pause.
    pub(crate) fn is_due(&self, print: &Digest) -> bool {
        let Some(looked) = self.looked.get(print) else {
            return true;
        };
        looked.again.is_some_and(|again| again <= Instant::now())
    }

    /// When the next server may be tried again.
    pub(crate) fn next_again(&self) -> Option<Instant> {
        self.looked.values().filter_map(|looked| looked.again).min()
    }

    /// The fingerprints of the waiting servers.
    pub(crate) fn waiting(&self) -> HashSet<Digest> {
        let waiting = self.waiting.values().flatten();
        waiting.map(ServerEntry::fingerprint).collect()
    }

    /// Replaces the waiting servers with `due`, and forgets the probes of servers that are not in `all`. Of
    /// each tenant, the server that was probed longest ago comes first.
    pub(crate) fn wait(&mut self, mut due: Vec<ServerEntry>, all: &HashSet<Digest>) {
        self.looked.retain(|print, _| all.contains(print));
        // A server whose pause is over is either in `due` now, or needs no retry any more.
        self.came().for_each(|looked| looked.again = None);
        self.waiting.clear();
        let count = |entry: &ServerEntry| {
            let looked = self.looked.get(&entry.fingerprint());
            looked.map(|looked| looked.count)
        };
        due.sort_by_cached_key(count);
        for entry in due {
            if !self.running.contains_key(&entry.fingerprint()) {
                let whose = entry.tenant().cloned();
                self.waiting.entry(whose).or_default().push_back(entry);
            }
        }
    }

    /// Called when the entries could not be read: servers whose pause is over wait once more.
    pub(crate) fn put_off(&mut self) {
        let again = Some(Instant::now() + FIRST_PAUSE);
        self.came().for_each(|looked| looked.again = again);
    }

    /// The probes whose pause is over.
    fn came(&mut self) -> impl Iterator<Item = &mut Looked> {
        let now = Instant::now();
        let all = self.looked.values_mut();
        all.filter(move |looked| looked.again.is_some_and(|again| again <= now))
    }

    /// Takes the next server to probe, if a probe may begin now.
    pub(crate) fn next(&mut self) -> Option<ServerEntry> {
        if self.running.len() >= AT_ONCE {
            return None;
        }
        let busy = |whose: &Whose| self.running.values().filter(|it| *it == whose).count();
        let ready = |whose: &&Whose| busy(whose) < PER_TENANT;
        let after = |whose: &&Whose| self.last.as_ref().is_none_or(|last| *whose > last);
        let mut later = self.waiting.keys().filter(ready).filter(after);
        let whose = later.next();
        let whose = whose.or_else(|| self.waiting.keys().find(ready))?.clone();
        let queue = self.waiting.get_mut(&whose)?;
        let entry = queue.pop_front()?;
        if queue.is_empty() {
            self.waiting.remove(&whose);
        }
        let print = entry.fingerprint();
        self.looks += 1;
        let looked = self.looked.entry(print.clone()).or_default();
        looked.count = self.looks;
        looked.again = None;
        self.running.insert(print, whose.clone());
        self.last = Some(whose);
        Some(entry)
    }

    /// Notes the end of a probe.
    pub(crate) fn ended(&mut self, print: &Digest, is_well: bool) {
        self.running.remove(print);
        let Some(looked) = self.looked.get_mut(print) else {
            return;
        };
        if is_well {
            looked.failures = 0;
            return;
        }
        let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(looked.failures));
        looked.failures += 1;
        looked.again = Some(Instant::now() + pause.min(LONGEST_PAUSE));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::json;
    use tokio::time::Instant;

    use super::{AT_ONCE, PER_TENANT, ProbeSchedule};
    use crate::catalogue::entry::{ServerEntry, Source};
    use sepal_core::domain::{Scope, TenantId};

    fn entry(tenant: &str, name: &str) -> ServerEntry {
        ServerEntry {
            name: name.to_owned(),
            source: Source::Tenant,
            scope: Scope::Tenant(TenantId::from_bits(u128::from(tenant.as_bytes()[0]))),
            owner: None,
            config: serde_json::from_value(json!({ "command": name })).unwrap(),
            epoch: 0,
            package: None,
            withheld: Vec::new(),
            is_trial: false,
        }
    }

    fn wait(turns: &mut ProbeSchedule, due: &[ServerEntry]) {
        let all: HashSet<_> = due.iter().map(ServerEntry::fingerprint).collect();
        turns.wait(due.to_vec(), &all);
    }

    fn begin(turns: &mut ProbeSchedule) -> Vec<ServerEntry> {
        std::iter::from_fn(|| turns.next()).collect()
    }

    fn names(entries: &[ServerEntry]) -> Vec<&str> {
        entries.iter().map(|entry| entry.name.as_str()).collect()
    }

    #[test]
    fn a_tenant_with_many_leaves_turns_to_the_others() {
        let mut turns = ProbeSchedule::default();
        let mut due: Vec<_> = (0..50).map(|n| entry("a", &format!("a{n}"))).collect();
        wait(&mut turns, &due);
        let begun = begin(&mut turns);
        assert_eq!(begun.len(), PER_TENANT);
        due.push(entry("b", "b0"));
        wait(&mut turns, &due);
        assert_eq!(names(&begin(&mut turns)), ["b0"]);
        turns.ended(&begun[0].fingerprint(), true);
        assert_eq!(names(&begin(&mut turns)), ["a2"], "not one that ran");
    }

    #[test]
    fn tenants_take_turns_and_all_together_are_bounded() {
        let mut turns = ProbeSchedule::default();
        let due: Vec<_> = ["a", "b", "c", "d"]
            .iter()
            .flat_map(|tenant| (0..3).map(move |n| entry(tenant, &format!("{tenant}{n}"))))
            .collect();
        wait(&mut turns, &due);
        let begun = begin(&mut turns);
        assert_eq!(names(&begun), ["a0", "b0", "c0", "d0", "a1", "b1"]);
        assert_eq!(begun.len(), AT_ONCE);
        turns.ended(&begun[0].fingerprint(), true);
        assert_eq!(names(&begin(&mut turns)), ["c1"]);
    }

    #[test]
    fn what_was_looked_at_longest_ago_is_first_and_what_is_gone_is_forgotten() {
        let mut turns = ProbeSchedule::default();
        let due: Vec<_> = (0..4).map(|n| entry("a", &format!("a{n}"))).collect();
        wait(&mut turns, &due);
        for entry in begin(&mut turns) {
            turns.ended(&entry.fingerprint(), true);
        }
        wait(&mut turns, &due);
        assert_eq!(names(&begin(&mut turns)), ["a2", "a3"]);
        assert!(!turns.is_due(&due[0].fingerprint()));
        wait(&mut turns, &due[1..]);
        assert!(turns.is_due(&due[0].fingerprint()));
    }

    #[tokio::test(start_paused = true)]
    async fn what_could_not_be_listed_is_tried_again_after_longer_and_longer_pauses() {
        let mut turns = ProbeSchedule::default();
        let due = [entry("a", "a0")];
        let print = due[0].fingerprint();
        let mut pauses = Vec::new();
        for _ in 0..11 {
            wait(&mut turns, &due);
            assert_eq!(begin(&mut turns).len(), 1);
            assert!(!turns.is_due(&print), "it runs");
            assert_eq!(turns.next_again(), None);
            turns.ended(&print, false);
            assert!(!turns.is_due(&print));
            let again = turns.next_again().unwrap();
            pauses.push((again - Instant::now()).as_secs());
            tokio::time::advance(again - Instant::now()).await;
            assert!(turns.is_due(&print));
        }
        // If the entries cannot be read, the retry is put off, so that they are not read in a busy loop.
        turns.put_off();
        assert!(!turns.is_due(&print));
        tokio::time::advance(super::FIRST_PAUSE).await;
        // A server that was listed meanwhile is not retried either.
        let all = HashSet::from([print.clone()]);
        turns.wait(vec![], &all);
        assert_eq!(turns.next_again(), None);
        let doubled = [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600];
        assert_eq!(pauses, doubled);
        // A listed server is not retried.
        wait(&mut turns, &due);
        begin(&mut turns);
        turns.ended(&print, true);
        assert!(!turns.is_due(&print));
        assert_eq!(turns.next_again(), None);
    }
}
