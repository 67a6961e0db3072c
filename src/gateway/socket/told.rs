//! How much of a running answer one client has.

use crate::agent::{Delta, DeltaKind, RunningAnswer};

/// How much of a running answer a client has, in UTF-16 code units.
#[derive(Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) answer: (u64, u32, u32),
    pub(super) text: usize,
    pub(super) reasoning: usize,
}

impl Told {
    /// The count for a delta's kind; another answer or attempt begins at 0.
    pub(super) fn units(&mut self, delta: &Delta) -> &mut usize {
        let answer = (delta.turn, delta.iteration, delta.attempt);
        if self.answer != answer {
            *self = Self {
                answer,
                ..Self::default()
            };
        }
        match delta.kind {
            DeltaKind::Text => &mut self.text,
            DeltaKind::Reasoning => &mut self.reasoning,
        }
    }

    /// The client has the whole of this.
    pub(super) fn all_of(answer: &RunningAnswer) -> Self {
        Self {
            answer: (answer.turn, answer.iteration, answer.attempt),
            text: answer.text.encode_utf16().count(),
            reasoning: answer.reasoning.encode_utf16().count(),
        }
    }
}
