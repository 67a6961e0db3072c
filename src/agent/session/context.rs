//! How much of the past is kept in memory: what the model may be shown, and again what it may be
//! shown once more.

use super::LiveSession;
use crate::history::{self, Past};
use crate::llm;

impl LiveSession {
    /// Keeps of the context what the model may still be shown, in memory and in the snapshot: the
    /// journal has the rest (S2.9). The newest turn stays whole. A retry takes its answer away again, so right after it the
    /// window may be one answer short.
    pub(crate) fn forget_unread(&mut self) {
        let limits = self.agent.limits(&self.state.control);
        if !self.has_all_within(limits) {
            return;
        }
        self.cut_to = limits;
        let past = Past {
            entries: &self.state.entries,
            question: self.state.control.question,
        };
        let kept = history::retain(past, limits, llm::tokens::estimate);
        self.state.retain(kept);
    }

    /// Whether the entries in memory are all that these limits let through.
    fn has_all_within(&self, limits: history::Limits) -> bool {
        limits.are_within(self.cut_to)
    }

    /// Reads again what was forgotten and may be read now; whether it did. While the store is away
    /// the session goes on with what it has, and the next look tries anew.
    pub(crate) async fn widen(&mut self) -> bool {
        if self.has_all_within(self.agent.limits(&self.state.control)) {
            return false;
        }
        match self.journal.whole(self.state.control.version).await {
            Ok(whole) if whole.control.version == self.state.control.version => {
                self.state.entries = whole.entries;
                self.state.left_out = whole.left_out;
                self.cut_to = history::Limits::default();
                true
            }
            Ok(_) => false,
            Err(error) => {
                tracing::warn!(session.id = %self.key.session, ?error, "What the model may read again is not read yet");
                false
            }
        }
    }
}
