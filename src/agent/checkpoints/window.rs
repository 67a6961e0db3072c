//! Tracks which calls run: changes of concurrent calls belong to all of them.

use std::collections::BTreeSet;

use crate::domain::{CallId, ChangeCause, UserId};

/// The time from the start of a first call until no call runs.
#[derive(Debug, Default)]
pub(super) struct Window {
    running: BTreeSet<CallId>,
    cause: ChangeCause,
}

impl Window {
    /// Returns true if no call runs.
    pub(super) fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    /// Begins a call.
    pub(super) fn enter(&mut self, call: &CallId) {
        if self.running.insert(call.clone()) {
            self.cause.calls.push(call.clone());
        }
    }

    /// Records that a person changes files while calls run.
    pub(super) fn join(&mut self, person: &UserId) {
        if !self.cause.people.contains(person) {
            self.cause.people.push(person.clone());
        }
    }

    /// Ends a call. Returns the common cause of all overlapping calls when it is the last one.
    pub(super) fn leave(&mut self, call: &CallId) -> Option<ChangeCause> {
        let was_here = self.running.remove(call);
        (was_here && self.running.is_empty()).then(|| std::mem::take(&mut self.cause))
    }
}

/// Merges the causes of changes that were found too late to tell apart.
pub(super) fn late(earlier: Option<ChangeCause>, cause: ChangeCause) -> ChangeCause {
    let mut all = earlier.unwrap_or_default();
    for call in cause.calls {
        if !all.calls.contains(&call) {
            all.calls.push(call);
        }
    }
    for person in cause.people {
        if !all.people.contains(&person) {
            all.people.push(person);
        }
    }
    all.undoes = cause.undoes.or(all.undoes);
    all.is_late = true;
    all
}

#[cfg(test)]
mod tests {
    use super::{ChangeCause, UserId, Window, late};
    use crate::domain::CallId;

    #[test]
    fn calls_side_by_side_are_one_cause() {
        let [one, two] = [CallId::new(1, 0), CallId::new(1, 1)];
        let person = UserId::from_bits(1);
        let mut window = Window::default();
        assert_eq!(window.leave(&one), None);
        window.enter(&one);
        window.enter(&two);
        window.join(&person);
        assert_eq!(window.leave(&one), None);
        assert!(!window.is_idle());
        let both = ChangeCause {
            calls: vec![one.clone(), two.clone()],
            people: vec![person],
            ..ChangeCause::default()
        };
        assert_eq!(window.leave(&two), Some(both.clone()));
        assert!(window.is_idle());
        window.enter(&two);
        let alone = window.leave(&two).unwrap();
        assert_eq!((&alone.calls, alone.people.len()), (&vec![two.clone()], 0));
        let merged = late(Some(both), alone);
        assert_eq!((merged.calls.len(), merged.is_late), (2, true));
    }
}
