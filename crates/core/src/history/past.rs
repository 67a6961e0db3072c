//! Describes a session's past entries as far as they are in memory.

use std::sync::Arc;

use crate::domain::{CountedEntry, Entry};
use crate::session::{Compaction, Gaps, SessionState};

/// The past entries, and how the last request showed them.
#[derive(Debug, Clone, Copy)]
pub struct Past<'a> {
    /// The entries, oldest first.
    pub entries: &'a [Arc<CountedEntry>],
    /// `seq` of the first message of the newest turn; `None` = unknown.
    pub question: Option<u64>,
    /// The places where entries were removed from memory.
    pub gaps: &'a Gaps,
    /// The compaction of earlier entries in the last request.
    pub compaction: Option<&'a Compaction>,
    /// The provider family whose own compaction the request continues from; `None` = the model is sent the
    /// entries themselves.
    pub compactor: Option<&'a str>,
}

impl<'a> Past<'a> {
    /// The past of a session.
    pub fn of(state: &'a SessionState) -> Self {
        Self {
            entries: &state.entries,
            question: state.control.context.question,
            gaps: &state.gaps,
            compaction: state.control.context.compaction.as_ref(),
            compactor: None,
        }
    }

    /// Only the newest entries, as if there were no earlier ones.
    #[must_use]
    pub fn newest(self, kept: usize) -> Self {
        let from = self.entries.len().saturating_sub(kept);
        Self {
            entries: self.entries.get(from..).unwrap_or_default(),
            gaps: Gaps::NONE,
            compaction: None,
            ..self
        }
    }

    /// Number of entries of the newest turn: its question and everything after it, which no request may
    /// leave out. Messages during the turn do not start another turn.
    pub fn newest_turn(self) -> usize {
        let newest = self.entries.iter().rposition(|entry| seq(entry).is_some());
        let first = self.question.and_then(|question| {
            let is_asked =
                |entry: &Arc<CountedEntry>| seq(entry).is_some_and(|seq| seq >= question);
            self.entries.iter().position(is_asked)
        });
        let from = first.or(newest).unwrap_or_default();
        self.entries.len() - before_notes(self.entries, from)
    }

    /// Splits the entries into those before the newest turn and the newest turn.
    pub fn parted(self) -> (&'a [Arc<CountedEntry>], &'a [Arc<CountedEntry>]) {
        self.entries
            .split_at(self.entries.len() - self.newest_turn())
    }
}

/// The index of the first note directly before the entry at `index`; the model reads these notes with it.
pub(super) fn before_notes(entries: &[Arc<CountedEntry>], index: usize) -> usize {
    let is_note = |at: usize| matches!(entries.get(at).map(|e| &***e), Some(Entry::Note { .. }));
    let mut from = index;
    while from > 0 && is_note(from - 1) {
        from -= 1;
    }
    from
}

/// `seq` of a user message; `None` for other entries.
pub(super) fn seq(entry: &Arc<CountedEntry>) -> Option<u64> {
    match &***entry {
        Entry::User { seq, .. } => Some(*seq),
        Entry::Assistant { .. } | Entry::ToolResult { .. } | Entry::Note { .. } => None,
    }
}
