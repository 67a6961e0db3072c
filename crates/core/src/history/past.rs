//! What was said, as far as the session still holds it.

use std::sync::Arc;

use crate::domain::{Entry, Weighed};
use crate::session::{Compaction, Gap, SessionState};

/// What was said, and how the last request showed it.
#[derive(Debug, Clone, Copy)]
pub struct Past<'a> {
    /// The entries, oldest first.
    pub entries: &'a [Arc<Weighed>],
    /// `seq` of the message that the newest turn began with; `None` = not known.
    pub question: Option<u64>,
    /// Where entries are missing.
    pub gap: Gap,
    /// How earlier requests showed earlier entries.
    pub compaction: Option<&'a Compaction>,
    /// Whose vendor goes on from what it compacted itself; none = the model is shown what was said.
    pub compactor: Option<&'a str>,
}

impl<'a> Past<'a> {
    /// That of a session.
    pub fn of(state: &'a SessionState) -> Self {
        Self {
            entries: &state.entries,
            question: state.control.question,
            gap: state.gap,
            compaction: state.control.compaction.as_ref(),
            compactor: None,
        }
    }

    /// The newest entries alone, as if nothing had been said before.
    #[must_use]
    pub fn newest(self, kept: usize) -> Self {
        let from = self.entries.len().saturating_sub(kept);
        Self {
            entries: self.entries.get(from..).unwrap_or_default(),
            gap: Gap::default(),
            compaction: None,
            ..self
        }
    }

    /// How many of the newest entries make up the newest turn: its question and what came after it,
    /// which no request may leave out. Messages that came while it ran begin nothing new.
    pub fn newest_turn(self) -> usize {
        let newest = self.entries.iter().rposition(|entry| seq(entry).is_some());
        let first = self.question.and_then(|question| {
            let is_asked = |entry: &Arc<Weighed>| seq(entry).is_some_and(|seq| seq >= question);
            self.entries.iter().position(is_asked)
        });
        let from = first.or(newest).unwrap_or_default();
        self.entries.len() - before_notes(self.entries, from)
    }

    /// What came before the newest turn, and the newest turn.
    pub fn parted(self) -> (&'a [Arc<Weighed>], &'a [Arc<Weighed>]) {
        self.entries
            .split_at(self.entries.len() - self.newest_turn())
    }
}

/// Where the remarks begin that the model was to read with the entry at `index`.
pub(super) fn before_notes(entries: &[Arc<Weighed>], index: usize) -> usize {
    let is_note = |at: usize| matches!(entries.get(at).map(|e| &***e), Some(Entry::Note { .. }));
    let mut from = index;
    while from > 0 && is_note(from - 1) {
        from -= 1;
    }
    from
}

/// `seq` of a person's message.
pub(super) fn seq(entry: &Arc<Weighed>) -> Option<u64> {
    match &***entry {
        Entry::User { seq, .. } => Some(*seq),
        Entry::Assistant { .. } | Entry::ToolResult { .. } | Entry::Note { .. } => None,
    }
}
