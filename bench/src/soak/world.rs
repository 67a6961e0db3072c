//! What all people of one installation share: the sky, the books, and the house that they are in.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use fastrand::Rng;
use reqwest::Client;
use tokio_util::task::TaskTracker;

use super::check::archive::Archived;
use super::check::ledger::{Ledger, Place};
use super::installation::{Installation, lock};
use super::phase::Phase;

/// What all people of one installation share.
pub(crate) struct World {
    pub(crate) phase: Arc<Phase>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) installation: Arc<Installation>,
    pub(crate) client: Client,
    /// Connections that nobody reads any more.
    pub(crate) abandoned: TaskTracker,
    /// Sessions that are over and stay.
    kept: Mutex<Vec<Archived>>,
    /// Sessions of each tenant, which the other must not see.
    known: Mutex<Vec<(usize, String)>>,
    /// Answers that were compared with their pieces, and those of which pieces were missing.
    answers: [AtomicU64; 2],
}

impl World {
    pub(crate) fn new(
        (phase, ledger): (&Arc<Phase>, &Arc<Ledger>),
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

    /// So many answers were compared with their pieces, of so many pieces were missing.
    pub(crate) fn compared(&self, compared: u64, incomplete: u64) {
        for (sum, more) in self.answers.iter().zip([compared, incomplete]) {
            sum.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// All of both.
    pub(crate) fn answers(&self) -> [u64; 2] {
        self.answers
            .each_ref()
            .map(|sum| sum.load(Ordering::Relaxed))
    }

    /// A session of that tenant has something in it.
    pub(crate) fn tell(&self, tenant: usize, session: String) {
        lock(&self.known).push((tenant, session));
    }

    /// A session is over and stays.
    pub(crate) fn keep(&self, kept: Archived) {
        lock(&self.kept).push(kept);
    }

    /// All of them.
    pub(crate) fn all_kept(&self) -> Vec<Archived> {
        lock(&self.kept).clone()
    }

    /// Some session of another tenant.
    pub(crate) fn foreign(&self, tenant: usize, rng: &mut Rng) -> Option<String> {
        let known = lock(&self.known);
        let others: Vec<_> = known.iter().filter(|(of, _)| *of != tenant).collect();
        let (_, session) = rng.choice(others)?;
        Some(session.clone())
    }

    /// Writes down what must not be, and is about no session: `whose` names a gateway, or the house.
    pub(crate) fn fail(&self, whose: &str, what: impl Into<String>) {
        let place = Place {
            installation: whose,
            session: "",
            seq: 0,
        };
        self.ledger.fail(place, what);
    }
}
