//! What happened, counted, and what must not have happened.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

/// Failures that are kept; all are counted.
const KEPT: usize = 500;

/// Something that must not be.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Failure {
    /// Seconds since the start.
    at: u64,
    /// Whose gateways.
    installation: String,
    /// The session, if it is about one.
    session: String,
    /// The last event that was seen of it.
    seq: u64,
    /// What was expected and what was there.
    what: String,
}

/// Where a failure was seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// Whose gateways.
    pub(crate) installation: &'a str,
    /// The session, or nothing.
    pub(crate) session: &'a str,
    /// The last event that was seen of it, or 0.
    pub(crate) seq: u64,
}

/// The books of a run.
pub(crate) struct Ledger {
    seed: u64,
    began: std::time::Instant,
    counts: Mutex<BTreeMap<String, u64>>,
    failures: Mutex<Vec<Failure>>,
}

impl Ledger {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            began: std::time::Instant::now(),
            counts: Mutex::default(),
            failures: Mutex::default(),
        }
    }

    /// Counts something that happened.
    pub(crate) fn count(&self, what: &str) {
        let mut counts = lock(&self.counts);
        if let Some(count) = counts.get_mut(what) {
            *count += 1;
        } else {
            counts.insert(what.to_owned(), 1);
        }
    }

    /// All counts.
    pub(crate) fn counts(&self) -> BTreeMap<String, u64> {
        lock(&self.counts).clone()
    }

    /// How often something happened.
    pub(crate) fn counted(&self, what: &str) -> u64 {
        lock(&self.counts).get(what).copied().unwrap_or(0)
    }

    /// Writes down a failure, and says it at once.
    pub(crate) fn fail(&self, place: Place<'_>, what: impl Into<String>) {
        let failure = Failure {
            at: self.began.elapsed().as_secs(),
            installation: place.installation.to_owned(),
            session: place.session.to_owned(),
            seq: place.seq,
            what: what.into(),
        };
        eprintln!(
            "FAILED after {} s, seed {}, {}, session {}, seq {}: {}",
            failure.at, self.seed, failure.installation, failure.session, failure.seq, failure.what
        );
        self.count("failures");
        let mut failures = lock(&self.failures);
        if failures.len() < KEPT {
            failures.push(failure);
        }
    }

    /// The first failures.
    pub(crate) fn failures(&self) -> Vec<Failure> {
        lock(&self.failures).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
