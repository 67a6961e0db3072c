//! What is measured of a model request: for the operator's figures, for traces, and for people.

use std::time::{Duration, Instant};

use super::trace::RequestSpan;
use crate::llm::{self, ModelEvent, Progress};
use crate::telemetry::instruments;

/// Measures how long a model thinks aloud before it says or asks something. The clock is read twice.
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
            Progress::Event(ModelEvent::Reasoning(_)) => {
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
        self.took
            .map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX))
    }
}

/// Measures one model request. A piece after the first costs one comparison.
pub(super) struct Watch {
    provider: &'static str,
    since: Instant,
    is_silent: bool,
    /// The same for traces.
    span: Option<RequestSpan>,
}

impl Watch {
    pub(super) fn start(kind: llm::ProviderKind, span: Option<RequestSpan>) -> Self {
        Self {
            provider: kind.as_str(),
            since: Instant::now(),
            is_silent: true,
            span,
        }
    }

    pub(super) fn see(&mut self, progress: &Progress) {
        match progress {
            Progress::Begins => {}
            Progress::Event(_) if !self.is_silent => {}
            Progress::Event(_) => {
                self.is_silent = false;
                instruments().first_token(self.provider, self.since.elapsed());
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

    pub(super) fn end(self, answer: &Result<llm::Answer, llm::Failed>) {
        let outcome = if answer.is_ok() { "answered" } else { "failed" };
        instruments().model_asked(self.provider, outcome, self.since.elapsed());
        if let Some(span) = self.span {
            span.end(answer);
        }
    }
}
