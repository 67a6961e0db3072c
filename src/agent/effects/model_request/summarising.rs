//! Has a model write the summary before a request, if one is due (S0.15). A failure never fails the turn:
//! other strategies make room, and people are told.

use std::sync::Arc;

use super::meter::{Meter, Subject};
use crate::agent::budget::{Gate, PacedProvider, Warn};
use crate::agent::effects::session_agent::SessionAgent;
use crate::context::{self, AssembledRequest, Context, RequestOptions};
use crate::domain::{MicroUsd, RequestParts, RequestPurpose, TokenUsage};
use crate::history::{Due, Flaws};
use crate::llm::tokens::Counter;
use crate::llm::{self, ModelEvent, Progress};
use crate::providers::Candidate;
use crate::session::{ModelChoice, Refusal, SummarisedBy};

/// The reason there is no summary.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoSummary {
    #[error("it would take about {needed} tokens, and {budget} are allowed")]
    Budget { needed: u64, budget: u64 },
    #[error("{0}")]
    Unpaid(String),
    #[error("nobody can write it: {0}")]
    Nobody(String),
    #[error("the model that writes it failed: {0}")]
    Failed(llm::Error),
    #[error("it names what the conversation does not have: {0}")]
    Invented(String),
    #[error("it is empty or longer than what it stands for may be")]
    Size,
}

/// The progress of one summary.
struct Writing<'a> {
    due: &'a Due,
    candidate: Candidate,
    counter: Counter,
    /// The tokens left of the budget.
    left: u64,
    by: SummarisedBy,
}

/// Has summaries written for the requests of a session's model.
pub(super) struct Summariser<'a> {
    pub(super) agent: &'a SessionAgent,
    /// The session's model.
    pub(super) choice: &'a ModelChoice,
    /// The meter of the request, which also counts the summary.
    pub(super) meter: &'a Meter,
    /// The budget gate, if there is a budget, and the warning that it is about to run out.
    pub(super) gate: Option<(&'a Arc<Gate>, Warn<'a>)>,
}

impl Summariser<'_> {
    /// Returns a complete summary: what is still missing after the second try is appended.
    pub(super) async fn summary(&self, due: &Due) -> Result<(String, SummarisedBy), NoSummary> {
        let agent = self.agent;
        let choice = agent.summariser(self.choice, due);
        let providers = &agent.parts.providers;
        let candidates = providers.candidates(&agent.tenant, Some(&agent.owner), &choice);
        let candidates = candidates.map_err(|refusal| NoSummary::Nobody(refusal.message))?;
        let candidate = candidates.into_iter().next();
        let candidate = candidate.ok_or_else(|| NoSummary::Nobody("no provider".into()))?;
        let mut writing = Writing {
            due,
            counter: agent.counter(&candidate.choice),
            left: agent.parts.summary_budget,
            by: SummarisedBy {
                provider: candidate.choice.provider.clone(),
                model: candidate.choice.model.clone(),
                usage: TokenUsage::default(),
                cost: None,
            },
            candidate,
        };
        let mut text = self.write(&mut writing, None).await?;
        let mut flaws = due.flaws(&text);
        if !flaws.is_empty() {
            // If a second try would exceed the budget, use the first one, with a list of what it lacks.
            match self.write(&mut writing, Some(&flaws)).await {
                Ok(second) => {
                    flaws = due.flaws(&second);
                    text = second;
                }
                Err(NoSummary::Budget { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        if !flaws.invented.is_empty() {
            return Err(NoSummary::Invented(flaws.invented.join(", ")));
        }
        let text = Due::completed(&text, &flaws.missing);
        let tokens = writing.counter.of_text(&text);
        if text.is_empty() || tokens > due.max_tokens {
            return Err(NoSummary::Size);
        }
        Ok((text, writing.by))
    }

    /// Asks once. The usage is counted in the session, whatever the result.
    async fn write(
        &self,
        writing: &mut Writing<'_>,
        flaws: Option<&Flaws>,
    ) -> Result<String, NoSummary> {
        let agent = self.agent;
        let choice = &writing.candidate.choice;
        let (system, question) = (writing.due.system(), writing.due.question(flaws));
        let parts = RequestParts {
            system: writing.counter.of_text(&system),
            history: writing.counter.of_text(&question),
            ..RequestParts::default()
        };
        let text = parts.total();
        let needed = text + writing.due.max_tokens;
        if needed > writing.left {
            let budget = writing.left;
            return Err(NoSummary::Budget { needed, budget });
        }
        let subject = Subject {
            choice,
            parts: &parts,
            purpose: RequestPurpose::Compaction,
        };
        let body = self.body(choice, system, question);
        let answer = self.ask(&writing.candidate, body, subject, text).await?;
        let usage = answer.usage;
        let usage = usage.unwrap_or_else(|| llm::tokens::estimated_of(text, &answer));
        let spent = self.meter.spend(usage, agent);
        writing.left = writing.left.saturating_sub(usage.total());
        writing.by.usage = writing.by.usage.and(usage);
        let cost = spent.and_then(|spent| spent.cost);
        writing.by.cost = match (writing.by.cost, cost) {
            (Some(before), Some(cost)) => Some(MicroUsd(before.0.saturating_add(cost.0))),
            (before, cost) => before.or(cost),
        };
        Ok(answer.text)
    }

    fn body(&self, choice: &ModelChoice, system: String, question: String) -> AssembledRequest {
        let longest = self.agent.longest_answer(choice);
        let at_most = |most: u32| longest.map_or(most, |longest| most.min(longest));
        let options = RequestOptions {
            model: choice.model.clone(),
            max_tokens: self.agent.parts.max_tokens.map(at_most),
            max_output: longest,
            ..RequestOptions::default()
        };
        AssembledRequest::of([Context::user(question), Context::system(system)], options)
    }

    /// Asks as far as budgets cover it. The usage of a failure is counted.
    async fn ask(
        &self,
        candidate: &Candidate,
        body: AssembledRequest,
        subject: Subject<'_>,
        tokens: u64,
    ) -> Result<llm::Answer, NoSummary> {
        let agent = self.agent;
        let unpaid = |refusal: Refusal| NoSummary::Unpaid(refusal.message);
        let mut provider = Arc::clone(&candidate.provider);
        if let Some((gate, warn)) = self.gate {
            let model = agent.describe(subject.choice);
            let admitted = gate.admit(model, tokens, self.meter.cost(), warn).await;
            admitted.map_err(unpaid)?;
            provider = Arc::new(PacedProvider::new(provider, Arc::clone(gate)));
        }
        self.meter.asks(subject, tokens);
        let mut said = llm::Answer::default();
        let answer = context::ask(provider, body, agent.parts.retry, |progress| {
            self.meter.see(&progress, agent);
            if let Progress::Event(ModelEvent::Text(piece)) = &progress {
                said.text.push_str(piece);
            } else if let (Some((gate, _)), Progress::Retry { .. }) = (self.gate, &progress) {
                said.text.clear();
                gate.again(self.meter.cost());
            }
        });
        let answer = match self.gate {
            Some((gate, warn)) => gate.cover(answer, warn).await,
            None => Ok(answer.await),
        };
        let answer = answer.map_err(|refusal| {
            let used = llm::tokens::estimated_of(tokens, &said);
            self.meter.spend(used, agent);
            unpaid(refusal)
        })?;
        answer.map_err(|failed| {
            self.meter.fail(&failed.so_far, agent);
            NoSummary::Failed(failed.error)
        })
    }
}
