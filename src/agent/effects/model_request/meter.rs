//! What a model request has used so far. Whoever stops the request reads it: nobody else will ever
//! count what was asked and never answered.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::agent::effects::session_agent::SessionAgent;
use crate::domain::{MicroUsd, RequestParts, RequestPurpose, TokenUsage};
use crate::llm::{self, ModelEvent, Progress, SoFar};
use crate::session::{ModelChoice, Reasoning, Spent};

/// What a request is about, as its row of what was used says it.
#[derive(Debug, Clone, Copy)]
pub(in crate::agent) struct Subject<'a> {
    pub(in crate::agent) choice: &'a ModelChoice,
    pub(in crate::agent) parts: &'a RequestParts,
    pub(in crate::agent) purpose: RequestPurpose,
}

/// What one model request of a turn has used, with every attempt of it.
#[derive(Debug, Default)]
pub(in crate::agent) struct Meter(Mutex<Metered>);

#[derive(Debug, Default)]
struct Metered {
    /// Attempts that became no answer.
    spent: Vec<Spent>,
    /// The attempt that is under way.
    running: Option<Attempt>,
    asked: Option<Asked>,
}

/// Who is asked, about how many tokens that takes, and what for.
#[derive(Debug, Clone)]
struct Asked {
    choice: ModelChoice,
    tokens: u64,
    parts: RequestParts,
    purpose: RequestPurpose,
}

impl Asked {
    fn subject(&self) -> Subject<'_> {
        Subject {
            choice: &self.choice,
            parts: &self.parts,
            purpose: self.purpose,
        }
    }
}

#[derive(Debug, Default)]
struct Attempt {
    /// What the provider has said that it used.
    reported: Option<TokenUsage>,
}

impl Meter {
    /// From here on a model is asked for this, with so many tokens.
    pub(in crate::agent) fn asks(&self, subject: Subject<'_>, tokens: u64) {
        let mut metered = self.metered();
        metered.running = None;
        metered.asked = Some(Asked {
            choice: subject.choice.clone(),
            tokens,
            parts: subject.parts.clone(),
            purpose: subject.purpose,
        });
    }

    /// Counts the attempts of the gateways that ran the request before and are gone. What they
    /// brought nobody knows any more, but they were asked.
    pub(in crate::agent) fn lose(&self, attempts: u32, agent: &SessionAgent) {
        let mut metered = self.metered();
        let Some(asked) = metered.asked.clone() else {
            return;
        };
        let lost = estimated(asked.tokens, &llm::Answer::default());
        let lost = agent.spent(asked.subject(), lost);
        let lost = std::iter::repeat_n(lost, attempts as usize);
        metered.spent.extend(lost);
    }

    /// Follows the request. Pieces of text cost nothing here.
    pub(in crate::agent) fn see(&self, progress: &Progress, agent: &SessionAgent) {
        match progress {
            Progress::Begins => self.metered().running = Some(Attempt::default()),
            Progress::Event(ModelEvent::Usage(usage)) => {
                if let Some(running) = &mut self.metered().running {
                    running.reported = Some(*usage);
                }
            }
            Progress::Event(_) => {}
            Progress::Retry { so_far, .. } => self.fail(so_far, agent),
        }
    }

    /// The attempt that was under way failed. One that brought nothing, and of which nothing was
    /// counted, is taken for free.
    pub(in crate::agent) fn fail(&self, so_far: &SoFar, agent: &SessionAgent) {
        let mut metered = self.metered();
        let (Some(_), Some(asked)) = (metered.running.take(), metered.asked.clone()) else {
            return;
        };
        let answer = &so_far.answer;
        let is_empty = answer.text.is_empty()
            && answer.reasoning.is_empty()
            && answer.calls.is_empty()
            && answer.dropped_calls == 0;
        if is_empty && answer.usage.is_none() {
            return;
        }
        let usage = unfinished(answer.usage, asked.tokens, answer);
        metered.spent.push(agent.spent(asked.subject(), usage));
    }

    /// The attempt that was under way brought an answer that is none of a turn.
    pub(in crate::agent) fn spend(&self, usage: TokenUsage, agent: &SessionAgent) -> Option<Spent> {
        let mut metered = self.metered();
        metered.running = None;
        let asked = metered.asked.clone()?;
        let spent = agent.spent(asked.subject(), usage);
        metered.spent.push(spent.clone());
        Some(spent)
    }

    /// What became no answer. Only one of those who read it is heard: whoever ends the request.
    pub(in crate::agent) fn spent(&self) -> Vec<Spent> {
        self.metered().spent.clone()
    }

    /// What that cost, as budgets count it.
    pub(in crate::agent) fn cost(&self) -> MicroUsd {
        let metered = self.metered();
        let costs = metered.spent.iter().map(|spent| {
            let charged = spent.request.as_ref().and_then(|facts| facts.charged);
            spent.cost.or(charged).map_or(0, |cost| cost.0)
        });
        MicroUsd(costs.fold(0, u64::saturating_add))
    }

    /// What became no answer of a request that is stopped here, with the attempt that was under way.
    pub(in crate::agent) fn stop(&self, so_far: &llm::Answer, agent: &SessionAgent) -> Vec<Spent> {
        let metered = self.metered();
        let mut spent = metered.spent.clone();
        if let (Some(running), Some(asked)) = (&metered.running, &metered.asked) {
            let usage = unfinished(running.reported, asked.tokens, so_far);
            spent.push(agent.spent(asked.subject(), usage));
        }
        spent
    }

    fn metered(&self) -> MutexGuard<'_, Metered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What people have seen of an answer that is being stopped.
pub(in crate::agent) fn seen(text: Option<&str>, reasoning: Option<&Reasoning>) -> llm::Answer {
    llm::Answer {
        text: text.unwrap_or_default().to_owned(),
        reasoning: reasoning.map_or_else(String::new, |reasoning| reasoning.text.clone()),
        ..llm::Answer::default()
    }
}

/// What an answer used that did not come to its end: what the provider counted of it, and of what was
/// said since an estimate.
fn unfinished(reported: Option<TokenUsage>, tokens: u64, so_far: &llm::Answer) -> TokenUsage {
    let estimate = estimated(tokens, so_far);
    reported.map_or(estimate, |reported| TokenUsage {
        output_tokens: reported.output_tokens.max(estimate.output_tokens),
        reasoning_tokens: reported.reasoning_tokens.max(estimate.reasoning_tokens),
        is_estimated: reported.is_estimated || estimate.output_tokens > reported.output_tokens,
        ..reported
    })
}

pub(in crate::agent::effects) fn estimated(tokens: u64, answer: &llm::Answer) -> TokenUsage {
    llm::tokens::estimated_of(tokens, answer)
}
