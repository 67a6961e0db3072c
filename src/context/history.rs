//! What was said in the session, as contexts (S4.4).

use async_trait::async_trait;

use super::provider::{ContextError, ContextProvider, ContextSession};
use super::value::Context;

/// Gives the newest entries of all kinds, the newest first. How much of them a request shows is for the
/// compaction that follows; a limit here hides what is older from that too.
#[derive(Debug, Clone, Copy, Default)]
pub struct HistoryProvider {
    limit: Option<usize>,
}

impl HistoryProvider {
    /// Of so many entries at most.
    pub fn new(limit: usize) -> Self {
        Self { limit: Some(limit) }
    }

    /// Of everything that the session holds.
    pub fn whole() -> Self {
        Self::default()
    }

    fn contexts(self, session: &ContextSession<'_>) -> Vec<Context> {
        let entries = session.history().take(self.limit.unwrap_or(usize::MAX));
        entries.flat_map(Context::of_entry).collect()
    }
}

#[async_trait]
impl ContextProvider for HistoryProvider {
    fn name(&self) -> &'static str {
        "history"
    }

    async fn provide(&self, session: &ContextSession<'_>) -> Result<Vec<Context>, ContextError> {
        Ok(self.contexts(session))
    }

    fn at_hand(&self, session: &ContextSession<'_>) -> Option<Vec<Context>> {
        Some(self.contexts(session))
    }
}
