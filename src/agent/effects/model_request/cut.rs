//! Logs requests that hold less than the whole history (S0.12).

use crate::history::Window;
use crate::llm;
use crate::session::{Cut, SHORTEN_RESULTS};

/// Logs each change in how a request shows the history (S0.12). People see it as an event, with the answer.
pub(in crate::agent) fn log(shown: &Window) {
    let after = shown.size();
    if shown.shortened > 0 {
        tracing::info!(
            strategy = SHORTEN_RESULTS,
            results = shown.shortened,
            before.messages = after.messages,
            before.tokens = shown.whole_tokens,
            after.messages = after.messages,
            after.tokens = after.tokens,
            "Results of the running turn are shown in a short form"
        );
    }
    let Some(compacted) = &shown.compacted else {
        return;
    };
    tracing::info!(
        strategy = compacted.strategy,
        left = compacted.left,
        left_out = shown.left_out,
        before.messages = compacted.before.messages,
        before.tokens = compacted.before.tokens,
        after.messages = compacted.after.messages,
        after.tokens = compacted.after.tokens,
        "Earlier turns take less of the context"
    );
}

/// Logs that a request that was too long for the provider is repeated with less.
pub(in crate::agent) fn log_overflow(error: &llm::Error, cut: &Cut) {
    tracing::warn!(
        ?error,
        strategy = cut.kind.strategy(),
        before.messages = cut.before.messages,
        before.tokens = cut.before.tokens,
        after.messages = cut.after.messages,
        after.tokens = cut.after.tokens,
        "The request did not fit; less of the past is shown"
    );
}
