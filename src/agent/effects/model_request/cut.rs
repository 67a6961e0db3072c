//! What is said of a request that holds less than there is: in the log, and to whoever watches (S0.12).

use crate::agent::feed::{Feed, Notice, What};
use crate::domain::TurnId;
use crate::history::Window;
use crate::llm;
use crate::session::{ContextSize, Cut, SHORTEN_RESULTS};

/// Says in the log what of the past the request does not hold, and tells whoever watches of older
/// entries that fell out (S0.12). That results are short is an event of the answer.
pub(in crate::agent) fn tell(feed: &Feed, (turn, entries): (TurnId, usize), shown: &Window) {
    let after = ContextSize {
        messages: shown.entries.len() as u64,
        tokens: shown.tokens,
    };
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
    if shown.left_out == 0 {
        return;
    }
    let before = ContextSize {
        messages: entries as u64,
        tokens: shown.left_out_tokens.saturating_add(shown.whole_tokens),
    };
    tracing::info!(
        strategy = "delete-old",
        left_out = shown.left_out,
        before.messages = before.messages,
        before.tokens = before.tokens,
        after.messages = after.messages,
        after.tokens = after.tokens,
        "Older entries do not fit and were left out"
    );
    let (left_out, tokens) = (shown.left_out, shown.left_out_tokens);
    feed.announce(What::Notice(Notice {
        text: format!(
            "Older messages do not fit and are not read: {left_out}, about {tokens} tokens"
        ),
        code: "context_left_out".into(),
        turn,
        retry: None,
        cut: Some((before, after)),
    }));
}

/// A request that the provider found too long is asked again with less.
pub(in crate::agent) fn log_overflow(error: &llm::Error, cut: &Cut) {
    tracing::warn!(
        ?error,
        is_shortening = cut.is_shortening,
        before.messages = cut.before.messages,
        before.tokens = cut.before.tokens,
        after.messages = cut.after.messages,
        after.tokens = cut.after.tokens,
        "The request did not fit; less of the past is shown"
    );
}
