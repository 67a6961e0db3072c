//! What a session has used, and what of it the model reads.

use std::sync::Arc;

use crate::domain::{MicroUsd, TokenUsage, Totals};
use crate::llm::catalogue::Model;
use crate::llm::tokens::Counter;
use crate::session::RequestFacts;

/// What the session has used.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UsageState {
    /// Since the session began.
    pub totals: Totals,
    /// Tokens that the last model request read.
    pub context_tokens: u64,
    /// About how many tokens of input the next request takes beside what is still to be said; none =
    /// nobody can tell.
    pub next_input: Option<u64>,
    /// Tokens that the model can read.
    pub window: u64,
    /// Whether that is what is assumed of a model that nobody described.
    pub is_window_assumed: bool,
    /// Whether the session reads as much as the model's window holds.
    pub reads_whole: bool,
    /// What of the conversation the model no longer reads.
    pub left_out: LeftOut,
    /// What counted it.
    pub counter: Counter,
    /// Who answered last, and what that request's tokens were for.
    pub last_request: Option<Arc<RequestFacts>>,
    /// What one more request would take; none = nothing was asked yet.
    pub going_on: Option<GoingOn>,
    /// The `seq` that this reflects.
    pub seq: u64,
}

/// What one more model request would take, by what the last one did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoingOn {
    /// Tokens that are sent again.
    pub tokens: u64,
    /// Those of them that the provider has probably cached.
    pub cached_tokens: u64,
    /// What it costs with an answer as long as the last one; none = the price is unknown.
    pub cost: Option<MicroUsd>,
}

impl GoingOn {
    /// After a request that used so much, at the price of that model: request and answer are sent again,
    /// and what the provider read from its cache or put there is there.
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

/// What fell out of the working context; the transcript has it all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    pub messages: u64,
    /// `seq` of the oldest message of a person that the model still reads.
    pub from_seq: Option<u64>,
    /// Whether more of it would be read with the whole window of the model.
    pub whole_reads_more: bool,
}
