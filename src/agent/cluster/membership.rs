//! Tracks which gateways live, by their heartbeats. A hint only: the journal decides.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::domain::{GatewayId, SessionKey};
use crate::store::Error;
use crate::store::live::cluster_bus::ClusterBus;

/// The time for which a gateway whose own connection was down waits before it declares others dead: it missed
/// their heartbeats too.
const PATIENCE: Duration = Duration::from_secs(3);

/// The time for which a gateway may still listen after it was last heard of: a Redis that was restarted does
/// not know it until its next heartbeat.
const COMPANY: Duration = Duration::from_secs(10);

/// The gateways that are believed to live.
pub(in crate::agent) struct Membership {
    cluster_bus: Arc<dyn ClusterBus>,
    /// Never held across an await.
    known: Mutex<MembershipState>,
    began: Instant,
    /// The end of the last round that found nothing unusual, in milliseconds since `began`.
    ticked: AtomicU64,
}

struct MembershipState {
    alive: BTreeSet<GatewayId>,
    /// Gateways that said goodbye; a gateway's id is never used again.
    over: BTreeSet<GatewayId>,
    /// The last time that another gateway was known to live.
    company: Option<Instant>,
    /// The last time that heartbeats were received.
    heard: Option<Instant>,
    /// Until this time no gateway is declared dead.
    patient_until: Option<Instant>,
    /// Findings of rounds that were not acted on yet.
    found: Round,
    /// Sessions that had to be read when the store did not answer.
    behind: HashSet<SessionKey>,
}

/// The result of a round of heartbeats.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in crate::agent) struct Round {
    pub(in crate::agent) is_somebody_gone: bool,
    /// This gateway was silent so long that others may have taken over its sessions.
    pub(in crate::agent) was_away: bool,
}

impl Membership {
    /// Starts with only this gateway known.
    pub(in crate::agent) fn new(cluster_bus: Arc<dyn ClusterBus>) -> Self {
        let own = cluster_bus.gateway().clone();
        Self {
            cluster_bus,
            known: Mutex::new(MembershipState {
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

    /// Returns true if this process ran lately. After a longer pause it must first check who runs its
    /// sessions, before it shows the output of its effects.
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

    /// Returns true if no other gateway was known to live lately. A gateway that just started, and whose
    /// message about that was lost, may be missing until the next round.
    pub(in crate::agent) fn is_alone(&self) -> bool {
        let company = self.known().company;
        company.is_none_or(|seen| seen.elapsed() > COMPANY)
    }

    /// Returns true unless that gateway is known to be dead.
    pub(in crate::agent) fn is_alive(&self, gateway: &GatewayId) -> bool {
        let known = self.known();
        let is_over = known.over.contains(gateway);
        !is_over && (known.alive.contains(gateway) || known.is_patient(Instant::now()))
    }

    /// Returns true if that gateway is dead, according to the newest heartbeats.
    pub(in crate::agent) async fn is_over(&self, gateway: &GatewayId) -> bool {
        if self.is_alive(gateway) {
            return false;
        }
        // A gateway that just started was not part of the last round.
        if self.cluster_bus.is_shared() && self.round().await.is_err() {
            return false;
        }
        !self.is_alive(gateway)
    }

    /// Sends a heartbeat first if this process paused, because the others may believe it dead.
    pub(in crate::agent) async fn be_heard(&self) {
        let heard = self.known().heard;
        let is_late = heard.is_some_and(|heard| heard.elapsed() > PATIENCE);
        if is_late && self.cluster_bus.is_shared() {
            // If the bus does not answer, neither does the store.
            let _ = self.round().await;
        }
    }

    /// Sends a heartbeat, and reads those of the others.
    pub(in crate::agent) async fn round(&self) -> Result<Round, Error> {
        let was_awake = self.is_awake();
        let beat = self.cluster_bus.beat().await;
        let round = beat.map(|alive| self.hear(alive, self.cluster_bus.is_shared()));
        if round.is_ok() {
            self.cluster_bus.has_company(!self.is_alone());
        }
        // After a pause the sessions are checked first; the next round then finds nothing unusual.
        if was_awake || round.as_ref().is_ok_and(|round| !round.was_away) {
            self.tick();
        }
        round
    }

    /// Takes the findings of all rounds since the last call, whoever ran them.
    pub(in crate::agent) fn take_found(&self) -> Round {
        std::mem::take(&mut self.known().found)
    }

    /// Records that updates of a session may have been missed and cannot be read now.
    pub(in crate::agent) fn fall_behind(&self, key: &SessionKey) {
        self.known().behind.insert(key.clone());
    }

    /// Takes those sessions, to read them once the store answers again.
    pub(in crate::agent) fn take_behind(&self) -> HashSet<SessionKey> {
        std::mem::take(&mut self.known().behind)
    }

    /// Counts a message from that gateway as a heartbeat.
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

    /// Records that a gateway said goodbye.
    pub(in crate::agent) fn forget(&self, gateway: &GatewayId) {
        let mut known = self.known();
        known.alive.remove(gateway);
        known.over.insert(gateway.clone());
    }

    fn known(&self) -> MutexGuard<'_, MembershipState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MembershipState {
    /// Records the time if other gateways live.
    fn meet(&mut self, now: Instant) {
        if self.alive.len() > 1 {
            self.company = Some(now);
        }
    }

    fn is_patient(&self, now: Instant) -> bool {
        self.patient_until.is_some_and(|until| now < until)
    }
}
