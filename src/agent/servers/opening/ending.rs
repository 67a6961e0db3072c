//! Why an open connection was ended here while calls may have run over it.

use std::sync::atomic::{AtomicBool, Ordering};

use super::Opened;

/// Whether it was ended here, and why.
#[derive(Default)]
pub(super) struct Ending {
    is_restarted: AtomicBool,
    is_overruled: AtomicBool,
}

impl Opened {
    /// Ends it because somebody starts the server afresh, whatever runs in it.
    pub(in crate::agent::servers) async fn restart(&self) {
        self.ending.is_restarted.store(true, Ordering::Release);
        self.kill().await;
        self.connection.hang_up();
    }

    /// Whether it ended because somebody started the server afresh.
    pub(in crate::agent) fn is_restarted(&self) -> bool {
        self.ending.is_restarted.load(Ordering::Acquire)
    }

    /// Ends everything inside because a call did not stop, and waits for it. A remote server goes on.
    pub(in crate::agent) async fn overrule(&self) {
        self.ending.is_overruled.store(true, Ordering::Release);
        self.kill().await;
    }

    /// Whether it ended because a call did not stop.
    pub(in crate::agent) fn is_overruled(&self) -> bool {
        self.ending.is_overruled.load(Ordering::Acquire)
    }
}
