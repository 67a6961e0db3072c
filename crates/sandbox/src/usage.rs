//! Counts the uses of a running program, so that only idle ones are ended.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::{sync::Notify, time::Instant};

/// The use count of one started program. It starts with one use.
#[derive(Debug)]
pub(super) struct Usage {
    /// Never held across an await.
    state: Mutex<State>,
    /// Notified when the last use ends.
    freed: Arc<Notify>,
}

#[derive(Debug)]
struct State {
    uses: usize,
    /// When the last use ended.
    since: Instant,
    /// True once the program is being ended: no new use may begin.
    is_over: bool,
}

/// A use of a started program. While a use exists, the program does not count as idle.
#[derive(Debug, Default)]
pub struct Using(
    /// `None` if uses are not counted.
    Option<Arc<Usage>>,
);

impl Usage {
    /// Creates a use count with its first use.
    pub(super) fn begin(freed: Arc<Notify>) -> (Arc<Self>, Using) {
        let state = State {
            uses: 1,
            since: Instant::now(),
            is_over: false,
        };
        let usage = Arc::new(Self {
            state: Mutex::new(state),
            freed,
        });
        let first = Using(Some(Arc::clone(&usage)));
        (usage, first)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a use; `None` if the program is being ended.
    pub(super) fn join(self: &Arc<Self>) -> Option<Using> {
        let mut state = self.state();
        if state.is_over {
            return None;
        }
        state.uses += 1;
        Some(Using(Some(Arc::clone(self))))
    }

    /// Returns since when the program is idle; `None` while it is in use, or if it is already being ended.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let state = self.state();
        (state.uses == 0 && !state.is_over).then_some(state.since)
    }

    /// Forbids further uses, if the program has been idle since `since`; returns true if the caller has to
    /// end it.
    pub(super) fn give_up(&self, since: Instant) -> bool {
        let mut state = self.state();
        let is_idle = state.uses == 0 && !state.is_over && state.since == since;
        state.is_over |= is_idle;
        is_idle
    }
}

impl Drop for Using {
    fn drop(&mut self) {
        let Some(usage) = &self.0 else { return };
        let mut state = usage.state();
        state.uses = state.uses.saturating_sub(1);
        state.since = Instant::now();
        if state.uses == 0 {
            usage.freed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_uses_is_given_up_and_then_nobody_may() {
        let (usage, first) = Usage::begin(Arc::default());
        assert_eq!(usage.idle_since(), None, "it was started for somebody");
        let second = usage.join().unwrap();
        drop(first);
        assert_eq!(usage.idle_since(), None);
        drop(second);
        let since = usage.idle_since().unwrap();
        drop(usage.join());
        assert!(!usage.give_up(since), "a call renews its time");
        let since = usage.idle_since().unwrap();
        assert!(usage.give_up(since) && !usage.give_up(since));
        assert!(usage.join().is_none());
        assert_eq!(usage.idle_since(), None);
    }
}
