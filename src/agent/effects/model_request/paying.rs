//! Applies budgets to answers: cuts an answer when a budget is used up, and limits its length to what one
//! covers.

use super::meter::seen;
use super::{ModelRequest, PreparedRequest};
use crate::agent::budget::Ceiling;
use crate::agent::feed::running_answer::RunningAnswer;
use crate::agent::feed::{FeedItem, Notice};
use crate::history;
use crate::llm;
use crate::session::{Answer, Failure, Reasoning, Refusal};

/// The answer length from which on a limit is not worth a notice.
const SHORT: u32 = 4_096;

/// The reason a candidate gave no answer.
pub(super) enum NoAnswer {
    Failed(llm::Failed),
    /// A budget is used up, and there is no text to keep.
    Stopped(Failure),
}

/// Makes the failure if nobody can be asked. It is retryable, because a key may be added or another model
/// chosen.
pub(super) fn unanswered(refusal: Refusal) -> Failure {
    Failure {
        code: refusal.code,
        text: refusal.message,
        is_retryable: true,
        spent: Vec::new(),
    }
}

/// Shows that the answer has to be short.
pub(super) fn announce_ceiling(request: &ModelRequest, ceiling: Option<&Ceiling>) {
    let Some(ceiling) = ceiling.filter(|ceiling| ceiling.tokens < SHORT) else {
        return;
    };
    tracing::info!(tokens = ceiling.tokens, "A budget shortens an answer");
    let notice = Notice::of_budget(ceiling.words(), request.request.turn);
    request.feed.announce(FeedItem::Notice(Notice {
        code: "answer_limited".into(),
        ..notice
    }));
}

/// Returns the refusal that explains why an answer ended at a limit that a budget set. An answer that is only
/// hidden reasoning counts as none. Calls that were cut are left for the model to ask again.
pub(super) fn limit(
    request: &ModelRequest,
    asked: &PreparedRequest,
    answer: &llm::Answer,
) -> Result<Option<Refusal>, NoAnswer> {
    let is_ended = answer.finish == Some(llm::Finish::Length) && answer.calls.is_empty();
    let Some(ceiling) = asked.ceiling.as_ref().filter(|_| is_ended) else {
        return Ok(None);
    };
    let refusal = ceiling.refusal();
    tracing::info!(%refusal, "An answer ends where its budget does");
    if !answer.text.is_empty() {
        return Ok(Some(refusal));
    }
    let estimated = || llm::tokens::estimated_of(asked.tokens, answer);
    let usage = answer.usage.unwrap_or_else(estimated);
    request.meter.spend(usage, &request.agent);
    Err(NoAnswer::Stopped(Failure {
        spent: request.meter.spent(),
        ..unanswered(refusal)
    }))
}

/// Marks an answer with the budget that ended it, if one did.
pub(super) fn ended_by(limit: Option<Refusal>, answer: Answer) -> Answer {
    match limit {
        None => answer,
        Some(refusal) => Answer {
            finish: refusal.code.as_str().to_owned(),
            stop_detail: Some(refusal.message),
            ..answer
        },
    }
}

/// Makes an answer of one that a budget cut: its text so far is kept, and a person may let the model
/// continue. If there is no text, there is no answer.
pub(super) fn cut(
    request: &ModelRequest,
    refusal: &Refusal,
    took_ms: Option<u64>,
    shown: &history::Window,
) -> Result<Answer, NoAnswer> {
    tracing::info!(%refusal, "An answer is cut by a budget");
    let said = request.feed.running_answer();
    let said = said.filter(|said| said.request() == request.request);
    let (text, thought) = said.map_or((None, None), RunningAnswer::into_parts);
    let so_far = seen(text.as_deref(), thought.as_ref());
    let mut spent = request.meter.stop(&so_far, &request.agent);
    let text = text.unwrap_or_default();
    let own = if text.is_empty() { None } else { spent.pop() };
    let Some(own) = own else {
        return Err(NoAnswer::Stopped(Failure {
            spent,
            ..unanswered(refusal.clone())
        }));
    };
    let answer = Answer {
        text,
        reasoning: thought.and_then(|thought| Reasoning::of(thought.text, took_ms)),
        calls: Vec::new(),
        dropped_calls: 0,
        shortened: None,
        compacted: shown.compacted.clone(),
        compacted_by_vendor: None,
        native: None,
        usage: own.usage,
        cost: own.cost,
        request: own.request,
        first_token_ms: None,
        finish: String::new(),
        stop_detail: None,
        answered_by: None,
        spent,
    };
    Ok(ended_by(Some(refusal.clone()), answer))
}
