//! The state that all people of one installation share: the phase of the run, the archive, and the
//! installation itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use fastrand::Rng;
use reqwest::Client;
use tokio_util::task::TaskTracker;

use super::check::archive::ArchivedSession;
use super::check::ledger::{Ledger, Place};
use super::installation::{Installation, lock};
use super::phase::Phase;

/// The state that all people of one installation share.
pub(crate) struct World {
    pub(crate) phase: Arc<Phase>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) installation: Arc<Installation>,
    pub(crate) client: Client,
    /// Connections that nobody reads any more.
    pub(crate) abandoned: TaskTracker,
    /// Ended sessions that are not deleted.
    kept: Mutex<Vec<ArchivedSession>>,
    /// The sessions of each tenant, which the other tenant must not see.
    known: Mutex<Vec<(usize, String)>>,
    /// The number of answers that were compared with their deltas, and of those with missing deltas.
    answers: [AtomicU64; 2],
}

impl World {
    pub(crate) fn new(
        phase: &Arc<Phase>,
        ledger: &Arc<Ledger>,
        installation: Installation,
        client: Client,
    ) -> Self {
        Self {
            phase: Arc::clone(phase),
            ledger: Arc::clone(ledger),
            installation: Arc::new(installation),
            client,
            abandoned: TaskTracker::new(),
            kept: Mutex::default(),
            known: Mutex::default(),
            answers: <[AtomicU64; 2]>::default(),
        }
    }

    /// Adds answers that were compared with their deltas, and those with missing deltas.
    pub(crate) fn compared(&self, compared: u64, incomplete: u64) {
        for (sum, more) in self.answers.iter().zip([compared, incomplete]) {
            sum.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// Returns both totals.
    pub(crate) fn answers(&self) -> [u64; 2] {
        self.answers
            .each_ref()
            .map(|sum| sum.load(Ordering::Relaxed))
    }

    /// Records a session of a tenant that has at least one message.
    pub(crate) fn tell(&self, tenant: usize, session: String) {
        lock(&self.known).push((tenant, session));
    }

    /// Records an ended session that is not deleted.
    pub(crate) fn keep(&self, kept: ArchivedSession) {
        lock(&self.kept).push(kept);
    }

    /// Returns all ended sessions that are not deleted.
    pub(crate) fn all_kept(&self) -> Vec<ArchivedSession> {
        lock(&self.kept).clone()
    }

    /// Returns a random session of another tenant.
    pub(crate) fn foreign(&self, tenant: usize, rng: &mut Rng) -> Option<String> {
        let known = lock(&self.known);
        let others: Vec<_> = known.iter().filter(|(of, _)| *of != tenant).collect();
        let (_, session) = rng.choice(others)?;
        Some(session.clone())
    }

    /// Records a failure that concerns no session; `whose` names a gateway or the installation.
    pub(crate) fn fail(&self, whose: &str, what: impl Into<String>) {
        let place = Place {
            installation: whose,
            session: "",
            seq: 0,
        };
        self.ledger.fail(place, what);
    }
}
