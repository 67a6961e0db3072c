//! Ends an open connection on purpose while calls may run over it, and remembers why.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Opened;
use sepal_mcp::{Address, CallNews, Error, ToolAnswer, ToolCall, visit_pages};

/// The reason why this gateway ended the connection, if it did.
#[derive(Default)]
pub(crate) struct Ending {
    is_restarted: AtomicBool,
    is_overruled: AtomicBool,
    /// Cancelled when the server is removed.
    removal: CancellationToken,
    /// The calls that run over the connection.
    calls: TaskTracker,
}

impl Opened {
    /// Calls a tool; `cancel` stops the call, and so does the removal of the server.
    pub async fn call(
        &self,
        call: ToolCall,
        cancel: &CancellationToken,
        on_news: impl FnMut(CallNews),
    ) -> Result<ToolAnswer, Error> {
        let removal = &self.ending.removal;
        // Taken before the check, because `remove` cancels first and then waits for the calls that it sees.
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

    /// Asks the person to open pages that a call needs first; returns true if all pages are done. Ends with
    /// `false` when the server is removed.
    pub async fn visit(
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

    /// Ends the connection because its server was removed: running calls are told to stop and end like calls
    /// that a person stops, then the sandbox ends.
    pub async fn remove(&self) {
        self.ending.removal.cancel();
        self.ending.calls.close();
        self.ending.calls.wait().await;
        self.kill().await;
        self.connection.hang_up();
    }

    /// Ends the connection because somebody restarts the server, whatever runs in it.
    pub async fn restart(&self) {
        self.ending.is_restarted.store(true, Ordering::Release);
        self.kill().await;
        self.connection.hang_up();
    }

    /// Returns true if the connection ended because somebody restarted the server.
    pub fn is_restarted(&self) -> bool {
        self.ending.is_restarted.load(Ordering::Acquire)
    }

    /// Ends the sandbox because a call did not stop, and waits for its end. A remote server goes on.
    pub async fn overrule(&self) {
        self.ending.is_overruled.store(true, Ordering::Release);
        self.kill().await;
    }

    /// Returns true if the sandbox was ended because a call did not stop.
    pub fn is_overruled(&self) -> bool {
        self.ending.is_overruled.load(Ordering::Acquire)
    }
}
