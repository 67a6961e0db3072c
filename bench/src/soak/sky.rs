//! What everybody looks at: whether faults happen, whether it is a quiet moment, whether it ends.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio_util::sync::CancellationToken;

/// The state of the whole run.
#[derive(Default)]
pub(crate) struct Sky {
    /// Cancelled when faults stop.
    pub(crate) calm: CancellationToken,
    /// Cancelled when every session ends its turn and leaves.
    pub(crate) finish: CancellationToken,
    /// Whether nobody begins a turn, so that memory can be measured.
    lull: AtomicBool,
    /// Sessions that are in a turn.
    busy: AtomicUsize,
    /// Whether the model may fall silent for good, until the gateway gives up.
    pub(crate) has_silence: bool,
}

impl Sky {
    pub(crate) fn new(has_silence: bool) -> Self {
        Self {
            has_silence,
            ..Self::default()
        }
    }

    /// Whether somebody may begin a turn.
    pub(crate) fn may_begin(&self) -> bool {
        !self.lull.load(Ordering::Relaxed) && !self.finish.is_cancelled()
    }

    /// Begins or ends a quiet moment.
    pub(crate) fn set_lull(&self, is_lull: bool) {
        self.lull.store(is_lull, Ordering::Relaxed);
    }

    /// A session began a turn.
    pub(crate) fn became_busy(&self) {
        self.busy.fetch_add(1, Ordering::Relaxed);
    }

    /// It ended it.
    pub(crate) fn became_idle(&self) {
        self.busy.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many are in a turn.
    pub(crate) fn busy(&self) -> usize {
        self.busy.load(Ordering::Relaxed)
    }
}
