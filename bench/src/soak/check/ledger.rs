//! Counts the events and failures of a run.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

/// The maximum number of failures that are kept; all of them are counted.
const KEPT: usize = 500;

/// A violated requirement.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Failure {
    /// Seconds since the beginning of the run.
    at: u64,
    /// The name of the installation or gateway.
    installation: String,
    /// The session, or empty.
    session: String,
    /// The last event of the session that was seen.
    seq: u64,
    /// The expectation and the observation.
    what: String,
}

/// The place of a failure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The name of the installation or gateway.
    pub(crate) installation: &'a str,
    /// The session, or empty.
    pub(crate) session: &'a str,
    /// The last event of the session that was seen, or 0.
    pub(crate) seq: u64,
}

/// The counts and failures of a run.
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

    /// Counts an occurrence.
    pub(crate) fn count(&self, what: &str) {
        let mut counts = lock(&self.counts);
        if let Some(count) = counts.get_mut(what) {
            *count += 1;
        } else {
            counts.insert(what.to_owned(), 1);
        }
    }

    /// Returns all counts.
    pub(crate) fn counts(&self) -> BTreeMap<String, u64> {
        lock(&self.counts).clone()
    }

    /// Returns the number of occurrences.
    pub(crate) fn counted(&self, what: &str) -> u64 {
        lock(&self.counts).get(what).copied().unwrap_or(0)
    }

    /// Records a failure, and prints it immediately.
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

    /// Returns the first failures.
    pub(crate) fn failures(&self) -> Vec<Failure> {
        lock(&self.failures).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
