//! Holds the answer that streams, and defines its pieces.

use crate::domain::{Iteration, ModelRequestId, TurnId};
use std::mem;

use serde::{Deserialize, Serialize};

use crate::session::Reasoning;

/// The part of an answer that a delta belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeltaKind {
    /// The answer's text.
    Text,
    /// The shown reasoning.
    Reasoning,
}

/// A piece of the running answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delta {
    pub turn: TurnId,
    /// The request of the turn.
    pub iteration: Iteration,
    /// Counted from 1; a higher attempt replaces the text of the one before.
    pub attempt: u32,
    /// The start of the piece, in UTF-16 code units of its kind (as browsers count).
    pub offset: usize,
    pub kind: DeltaKind,
    pub text: String,
}

impl Delta {
    /// The request that the answer belongs to.
    pub fn request(&self) -> ModelRequestId {
        ModelRequestId {
            turn: self.turn,
            iteration: self.iteration,
        }
    }

    /// The length in UTF-16 code units.
    pub fn units(&self) -> usize {
        self.text.encode_utf16().count()
    }
}

/// The answer that is being streamed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningAnswer {
    pub turn: TurnId,
    /// The request of the turn.
    pub iteration: Iteration,
    /// Counted from 1.
    pub attempt: u32,
    /// The text so far.
    pub text: String,
    /// The reasoning so far.
    pub reasoning: String,
    text_units: usize,
    reasoning_units: usize,
    /// The text of the previous attempt, which stays visible until this attempt has text.
    #[serde(skip)]
    in_view: String,
}

/// The result of merging a piece from another gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::agent) enum MergeResult {
    /// The answer now contains the piece, or did before.
    Whole,
    /// A piece before it is missing.
    Gap,
}

impl RunningAnswer {
    /// Makes an empty answer.
    pub(in crate::agent) fn begin(request: ModelRequestId, attempt: u32) -> Self {
        Self {
            turn: request.turn,
            iteration: request.iteration,
            attempt,
            ..Self::default()
        }
    }

    /// Begins another attempt at the same request, without telling watchers.
    pub(in crate::agent) fn again(self, attempt: u32) -> Self {
        let next = Self::begin(self.request(), attempt);
        Self {
            in_view: self.into_shown(),
            ..next
        }
    }

    /// Returns the visible text: that of the previous attempt until this one has a piece.
    pub(in crate::agent) fn into_shown(self) -> String {
        if self.in_view.is_empty() {
            self.text
        } else {
            self.in_view
        }
    }

    /// Returns the visible text, and the reasoning.
    pub(in crate::agent) fn into_parts(mut self) -> (Option<String>, Option<Reasoning>) {
        let reasoning = Reasoning::of(mem::take(&mut self.reasoning), None);
        (Some(self.into_shown()), reasoning)
    }

    /// The request that it answers.
    pub fn request(&self) -> ModelRequestId {
        ModelRequestId {
            turn: self.turn,
            iteration: self.iteration,
        }
    }

    /// Appends a piece, and returns it as a delta.
    pub(in crate::agent) fn say(&mut self, kind: DeltaKind, piece: String) -> Delta {
        let units = piece.encode_utf16().count();
        self.in_view = String::new();
        let (text, length) = self.part(kind);
        let offset = *length;
        *length += units;
        text.push_str(&piece);
        Delta {
            turn: self.turn,
            iteration: self.iteration,
            attempt: self.attempt,
            offset,
            kind,
            text: piece,
        }
    }

    /// Appends the new part of a piece from another gateway, and returns that part as a delta.
    pub(in crate::agent) fn merge(&mut self, delta: &Delta) -> (MergeResult, Option<Delta>) {
        if delta.attempt < self.attempt {
            return (MergeResult::Whole, None);
        }
        if delta.attempt > self.attempt {
            if delta.offset > 0 {
                return (MergeResult::Gap, None);
            }
            *self = mem::take(self).again(delta.attempt);
        }
        let (_, length) = self.part(delta.kind);
        let Some(known) = length.checked_sub(delta.offset) else {
            return (MergeResult::Gap, None);
        };
        let rest = tail(&delta.text, known);
        let told = (!rest.is_empty()).then(|| self.say(delta.kind, rest));
        (MergeResult::Whole, told)
    }

    /// Extends the answer to the whole that another gateway sent, and returns the new parts as deltas.
    pub(in crate::agent) fn adopt(&mut self, whole: &Self) -> Vec<Delta> {
        if whole.attempt < self.attempt {
            return Vec::new();
        }
        if whole.attempt > self.attempt {
            *self = mem::take(self).again(whole.attempt);
        }
        let missing = whole.missing(self.text_units, self.reasoning_units);
        for delta in &missing {
            self.say(delta.kind, delta.text.clone());
        }
        missing
    }

    /// Returns the deltas that a watcher lacks that has seen `text` and `reasoning` code units.
    pub fn missing(&self, text: usize, reasoning: usize) -> Vec<Delta> {
        let kinds = [
            (DeltaKind::Reasoning, &self.reasoning, reasoning),
            (DeltaKind::Text, &self.text, text),
        ];
        let piece = |(kind, whole, offset): (DeltaKind, &String, usize)| {
            let rest = tail(whole, offset);
            Delta {
                turn: self.turn,
                iteration: self.iteration,
                attempt: self.attempt,
                offset,
                kind,
                text: rest,
            }
        };
        let pieces = kinds.into_iter().map(piece);
        pieces.filter(|delta| !delta.text.is_empty()).collect()
    }

    fn part(&mut self, kind: DeltaKind) -> (&mut String, &mut usize) {
        match kind {
            DeltaKind::Text => (&mut self.text, &mut self.text_units),
            DeltaKind::Reasoning => (&mut self.reasoning, &mut self.reasoning_units),
        }
    }
}

/// Returns the text after the first `units` UTF-16 code units.
pub fn tail(text: &str, units: usize) -> String {
    if units == 0 {
        return text.to_owned();
    }
    let rest: Vec<u16> = text.encode_utf16().skip(units).collect();
    String::from_utf16_lossy(&rest)
}

#[cfg(test)]
mod tests {
    use super::{Delta, DeltaKind, MergeResult, RunningAnswer};
    use crate::domain::{Iteration, ModelRequestId, TurnId};

    fn delta(attempt: u32, offset: usize, text: &str) -> Delta {
        Delta {
            turn: TurnId(0),
            iteration: Iteration(0),
            attempt,
            offset,
            kind: DeltaKind::Text,
            text: text.into(),
        }
    }

    #[test]
    fn pieces_that_come_twice_late_or_with_a_gap_give_the_text_once() {
        let mut answer = RunningAnswer::begin(ModelRequestId::default(), 1);
        let mut told = String::new();
        let steps = [
            (delta(1, 0, "a😀"), MergeResult::Whole),
            (delta(1, 0, "a😀"), MergeResult::Whole),
            (delta(1, 9, "far"), MergeResult::Gap),
            (delta(1, 1, "😀b"), MergeResult::Whole),
            (delta(0, 0, "late"), MergeResult::Whole),
        ];
        for (piece, expected) in steps {
            let (merged, new) = answer.merge(&piece);
            assert_eq!(merged, expected, "{piece:?}");
            told.extend(new.map(|delta| delta.text));
        }
        assert_eq!((answer.text.as_str(), told.as_str()), ("a😀b", "a😀b"));
        assert_eq!(answer.merge(&delta(2, 3, "x")).0, MergeResult::Gap);
        assert_eq!(answer.merge(&delta(2, 0, "new")).0, MergeResult::Whole);
        assert_eq!(answer.text, "new");
    }

    #[test]
    fn the_whole_answer_fills_what_is_missing() {
        let mut owner = RunningAnswer::begin(ModelRequestId::default(), 2);
        for piece in ["one ", "two ", "three"] {
            owner.say(DeltaKind::Text, piece.into());
        }
        let mut follower = RunningAnswer::begin(ModelRequestId::default(), 2);
        assert_eq!(follower.merge(&delta(2, 0, "one ")).0, MergeResult::Whole);
        let told = follower.adopt(&owner);
        assert_eq!((told[0].offset, told[0].text.as_str()), (4, "two three"));
        assert_eq!(follower, owner);
        assert!(follower.adopt(&owner).is_empty());
    }
}
