//! Signals a running call that it is to end, or that this gateway no longer follows it.

use tokio_util::sync::CancellationToken;

/// The signals to a call.
#[derive(Clone, Default)]
pub(in crate::agent) struct CallStop {
    /// Cancelled when the call is to end.
    pub(in crate::agent) cancel: CancellationToken,
    /// Cancelled before `cancel` if the call itself is not to end: a task then continues at its server.
    pub(in crate::agent) let_go: CancellationToken,
}
