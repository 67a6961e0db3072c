//! Collects the lines that a server writes to stderr or logs over the protocol: keeps the last lines for
//! failures, and passes all lines to the log.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::LAST_LINES;
use crate::connections::logs::{LogLine, Logs, cut};
use sepal_core::domain::TenantId;
use sepal_mcp::Cleaner;
use sepal_store::clock;

/// The time to wait for the rest of stderr after the server has ended.
const DRAIN_LIMIT: Duration = Duration::from_millis(500);

/// The log to which the lines of a server go.
pub(crate) struct ServerLog {
    /// `None` for a trial: it may have the name of a stored server, and leaves nothing in that server's log.
    pub(crate) logs: Option<Arc<Logs>>,
    pub(crate) tenant: Option<TenantId>,
    pub(crate) server: String,
}

/// The last lines of a server.
#[derive(Clone, Default)]
pub(crate) struct RequestMessage {
    /// Never held across an await.
    lines: Arc<Mutex<VecDeque<String>>>,
    /// The number of running listeners on stderr.
    listening: Arc<watch::Sender<u32>>,
}

impl Said {
    /// Collects lines until the server has closed its stderr; [`Said::drained`] waits for it.
    pub(crate) fn listen(
        &self,
        stderr: mpsc::Receiver<String>,
        cleaner: Cleaner,
        log: ServerLog,
    ) -> impl Future<Output = ()> + Send + 'static {
        let own = self.clone();
        own.listening.send_modify(|count| *count += 1);
        async move {
            own.clone().hear(stderr, cleaner, log).await;
            own.listening.send_modify(|count| *count -= 1);
        }
    }

    /// Collects lines until the channel closes. [`Said::drained`] does not wait for it.
    pub(crate) async fn hear(
        self,
        mut lines: mpsc::Receiver<String>,
        cleaner: Cleaner,
        log: ServerLog,
    ) {
        while let Some(line) = lines.recv().await {
            let text = cut(cleaner.clean(&line));
            tracing::debug!(mcp.server = %log.server, "{text}");
            self.keep(text.clone());
            if let Some(logs) = &log.logs {
                let at = clock::now();
                logs.keep(log.tenant.as_ref(), &log.server, LogLine { at, text });
            }
        }
    }

    fn keep(&self, text: String) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= LAST_LINES {
            lines.pop_front();
        }
        lines.push_back(text);
    }

    /// The last lines, oldest first.
    pub(crate) fn last(&self) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().cloned().collect()
    }

    /// Waits for the rest of a dead server's stderr, for at most `DRAIN_LIMIT`.
    pub(crate) async fn drained(&self) {
        let mut listening = self.listening.subscribe();
        let drained = listening.wait_for(|count| *count == 0);
        // Lines that come later still go to the log.
        let _ = tokio::time::timeout(DRAIN_LIMIT, drained).await;
    }
}
