//! Tracks the part of a running answer that was sent to one client.

use crate::agent::{Delta, DeltaKind, Notice, RunningAnswer, tail};
use crate::domain::ModelRequestId;
use crate::session::Event;

/// The part of a running answer that a client has, in UTF-16 code units.
#[derive(Default, PartialEq, Eq)]
pub(super) struct DeliveredAnswer {
    pub(super) answer: (ModelRequestId, u32),
    pub(super) text: usize,
    pub(super) reasoning: usize,
}

impl DeliveredAnswer {
    /// Returns the count for a delta's kind; another answer or attempt begins at 0.
    pub(super) fn units(&mut self, delta: &Delta) -> &mut usize {
        let answer = (delta.request(), delta.attempt);
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

    /// Returns the end of an answer whose event is sent now, if the client has only its beginning: the
    /// client fell behind while the answer ended, and the deltas are not stored.
    pub(super) fn rest(&mut self, event: &Event) -> Option<Delta> {
        if let Event::Thinking { .. } = event {
            *self = Self::default();
        }
        let (Event::Said { turn, text, .. } | Event::Answered { turn, text, .. }) = event else {
            return None;
        };
        let told = std::mem::take(self);
        let (request, attempt) = told.answer;
        if request.turn != *turn || told.text == 0 {
            return None;
        }
        let text = tail(text, told.text);
        (!text.is_empty()).then_some(Delta {
            turn: request.turn,
            iteration: request.iteration,
            attempt,
            offset: told.text,
            kind: DeltaKind::Text,
            text,
        })
    }

    /// Resets the counts when another attempt begins, which voids the text of the attempt before. The deltas
    /// of the next attempt may never be sent to this client, and the end of its answer is not the rest of
    /// the voided text.
    pub(super) fn heed(&mut self, notice: &Notice) {
        if notice.retry.is_some() {
            *self = Self::default();
        }
    }

    /// The state of a client that has the whole running answer.
    pub(super) fn all_of(answer: &RunningAnswer) -> Self {
        Self {
            answer: (answer.request(), answer.attempt),
            text: answer.text.encode_utf16().count(),
            reasoning: answer.reasoning.encode_utf16().count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::DeliveredAnswer;
    use crate::agent::Notice;
    use crate::domain::{Code, Iteration, ModelRequestId, TokenUsage, TurnId};
    use crate::session::Event;

    fn answered(turn: u64, text: &str) -> Event {
        Event::Answered {
            answered_by: None,
            turn: TurnId(turn),
            text: text.into(),
            model: "m".into(),
            usage: TokenUsage::default(),
            cost: None,
            request: None,
            duration_ms: 1,
            finish: "stop".into(),
            stop_detail: None,
            dropped_calls: 0,
            first_token_ms: None,
            native: None,
            reasoning: None,
        }
    }

    fn request(turn: u64) -> ModelRequestId {
        ModelRequestId {
            turn: TurnId(turn),
            iteration: Iteration(2),
        }
    }

    fn told_of(turn: u64, text: &str) -> DeliveredAnswer {
        DeliveredAnswer {
            answer: (request(turn), 3),
            text: text.encode_utf16().count(),
            reasoning: 0,
        }
    }

    #[test]
    fn the_end_of_an_answer_is_told_once_to_who_has_its_beginning() {
        let mut told = told_of(7, "a😀");
        let rest = told.rest(&answered(7, "a😀b")).unwrap();
        assert_eq!((rest.offset, rest.text.as_str()), (3, "b"));
        assert_eq!((rest.request(), rest.attempt), (request(7), 3));
        assert_eq!(told.rest(&answered(7, "a😀b")), None);
        for (turn, text) in [(8, "a"), (7, "ab"), (7, "")] {
            assert_eq!(told_of(turn, text).rest(&answered(7, "ab")), None);
        }
    }
    #[test]
    fn an_answer_is_not_the_rest_of_an_attempt_that_was_given_up() {
        let notice = |retry| Notice {
            text: "again".into(),
            code: "model_retry".into(),
            turn: TurnId(7),
            retry,
        };
        let mut told = told_of(7, "ab");
        told.heed(&notice(None));
        assert!(told.rest(&answered(7, "abc")).is_some());
        let mut told = told_of(7, "ab");
        told.heed(&notice(Some((
            3,
            4,
            Duration::from_secs(1),
            Code::ProviderRateLimited,
        ))));
        assert_eq!(told.rest(&answered(7, "cdef")), None);
    }
}
