//! What budgets make of an answer: it is cut where one is used up, or asked to be as short as one covers.

use super::meter::seen;
use super::{Asked, ModelRequest};
use crate::agent::budget::Ceiling;
use crate::agent::feed::running_answer::RunningAnswer;
use crate::agent::feed::{Notice, What};
use crate::history;
use crate::llm;
use crate::session::{Answer, Failure, Reasoning, Refusal};

/// Answers that may be longer are what people are used to.
const SHORT: u32 = 4_096;

/// Why one of those that were asked gave no answer.
pub(super) enum NoAnswer {
    Failed(llm::Failed),
    /// A budget is spent, and nothing was said.
    Stopped(Failure),
}

/// Why nobody can be asked: asking again helps once there is a key, or another choice.
pub(super) fn unanswered(refusal: Refusal) -> Failure {
    Failure {
        code: refusal.code,
        text: refusal.message,
        is_retryable: true,
        spent: Vec::new(),
    }
}

/// Tells people that the answer has to be a short one.
pub(super) fn tell(request: &ModelRequest, ceiling: Option<&Ceiling>) {
    let Some(ceiling) = ceiling.filter(|ceiling| ceiling.tokens < SHORT) else {
        return;
    };
    tracing::info!(tokens = ceiling.tokens, "A budget shortens an answer");
    let notice = Notice::of_budget(ceiling.words(), request.request.turn);
    request.feed.announce(What::Notice(Notice {
        code: "answer_limited".into(),
        ..notice
    }));
}

/// What ended an answer at its longest, where a budget had made that less. An answer of which nothing was
/// said but hidden thoughts is none. Calls that were cut are for the model to ask again.
pub(super) fn limit(
    request: &ModelRequest,
    asked: &Asked,
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

/// An answer that says what ended it, if a budget did.
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

/// An answer that a budget has cut: what was said of it is kept, and a person may let the model go
/// on from there. One of which nothing was said is none.
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
