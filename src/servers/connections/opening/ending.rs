//! Why an open connection was ended here while calls may have run over it.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Opened;
use crate::mcp::{Address, CallNews, Error, ToolAnswer, ToolCall, visit_pages};

/// Whether it was ended here, and why.
#[derive(Default)]
pub(crate) struct Ending {
    is_restarted: AtomicBool,
    is_overruled: AtomicBool,
    /// Its server was removed.
    removal: CancellationToken,
    /// Calls that run over it.
    calls: TaskTracker,
}

impl Opened {
    /// Calls a tool; the call is stopped by `cancel`, and when the server is removed.
    pub(crate) async fn call(
        &self,
        call: ToolCall,
        cancel: &CancellationToken,
        on_news: impl FnMut(CallNews),
    ) -> Result<ToolAnswer, Error> {
        let removal = &self.ending.removal;
        // Before the look at the removal, which waits for those that it sees.
        let _running = self.ending.calls.token();
        if removal.is_cancelled() {
            let server = self.connection.server().to_owned();
            let reason = "it was removed".to_owned();
            return Err(Error::NotTaken { server, reason });
        }
        let stop = cancel.child_token();
        let answer = self.connection.call(call, &stop, on_news);
        tokio::pin!(answer);
        tokio::select! {
            answer = &mut answer => answer,
            () = removal.cancelled() => {
                stop.cancel();
                answer.await
            }
        }
    }

    /// Asks the person to open pages that a call needs first; whether all is done there. It ends when the
    /// server is removed.
    pub(crate) async fn visit(
        &self,
        addresses: Vec<Address>,
        cancel: &CancellationToken,
        on_news: impl FnMut(CallNews),
    ) -> bool {
        tokio::select! {
            is_done = visit_pages(&self.connection, addresses, cancel, on_news) => is_done,
            () = self.ending.removal.cancelled() => false,
        }
    }

    /// Ends it because its server was removed: calls are told to stop and end as those do that a person
    /// stops, then everything inside.
    pub(in crate::servers) async fn remove(&self) {
        self.ending.removal.cancel();
        self.ending.calls.close();
        self.ending.calls.wait().await;
        self.kill().await;
        self.connection.hang_up();
    }

    /// Ends it because somebody starts the server afresh, whatever runs in it.
    pub(in crate::servers) async fn restart(&self) {
        self.ending.is_restarted.store(true, Ordering::Release);
        self.kill().await;
        self.connection.hang_up();
    }

    /// Whether it ended because somebody started the server afresh.
    pub(crate) fn is_restarted(&self) -> bool {
        self.ending.is_restarted.load(Ordering::Acquire)
    }

    /// Ends everything inside because a call did not stop, and waits for it. A remote server goes on.
    pub(crate) async fn overrule(&self) {
        self.ending.is_overruled.store(true, Ordering::Release);
        self.kill().await;
    }

    /// Whether it ended because a call did not stop.
    pub(crate) fn is_overruled(&self) -> bool {
        self.ending.is_overruled.load(Ordering::Acquire)
    }
}
