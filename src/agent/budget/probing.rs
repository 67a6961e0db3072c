//! Sends small requests that show whether a model answers. They belong to no session, but count against the
//! person's budgets and usage like any other request.

use std::sync::Arc;
use std::time::Duration;

use super::{Budgets, PacedProvider};
use crate::context::{self, AssembledRequest};
use crate::domain::{
    CommitId, Holder, Iteration, ModelRequestId, RequestParts, RequestPurpose, SessionId,
    SessionKey, TokenUsage, TurnId,
};
use crate::llm::catalogue::Model;
use crate::llm::{self, RetryConfig, tokens};
use crate::providers::Offer;
use crate::session::Refusal;
use crate::store::clock::now;
use crate::store::records::{EventPlace, Payer, RequestRow, UsageRows};

/// The approximate input tokens of a probe.
const INPUT_TOKENS: u64 = 16;

/// A probe to send.
pub struct Probe<'a> {
    pub offer: &'a Offer,
    pub model: Arc<Model>,
    pub request: AssembledRequest,
    /// The time limit of the model.
    pub patience: Duration,
}

/// The reason a model did not answer.
#[derive(Debug)]
pub enum ProbeError {
    /// A budget does not cover the request, so it was not sent.
    Unpaid(Refusal),
    Failed(llm::Error),
    /// The model exceeded the time limit.
    Late,
}

impl Budgets {
    /// Asks a model, if the person's budgets cover it, and stores the usage.
    pub async fn probe(&self, holder: &Holder, probe: Probe<'_>) -> Result<(), ProbeError> {
        let Probe {
            offer,
            model,
            request,
            patience,
        } = probe;
        let payer = payer(holder);
        let key = payer.key.clone();
        let gate = self.gate(payer);
        let mut provider = Arc::clone(&offer.provider);
        let warn = |_: String| {};
        if let Some(gate) = &gate {
            let admitted = gate
                .admit(
                    Arc::clone(&model),
                    INPUT_TOKENS,
                    crate::domain::MicroUsd::default(),
                    &warn,
                )
                .await;
            admitted.map_err(ProbeError::Unpaid)?;
            provider = Arc::new(PacedProvider::new(provider, Arc::clone(gate)));
        }
        let once = RetryConfig {
            max_retries: 0,
            ..RetryConfig::default()
        };
        let asked = context::ask(provider, request, once, |_| {});
        let asked = async {
            match &gate {
                Some(gate) => gate.cover(asked, &warn).await.map_err(ProbeError::Unpaid),
                None => Ok(asked.await),
            }
        };
        let asked = tokio::time::timeout(patience, asked).await;
        let estimated = |answer: &llm::Answer| tokens::estimated_of(INPUT_TOKENS, answer);
        let (answered, used) = match asked {
            Ok(Ok(Ok(answer))) => {
                let used = answer.usage.unwrap_or_else(|| estimated(&answer));
                (Ok(()), Some(used))
            }
            Ok(Ok(Err(llm::Failed { error, so_far }))) => {
                let answer = &so_far.answer;
                let has_said = !answer.text.is_empty() || !answer.reasoning.is_empty();
                let used = answer.usage.or_else(|| has_said.then(|| estimated(answer)));
                (Err(ProbeError::Failed(error)), used)
            }
            // The usage is unknown, but the model was asked.
            Ok(Err(unpaid)) => (Err(unpaid), Some(estimated(&llm::Answer::default()))),
            Err(_) => (
                Err(ProbeError::Late),
                Some(estimated(&llm::Answer::default())),
            ),
        };
        if let Some(used) = used {
            let row = self.row(holder, offer.id(), &model, used, answered.is_ok());
            let rows = UsageRows {
                requests: vec![row],
                ..UsageRows::default()
            };
            if let Err(error) = self.0.records.usage().add(&key, &rows, 0).await {
                tracing::warn!(%error, "What asking a model once used is not kept");
            }
        }
        answered
    }

    fn row(
        &self,
        holder: &Holder,
        provider: &str,
        model: &Model,
        usage: TokenUsage,
        is_answer: bool,
    ) -> RequestRow {
        let cost = model.price(&usage);
        RequestRow {
            place: EventPlace {
                commit: CommitId::from_bits(rand::random()),
                index: 0,
                at: now(),
                owner: holder.user.clone(),
            },
            turn: 0,
            iteration: 0,
            attempt: 1,
            purpose: RequestPurpose::Probe,
            is_answer,
            provider: provider.to_owned(),
            model: model.id.clone(),
            usage,
            cost,
            price_version: model.price_version().map(ToOwned::to_owned),
            charged: self.charge().filter(|_| cost.is_none()),
            parts: RequestParts::default(),
        }
    }
}

/// Makes a payer with a session id that no session has, so that concurrent probes reserve independently.
fn payer(holder: &Holder) -> Payer {
    Payer {
        key: SessionKey {
            tenant: holder.tenant.clone(),
            session: SessionId::from_bits(rand::random()),
        },
        owner: holder.user.clone(),
        request: Some(ModelRequestId {
            turn: TurnId(0),
            iteration: Iteration(0),
        }),
        session_since: now(),
        turn_since: now(),
        assistant: None,
    }
}
