//! What a session has used, and what of it the model reads.

use crate::domain::Totals;
use crate::llm::tokens::Counter;

/// What the session has used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
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
    /// The `seq` that this reflects.
    pub seq: u64,
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
