//! Which gateways live (their heartbeats), as far as this one knows. A hint: the journal decides.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::domain::{GatewayId, SessionKey};
use crate::store::Error;
use crate::store::live::cluster_bus::ClusterBus;

/// How long a gateway whose own line was down waits until it calls others dead: their heartbeats
/// were lost as well.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long a gateway that was not heard of any more may still listen: a Redis that starts anew does
/// not know of it until its next heartbeat.
const COMPANY: Duration = Duration::from_secs(10);

/// The gateways that are not over.
pub(in crate::agent) struct Membership {
    cluster_bus: Arc<dyn ClusterBus>,
    /// Never held across an await.
    known: Mutex<Known>,
    began: Instant,
    /// The end of the last round that found nothing strange, in milliseconds since `began`.
    ticked: AtomicU64,
}

struct Known {
    alive: BTreeSet<GatewayId>,
    /// Those that said goodbye; the name of a gateway does not come back.
    over: BTreeSet<GatewayId>,
    /// The last time that another gateway was known.
    company: Option<Instant>,
    /// The last time that heartbeats came in.
    heard: Option<Instant>,
    /// Before this nobody is called dead.
    patient_until: Option<Instant>,
    /// What rounds have found that nobody has acted on yet.
    found: Round,
    /// Sessions that had to be read and could not be.
    behind: HashSet<SessionKey>,
}

/// What a round of heartbeats says.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in crate::agent) struct Round {
    pub(in crate::agent) is_somebody_gone: bool,
    /// This gateway was away so long that others may have taken over what it ran.
    pub(in crate::agent) was_away: bool,
}

impl Membership {
    /// Only this one is known.
    pub(in crate::agent) fn new(cluster_bus: Arc<dyn ClusterBus>) -> Self {
        let own = cluster_bus.gateway().clone();
        Self {
            cluster_bus,
            known: Mutex::new(Known {
                alive: BTreeSet::from([own]),
                over: BTreeSet::new(),
                company: None,
                heard: None,
                patient_until: None,
                found: Round::default(),
                behind: HashSet::new(),
            }),
            began: Instant::now(),
            ticked: AtomicU64::new(0),
        }
    }

    /// Whether this process was awake lately. After a longer pause it must look first who runs
    /// its sessions, before it shows what its effects say.
    pub(in crate::agent) fn is_awake(&self) -> bool {
        if !self.cluster_bus.is_shared() {
            return true;
        }
        let ticked = Duration::from_millis(self.ticked.load(Ordering::Acquire));
        self.began.elapsed().saturating_sub(ticked) <= PATIENCE
    }

    fn tick(&self) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.ticked.store(now, Ordering::Release);
    }

    /// Whether no other one was known to live lately. Whoever began a moment ago, and its word of that
    /// was lost, may be missing until the next round.
    pub(in crate::agent) fn is_alone(&self) -> bool {
        let company = self.known().company;
        company.is_none_or(|seen| seen.elapsed() > COMPANY)
    }

    /// Whether that gateway is not known to be over.
    pub(in crate::agent) fn is_alive(&self, gateway: &GatewayId) -> bool {
        let known = self.known();
        let is_over = known.over.contains(gateway);
        !is_over && (known.alive.contains(gateway) || known.is_patient(Instant::now()))
    }

    /// Whether that gateway is over, by the newest word on it.
    pub(in crate::agent) async fn is_over(&self, gateway: &GatewayId) -> bool {
        if self.is_alive(gateway) {
            return false;
        }
        // Whoever began a moment ago has not been heard of in the last round.
        if self.cluster_bus.is_shared() && self.round().await.is_err() {
            return false;
        }
        !self.is_alive(gateway)
    }

    /// After a pause of this process the others may hold it for dead: they hear first that it is
    /// not.
    pub(in crate::agent) async fn be_heard(&self) {
        let heard = self.known().heard;
        let is_late = heard.is_some_and(|heard| heard.elapsed() > PATIENCE);
        if is_late && self.cluster_bus.is_shared() {
            // Without an answer the store does not answer either.
            let _ = self.round().await;
        }
    }

    /// Gives a heartbeat, and hears who else gave one.
    pub(in crate::agent) async fn round(&self) -> Result<Round, Error> {
        let was_awake = self.is_awake();
        let beat = self.cluster_bus.beat().await;
        let round = beat.map(|alive| self.hear(alive, self.cluster_bus.is_shared()));
        if round.is_ok() {
            self.cluster_bus.has_company(!self.is_alone());
        }
        // After a pause sessions are looked at first; the round after that finds all well.
        if was_awake || round.as_ref().is_ok_and(|round| !round.was_away) {
            self.tick();
        }
        round
    }

    /// What all rounds have found since this was asked, whoever made them.
    pub(in crate::agent) fn take_found(&self) -> Round {
        std::mem::take(&mut self.known().found)
    }

    /// Something of a session may have been missed, and it cannot be read now.
    pub(in crate::agent) fn fall_behind(&self, key: &SessionKey) {
        self.known().behind.insert(key.clone());
    }

    /// The sessions of which that is so, once the store answers again.
    pub(in crate::agent) fn take_behind(&self) -> HashSet<SessionKey> {
        std::mem::take(&mut self.known().behind)
    }

    /// A message counts as a heartbeat.
    pub(in crate::agent) fn saw(&self, gateway: &GatewayId) {
        let was_alone = self.is_alone();
        let mut known = self.known();
        if !known.over.contains(gateway) {
            known.alive.insert(gateway.clone());
            known.meet(Instant::now());
        }
        drop(known);
        if was_alone && !self.is_alone() {
            self.cluster_bus.has_company(true);
        }
    }

    fn hear(&self, alive: BTreeSet<GatewayId>, is_shared: bool) -> Round {
        let (mut known, now) = (self.known(), Instant::now());
        let silent = known.heard.map(|heard| now.duration_since(heard));
        known.heard = Some(now);
        if is_shared && silent.is_none_or(|silent| silent > PATIENCE) {
            known.patient_until = Some(now + PATIENCE);
        }
        let was_patient = known.patient_until.is_some();
        let is_patient = known.is_patient(now);
        if !is_patient {
            known.patient_until = None;
        }
        let is_gone = known.alive.iter().any(|gateway| !alive.contains(gateway));
        if is_patient {
            known.alive.extend(alive);
        } else {
            known.alive = alive;
        }
        known.meet(now);
        let round = Round {
            is_somebody_gone: !is_patient && (is_gone || was_patient),
            was_away: silent.is_some_and(|silent| silent > PATIENCE),
        };
        known.found.is_somebody_gone |= round.is_somebody_gone;
        known.found.was_away |= round.was_away;
        round
    }

    /// That one says itself that it is over.
    pub(in crate::agent) fn forget(&self, gateway: &GatewayId) {
        let mut known = self.known();
        known.alive.remove(gateway);
        known.over.insert(gateway.clone());
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Takes note of others that live.
    fn meet(&mut self, now: Instant) {
        if self.alive.len() > 1 {
            self.company = Some(now);
        }
    }

    fn is_patient(&self, now: Instant) -> bool {
        self.patient_until.is_some_and(|until| now < until)
    }
}
