//! Provides the session's history as contexts (S4.4).

use async_trait::async_trait;

use super::provider::{ContextError, ContextProvider, ContextSession};
use super::value::Context;

/// Provides the newest entries of all kinds, newest first. The compaction that follows decides how many of
/// them a request shows; a limit here hides older ones from it too.
#[derive(Debug, Clone, Copy, Default)]
pub struct HistoryProvider {
    limit: Option<usize>,
}

impl HistoryProvider {
    /// Provides at most `limit` entries.
    pub fn new(limit: usize) -> Self {
        Self { limit: Some(limit) }
    }

    /// Provides the whole history.
    pub fn whole() -> Self {
        Self::default()
    }

    fn contexts(self, session: &ContextSession<'_>) -> Vec<Context> {
        let most = self.limit.unwrap_or(usize::MAX);
        // Most entries have one part.
        let mut contexts = Vec::with_capacity(most.min(session.entries().len()));
        contexts.extend(session.history().take(most).flat_map(Context::of_entry));
        contexts
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
