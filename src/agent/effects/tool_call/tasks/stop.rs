//! How a running call hears that it is to end, or that nobody here goes on with it.

use tokio_util::sync::CancellationToken;

/// How a call is told that it is to end here.
#[derive(Clone, Default)]
pub(in crate::agent) struct CallStop {
    /// It is to end.
    pub(in crate::agent) cancel: CancellationToken,
    /// Told before, where nobody wants its end: what goes on without us may go on.
    pub(in crate::agent) let_go: CancellationToken,
}
