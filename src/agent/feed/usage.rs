//! Reports the usage of a session, and how much of it the model reads.

use std::sync::Arc;

use crate::domain::{MicroUsd, TokenUsage, Totals};
use crate::llm::catalogue::Model;
use crate::llm::tokens::Counter;
use crate::session::RequestFacts;

/// The usage of the session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UsageState {
    /// The totals since the session began.
    pub totals: Totals,
    /// Input tokens of the last model request.
    pub context_tokens: u64,
    /// The approximate input tokens of the next request, without the next message; `None` if unknown.
    pub next_input: Option<u64>,
    /// The model's window in tokens.
    pub window: u64,
    /// True if the window is the assumed one of a model without a description.
    pub is_window_assumed: bool,
    /// True if the session reads as much as the model's window holds.
    pub reads_whole: bool,
    /// The part of the conversation that the model no longer reads.
    pub left_out: OmittedHistory,
    /// The counter that produced the numbers.
    pub counter: Counter,
    /// The model that answered last, and the composition of that request's tokens.
    pub last_request: Option<Arc<RequestFacts>>,
    /// The cost of one more request; `None` if none was made yet.
    pub going_on: Option<GoingOn>,
    /// The `seq` of this state.
    pub seq: u64,
}

/// The expected cost of one more model request, based on the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoingOn {
    /// Tokens that are sent again.
    pub tokens: u64,
    /// The part of them that the provider probably has cached.
    pub cached_tokens: u64,
    /// The cost with an answer as long as the last one; `None` if the price is unknown.
    pub cost: Option<MicroUsd>,
}

impl GoingOn {
    /// Estimates the next request from the usage of the last one and the model's price: request and answer
    /// are sent again, and tokens that the provider read from or wrote to its cache are cached.
    pub fn after(last: &TokenUsage, model: &Model) -> Option<Self> {
        if last.input_tokens == 0 {
            return None;
        }
        let cached = last.cached_tokens.saturating_add(last.cache_write_tokens);
        let next = TokenUsage {
            input_tokens: last.total(),
            cached_tokens: cached.min(last.input_tokens),
            output_tokens: last.output_tokens,
            reasoning_tokens: last.reasoning_tokens,
            ..TokenUsage::default()
        };
        Some(Self {
            tokens: next.input_tokens,
            cached_tokens: next.cached_tokens,
            cost: model.price(&next),
        })
    }
}

/// The part of the history outside of the working context; the transcript has all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OmittedHistory {
    pub messages: u64,
    /// `seq` of the oldest message of a person that the model still reads.
    pub from_seq: Option<u64>,
    /// True if the whole window of the model would hold more of it.
    pub whole_reads_more: bool,
}
