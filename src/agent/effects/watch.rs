//! Measures model requests: for metrics, for traces, and for people.

use std::time::{Duration, Instant};

use super::trace::RequestSpan;
use crate::llm::{self, ModelEvent, Progress};
use crate::telemetry::instruments;

/// Measures how long a model streams reasoning before anything else. Reads the clock only twice.
#[derive(Default)]
pub(super) struct Thinking {
    since: Option<Instant>,
    took: Option<Duration>,
}

impl Thinking {
    pub(super) fn see(&mut self, progress: &Progress) {
        match progress {
            Progress::Begins => {}
            Progress::Retry { .. } => *self = Self::default(),
            Progress::Event(ModelEvent::Reasoning(_) | ModelEvent::TextWasReasoning) => {
                self.since.get_or_insert_with(Instant::now);
            }
            Progress::Event(_) => {
                if let Some(since) = self.since {
                    self.took.get_or_insert_with(|| since.elapsed());
                }
            }
        }
    }

    pub(super) fn took_ms(&self) -> Option<u64> {
        self.took.map(whole_ms)
    }
}

fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Measures one model request. Each piece after the first costs one comparison.
pub(super) struct Watch {
    provider: &'static str,
    since: Instant,
    /// The time from the start to the first piece.
    first: Option<Duration>,
    /// The span for traces.
    span: Option<RequestSpan>,
}

impl Watch {
    pub(super) fn start(kind: llm::ProviderKind, span: Option<RequestSpan>) -> Self {
        Self {
            provider: kind.as_str(),
            since: Instant::now(),
            first: None,
            span,
        }
    }

    pub(super) fn see(&mut self, progress: &Progress) {
        match progress {
            Progress::Begins => {}
            Progress::Event(_) if self.first.is_some() => {}
            Progress::Event(event) if !event.is_said() => {}
            Progress::Event(_) => {
                let first = self.since.elapsed();
                self.first = Some(first);
                instruments().first_token(self.provider, first);
                if let Some(span) = &mut self.span {
                    span.answers();
                }
            }
            Progress::Retry { attempt, code, .. } => {
                instruments().model_retried(self.provider);
                if let Some(span) = &mut self.span {
                    span.retries(*attempt, *code);
                }
            }
        }
    }

    /// Ends the measurement, and returns the time to the first piece in milliseconds.
    pub(super) fn end(self, answer: &Result<llm::Answer, llm::Failed>) -> Option<u64> {
        let outcome = if answer.is_ok() { "answered" } else { "failed" };
        instruments().model_asked(self.provider, outcome, self.since.elapsed());
        if let Some(span) = self.span {
            span.end(answer);
        }
        self.first.map(whole_ms)
    }
}
