//! Sends model requests beside the turn: for a title, the review of a call, or a server's sampling request.
//! Each is one question with one answer, paid for like any request of the session.

pub(super) mod review;
pub(super) mod sampling;
pub(super) mod title;

use std::sync::Arc;

use super::model_request::meter::{Meter, Subject};
use super::session_agent::SessionAgent;
use crate::agent::budget::PacedProvider;
use crate::agent::feed::{Feed, FeedItem, Notice};
use crate::context::{self, AssembledRequest, Context, RequestOptions};
use crate::domain::{CountedEntry, Effort, Entry, RequestParts, RequestPurpose};
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
pub(super) struct BackgroundQuestion<'a> {
    pub(super) purpose: RequestPurpose,
    pub(super) system: &'static str,
    pub(super) text: &'a str,
    /// The token limit of the answer, including reasoning.
    pub(super) max_tokens: u32,
}

/// A question as a request.
pub(super) struct BackgroundRequest {
    pub(super) purpose: RequestPurpose,
    pub(super) request: AssembledRequest,
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
        question: &BackgroundQuestion<'_>,
    ) -> Result<llm::Answer, NoAnswer> {
        let choice = &candidate.choice;
        let counter = self.agent.counter(choice);
        let request = self.request(choice, question);
        let parts = RequestParts {
            system: counter.text(question.system),
            message: counter.counted(&CountedEntry::new(Entry::message("user", question.text))),
            ..RequestParts::default()
        };
        let purpose = question.purpose;
        let asked = BackgroundRequest {
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
        asked: BackgroundRequest,
    ) -> Result<llm::Answer, NoAnswer> {
        let BackgroundRequest {
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
        let answer = self.answer(candidate, body, subject, tokens).await?;
        let usage = answer
            .usage
            .unwrap_or_else(|| llm::tokens::estimated_usage(&request, &answer));
        self.meter.spend(usage, &self.agent);
        Ok(answer)
    }

    fn request(&self, choice: &ModelChoice, question: &BackgroundQuestion<'_>) -> AssembledRequest {
        let longest = self.agent.longest_answer(choice);
        let most = question.max_tokens;
        let options = RequestOptions {
            model: choice.model.clone(),
            effort: Some(Effort::Off),
            max_tokens: Some(longest.map_or(most, |longest| longest.min(most))),
            max_output: longest,
            ..RequestOptions::default()
        };
        let contexts = [
            Context::user(question.text),
            Context::system(question.system),
        ];
        AssembledRequest::of(contexts, options)
    }

    /// Sends the request as far as budgets cover it.
    async fn answer(
        &self,
        candidate: &Candidate,
        request: AssembledRequest,
        subject: Subject<'_>,
        tokens: u64,
    ) -> Result<llm::Answer, NoAnswer> {
        let warn = |text| {
            let turn = self.payer.request.unwrap_or_default().turn;
            let notice = Notice::of_budget(text, turn);
            self.feed.announce(FeedItem::Notice(notice));
        };
        let gate = self.agent.parts.budgets.gate(self.payer.clone());
        let mut provider = Arc::clone(&candidate.provider);
        if let Some(gate) = &gate {
            let model = self.agent.describe(subject.choice);
            let admitted = gate.admit(model, tokens, self.meter.cost(), &warn).await;
            admitted.map_err(NoAnswer::Unpaid)?;
            provider = Arc::new(PacedProvider::new(provider, Arc::clone(gate)));
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
