//! The phase of a run, which all tasks read: whether faults happen, whether it is a quiet moment, and
//! whether it ends.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::check::ledger::Ledger;

/// The interval of the clock checks.
const TICK: Duration = Duration::from_millis(200);
/// The delay from which a check shows that the machine stalled.
const STANDSTILL: Duration = Duration::from_secs(5);
/// The time after a stall in which connections may break: longer than a heartbeat and its answer may take.
const EXCUSED_MS: u64 = 60_000;

/// The state of the whole run.
#[derive(Default)]
pub(crate) struct Phase {
    /// Cancelled when faults stop.
    pub(crate) calm: CancellationToken,
    /// Cancelled when every session ends its turn and leaves.
    pub(crate) finish: CancellationToken,
    /// True if nobody may begin a turn, so that memory can be measured.
    lull: AtomicBool,
    /// The number of sessions that are in a turn.
    busy: AtomicUsize,
    /// Milliseconds from `began` to the end of the last stall; 0 means never.
    stood_still: AtomicU64,
    began: Option<Instant>,
    /// True if the run is long: the model may become silent forever, until the gateway gives up, and memory
    /// is judged.
    pub(crate) is_long: bool,
}

impl Phase {
    pub(crate) fn new(is_long: bool) -> Self {
        Self {
            is_long,
            began: Some(Instant::now()),
            ..Self::default()
        }
    }

    /// Detects stalls of the machine, until the end.
    pub(crate) async fn look_at_the_clock(&self, ledger: &Ledger) {
        loop {
            let before = Instant::now();
            tokio::time::sleep(TICK).await;
            let late = before.elapsed().saturating_sub(TICK);
            if late > STANDSTILL {
                ledger.count("times that the machine stood still");
                eprintln!("The machine stood still for {} s", late.as_secs());
                self.stood_still.store(self.now(), Ordering::Relaxed);
            }
        }
    }

    fn now(&self) -> u64 {
        let since = self.began.map_or(Duration::ZERO, |began| began.elapsed());
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    /// True if the machine stalled recently.
    pub(crate) fn stood_still(&self) -> bool {
        let last = self.stood_still.load(Ordering::Relaxed);
        last > 0 && self.now().saturating_sub(last) < EXCUSED_MS
    }

    /// True if a person may begin a turn.
    pub(crate) fn may_begin(&self) -> bool {
        !self.lull.load(Ordering::Relaxed) && !self.finish.is_cancelled()
    }

    /// Begins or ends a quiet moment.
    pub(crate) fn set_lull(&self, is_lull: bool) {
        self.lull.store(is_lull, Ordering::Relaxed);
    }

    /// Counts a session that began a turn.
    pub(crate) fn became_busy(&self) {
        self.busy.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a session that ended its turn.
    pub(crate) fn became_idle(&self) {
        self.busy.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the number of sessions in a turn.
    pub(crate) fn busy(&self) -> usize {
        self.busy.load(Ordering::Relaxed)
    }
}
