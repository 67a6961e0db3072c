//! Sends model requests beside the turn: for a title, the review of a call, or a server's sampling request.
//! Each is one question with one answer, paid for like any request of the session.

pub(super) mod review;
pub(super) mod sampling;
pub(super) mod title;

use std::sync::Arc;

use super::model_request::meter::{Meter, Subject};
use super::session_agent::SessionAgent;
use crate::agent::budget::Paced;
use crate::agent::feed::{Feed, Notice, What};
use crate::context::{self, Assembled, Context, Manner};
use crate::domain::{Effort, Entry, RequestParts, RequestPurpose, Weighed};
use crate::llm::{self, Progress, RetryConfig};
use crate::providers::Candidate;
use crate::session::{ModelChoice, Refusal};
use crate::store::records::Payer;

/// The reason a model gave no answer.
pub(super) enum NoAnswer {
    Failed(llm::Failed),
    Unpaid(Refusal),
}

/// A question.
pub(super) struct Aside<'a> {
    pub(super) purpose: RequestPurpose,
    pub(super) system: &'static str,
    pub(super) text: &'a str,
    /// The token limit of the answer, including reasoning.
    pub(super) max_tokens: u32,
}

/// A question as a request.
pub(super) struct Asked {
    pub(super) purpose: RequestPurpose,
    pub(super) request: Assembled,
    /// The composition of its tokens.
    pub(super) parts: RequestParts,
}

/// Asks models on behalf of a session.
pub(super) struct Asker {
    pub(super) agent: SessionAgent,
    /// The payer of the requests.
    pub(super) payer: Payer,
    /// The feed that shows budget warnings.
    pub(super) feed: Arc<Feed>,
    pub(super) meter: Meter,
}

impl Asker {
    pub(super) fn new(agent: SessionAgent, payer: Payer, feed: Arc<Feed>) -> Self {
        Self {
            agent,
            payer,
            feed,
            meter: Meter::default(),
        }
    }

    /// Asks one model. The meter counts the usage of an answer; the caller counts that of a failure.
    pub(super) async fn ask(
        &self,
        candidate: &Candidate,
        aside: &Aside<'_>,
    ) -> Result<llm::Answer, NoAnswer> {
        let choice = &candidate.choice;
        let counter = self.agent.counter(choice);
        let request = self.request(choice, aside);
        let parts = RequestParts {
            system: counter.text(aside.system),
            message: counter.counted(&Weighed::new(Entry::message("user", aside.text))),
            ..RequestParts::default()
        };
        let purpose = aside.purpose;
        let asked = Asked {
            purpose,
            request,
            parts,
        };
        self.put(candidate, asked).await
    }

    /// Sends any request.
    pub(super) async fn put(
        &self,
        candidate: &Candidate,
        asked: Asked,
    ) -> Result<llm::Answer, NoAnswer> {
        let Asked {
            purpose,
            request,
            parts,
        } = asked;
        let choice = &candidate.choice;
        let subject = Subject {
            choice,
            parts: &parts,
            purpose,
        };
        let tokens = self.agent.counter(choice).corrected(parts.total());
        let body = request.clone();
        let answer = self.answer(candidate, body, (subject, tokens)).await?;
        let usage = answer
            .usage
            .unwrap_or_else(|| llm::tokens::estimated_usage(&request, &answer));
        self.meter.spend(usage, &self.agent);
        Ok(answer)
    }

    fn request(&self, choice: &ModelChoice, aside: &Aside<'_>) -> Assembled {
        let longest = self.agent.longest_answer(choice);
        let most = aside.max_tokens;
        let manner = Manner {
            model: choice.model.clone(),
            effort: Some(Effort::Off),
            max_tokens: Some(longest.map_or(most, |longest| longest.min(most))),
            max_output: longest,
            ..Manner::default()
        };
        let contexts = [Context::user(aside.text), Context::system(aside.system)];
        Assembled::of(contexts, manner)
    }

    /// Sends the request as far as budgets cover it.
    async fn answer(
        &self,
        candidate: &Candidate,
        request: Assembled,
        (subject, tokens): (Subject<'_>, u64),
    ) -> Result<llm::Answer, NoAnswer> {
        let warn = |text| {
            let turn = self.payer.request.unwrap_or_default().turn;
            let notice = Notice::of_budget(text, turn);
            self.feed.announce(What::Notice(notice));
        };
        let gate = self.agent.parts.budgets.gate(self.payer.clone());
        let mut provider = Arc::clone(&candidate.provider);
        if let Some(gate) = &gate {
            let of = (self.agent.describe(subject.choice), tokens);
            let admitted = gate.admit(of, self.meter.cost(), &warn).await;
            admitted.map_err(NoAnswer::Unpaid)?;
            provider = Arc::new(Paced::new(provider, Arc::clone(gate)));
        }
        self.meter.asks(subject, tokens);
        let retry = RetryConfig {
            max_retries: self.agent.parts.retry.max_retries.min(1),
            ..self.agent.parts.retry
        };
        let asked = context::ask(provider, request, retry, |progress| {
            self.meter.see(&progress, &self.agent);
            if let (Some(gate), Progress::Retry { .. }) = (&gate, &progress) {
                gate.again(self.meter.cost());
            }
        });
        let asked = match &gate {
            Some(gate) => gate.cover(asked, &warn).await.map_err(NoAnswer::Unpaid)?,
            None => asked.await,
        };
        asked.map_err(NoAnswer::Failed)
    }
}
