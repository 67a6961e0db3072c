//! What a server says on stderr or logs over the protocol: the last lines at hand, all of them in the log.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::LAST_LINES;
use crate::domain::TenantId;
use crate::mcp::Cleaner;
use crate::servers::connections::logs::{LogLine, Logs, cut};
use crate::store::clock;

/// How long the rest of stderr may take after the server ended.
const DRAIN_LIMIT: Duration = Duration::from_millis(500);

/// The last lines of one server.
#[derive(Clone, Default)]
pub(crate) struct Said {
    /// Never held across an await.
    lines: Arc<Mutex<VecDeque<String>>>,
    /// How many listeners are at work.
    listening: Arc<watch::Sender<u32>>,
}

impl Said {
    /// Takes every line until the server has closed its stderr.
    pub(crate) fn listen(
        &self,
        stderr: mpsc::Receiver<String>,
        cleaner: Cleaner,
        keep: (Arc<Logs>, Option<TenantId>, String),
    ) -> impl Future<Output = ()> + Send + 'static {
        let own = self.clone();
        own.listening.send_modify(|count| *count += 1);
        async move {
            own.clone().hear(stderr, cleaner, keep).await;
            own.listening.send_modify(|count| *count -= 1);
        }
    }

    /// Takes every line for as long as they come. Nobody who waits for the rest of stderr waits for it.
    pub(crate) async fn hear(
        self,
        mut lines: mpsc::Receiver<String>,
        cleaner: Cleaner,
        (logs, whose, server): (Arc<Logs>, Option<TenantId>, String),
    ) {
        while let Some(line) = lines.recv().await {
            let text = cut(cleaner.clean(&line));
            tracing::debug!(mcp.server = %server, "{text}");
            self.keep(text.clone());
            let at = clock::now();
            logs.keep(whose.as_ref(), &server, LogLine { at, text });
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

    /// Waits for what a dead server still had to say.
    pub(crate) async fn drained(&self) {
        let mut listening = self.listening.subscribe();
        let drained = listening.wait_for(|count| *count == 0);
        // What comes later than that is in the log.
        let _ = tokio::time::timeout(DRAIN_LIMIT, drained).await;
    }
}
