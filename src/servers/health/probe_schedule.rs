//! Whose servers are looked at next: tenants take turns, so that one whose servers hang holds up
//! its own looks alone.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use crate::domain::{Digest, TenantId};
use crate::servers::catalogue::entry::ServerEntry;

/// Servers that are looked at side by side.
const AT_ONCE: usize = 6;
/// Those of one tenant, or of the installation.
const PER_TENANT: usize = 2;

/// Whose a server is; none for the installation's.
type Whose = Option<TenantId>;

/// What waits for a look, and what is looked at.
#[derive(Default)]
pub(crate) struct ProbeSchedule {
    waiting: BTreeMap<Whose, VecDeque<ServerEntry>>,
    running: HashMap<Digest, Whose>,
    /// When each was last looked at, counted in looks.
    looked: HashMap<Digest, u64>,
    looks: u64,
    /// Who had the last turn.
    last: Option<Whose>,
}

impl ProbeSchedule {
    /// Whether a look at it was begun since this gateway started.
    pub(crate) fn was_tried(&self, print: &Digest) -> bool {
        self.looked.contains_key(print)
    }

    /// Those that wait.
    pub(crate) fn waiting(&self) -> HashSet<Digest> {
        let waiting = self.waiting.values().flatten();
        waiting.map(ServerEntry::fingerprint).collect()
    }

    /// What waits from now on, and what there is at all. Whatever was looked at longest ago is the
    /// tenant's first.
    pub(crate) fn wait(&mut self, mut due: Vec<ServerEntry>, all: &HashSet<Digest>) {
        self.looked.retain(|print, _| all.contains(print));
        self.waiting.clear();
        due.sort_by_cached_key(|entry| self.looked.get(&entry.fingerprint()).copied());
        for entry in due {
            if !self.running.contains_key(&entry.fingerprint()) {
                let whose = entry.tenant().cloned();
                self.waiting.entry(whose).or_default().push_back(entry);
            }
        }
    }

    /// The next to look at, if it may begin now.
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
        self.looked.insert(print.clone(), self.looks);
        self.running.insert(print, whose.clone());
        self.last = Some(whose);
        Some(entry)
    }

    /// A look is over.
    pub(crate) fn ended(&mut self, print: &Digest) {
        self.running.remove(print);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::json;

    use super::{AT_ONCE, PER_TENANT, ProbeSchedule};
    use crate::domain::{Scope, TenantId};
    use crate::servers::catalogue::entry::{ServerEntry, Source};

    fn entry(tenant: &str, name: &str) -> ServerEntry {
        ServerEntry {
            name: name.to_owned(),
            source: Source::Tenant,
            scope: Scope::Tenant(TenantId::from_bits(u128::from(tenant.as_bytes()[0]))),
            owner: None,
            config: serde_json::from_value(json!({ "command": name })).unwrap(),
            epoch: 0,
            package: None,
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
        turns.ended(&begun[0].fingerprint());
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
        turns.ended(&begun[0].fingerprint());
        assert_eq!(names(&begin(&mut turns)), ["c1"]);
    }

    #[test]
    fn what_was_looked_at_longest_ago_is_first_and_what_is_gone_is_forgotten() {
        let mut turns = ProbeSchedule::default();
        let due: Vec<_> = (0..4).map(|n| entry("a", &format!("a{n}"))).collect();
        wait(&mut turns, &due);
        for entry in begin(&mut turns) {
            turns.ended(&entry.fingerprint());
        }
        wait(&mut turns, &due);
        assert_eq!(names(&begin(&mut turns)), ["a2", "a3"]);
        assert!(turns.was_tried(&due[0].fingerprint()));
        wait(&mut turns, &due[1..]);
        assert!(!turns.was_tried(&due[0].fingerprint()));
    }
}
