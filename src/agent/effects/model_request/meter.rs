//! Counts the usage of a model request. A request that is stopped reads its usage here, because no provider
//! will report it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::agent::effects::session_agent::SessionAgent;
use crate::domain::{MicroUsd, RequestParts, RequestPurpose, TokenUsage};
use crate::llm::{self, ModelEvent, Progress, SoFar};
use crate::session::{AttemptUsage, Control, ModelChoice, Phase, Reasoning, RequestFacts};

/// The subject of a request, for its usage row.
#[derive(Debug, Clone, Copy)]
pub(in crate::agent) struct Subject<'a> {
    pub(in crate::agent) choice: &'a ModelChoice,
    pub(in crate::agent) parts: &'a RequestParts,
    pub(in crate::agent) purpose: RequestPurpose,
}

/// The usage of one model request of a turn, with all its attempts.
#[derive(Debug, Default)]
pub(in crate::agent) struct Meter(Mutex<MeterState>);

#[derive(Debug, Default)]
struct MeterState {
    /// The failed attempts.
    spent: Vec<AttemptUsage>,
    /// The running attempt.
    running: Option<Attempt>,
    asked: Option<MeteredRequest>,
}

/// The model that is asked, the approximate tokens of the request, and their composition.
#[derive(Debug, Clone)]
struct MeteredRequest {
    choice: ModelChoice,
    tokens: u64,
    parts: RequestParts,
    purpose: RequestPurpose,
}

impl MeteredRequest {
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
    /// The usage that the provider reported.
    reported: Option<TokenUsage>,
}

impl Meter {
    /// Begins a request to a model, with so many input tokens.
    pub(in crate::agent) fn asks(&self, subject: Subject<'_>, tokens: u64) {
        let mut metered = self.metered();
        metered.running = None;
        metered.asked = Some(MeteredRequest {
            choice: subject.choice.clone(),
            tokens,
            parts: subject.parts.clone(),
            purpose: subject.purpose,
        });
    }

    /// Counts the attempts of earlier gateways that are gone. Their answers are unknown, but the requests
    /// were sent.
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

    /// Follows the progress of the request. Pieces of text cost nothing here.
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

    /// Ends the running attempt as failed. An attempt without output or reported usage counts as free.
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

    /// Ends the running attempt with an answer that does not become part of a turn.
    pub(in crate::agent) fn spend(
        &self,
        usage: TokenUsage,
        agent: &SessionAgent,
    ) -> Option<AttemptUsage> {
        let mut metered = self.metered();
        metered.running = None;
        let asked = metered.asked.clone()?;
        let spent = agent.spent(asked.subject(), usage);
        metered.spent.push(spent.clone());
        Some(spent)
    }

    /// Returns the usage of failed attempts. If several readers see it, only the one that ends the request
    /// reports it.
    pub(in crate::agent) fn spent(&self) -> Vec<AttemptUsage> {
        self.metered().spent.clone()
    }

    /// Returns their cost, as budgets count it.
    pub(in crate::agent) fn cost(&self) -> MicroUsd {
        let metered = self.metered();
        let costs = metered.spent.iter().map(|spent| {
            let charged = spent.request.as_ref().and_then(|facts| facts.charged);
            spent.cost.or(charged).map_or(0, |cost| cost.0)
        });
        MicroUsd(costs.fold(0, u64::saturating_add))
    }

    /// Returns the usage of all attempts, including the running one, of a request that is stopped.
    pub(in crate::agent) fn stop(
        &self,
        so_far: &llm::Answer,
        agent: &SessionAgent,
    ) -> Vec<AttemptUsage> {
        let metered = self.metered();
        let mut spent = metered.spent.clone();
        if let (Some(running), Some(asked)) = (&metered.running, &metered.asked) {
            let usage = unfinished(running.reported, asked.tokens, so_far);
            spent.push(agent.spent(asked.subject(), usage));
        }
        spent
    }

    fn metered(&self) -> MutexGuard<'_, MeterState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionAgent {
    /// Returns the facts about an attempt besides its usage.
    pub(in crate::agent) fn facts(
        &self,
        subject: Subject<'_>,
        usage: &TokenUsage,
    ) -> Arc<RequestFacts> {
        let Subject {
            choice,
            parts,
            purpose,
        } = subject;
        let model = self.describe(choice);
        let version = model.price_version();
        let is_unpriced = model.price(usage).is_none();
        Arc::new(RequestFacts {
            charged: self.parts.budgets.charge().filter(|_| is_unpriced),
            provider: choice.provider.clone(),
            model: choice.model.clone(),
            price_version: version.map(ToOwned::to_owned),
            parts: parts.clone().scaled_to(usage.input_tokens),
            purpose,
        })
    }

    /// Returns the usage of an attempt, at the price of its model.
    pub(in crate::agent) fn spent(&self, subject: Subject<'_>, usage: TokenUsage) -> AttemptUsage {
        AttemptUsage {
            usage,
            cost: self.describe(subject.choice).price(&usage),
            request: Some(self.facts(subject, &usage)),
        }
    }

    /// Estimates the usage of a request that runs at another gateway: its input tokens, once for each gateway
    /// that sent it.
    pub(in crate::agent) fn spent_elsewhere(
        &self,
        control: &Control,
        choice: &ModelChoice,
        tokens: u64,
        parts: &RequestParts,
        so_far: &llm::Answer,
    ) -> Vec<AttemptUsage> {
        let turn = control.turn.as_ref();
        let Some(turn) = turn.filter(|turn| turn.phase == Phase::Asking) else {
            return Vec::new();
        };
        let nothing = llm::Answer::default();
        let lost = std::iter::repeat_n(&nothing, turn.restarts as usize);
        let attempts = lost.chain(std::iter::once(so_far));
        let subject = Subject {
            choice,
            parts,
            purpose: RequestPurpose::Turn,
        };
        let spent = attempts.map(|answer| self.spent(subject, estimated(tokens, answer)));
        spent.collect()
    }
}

/// Returns the answer as people have seen it when it is stopped.
pub(in crate::agent) fn seen(text: Option<&str>, reasoning: Option<&Reasoning>) -> llm::Answer {
    llm::Answer {
        text: text.unwrap_or_default().to_owned(),
        reasoning: reasoning.map_or_else(String::new, |reasoning| reasoning.text.clone()),
        ..llm::Answer::default()
    }
}

/// Returns the usage of an incomplete answer: the provider's count so far, or our estimate of the output if
/// that is higher.
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
