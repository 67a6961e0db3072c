//! Probes a model with a small real request, which shows whether it answers (S2.54).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::agent::{Budgets, Probe, ProbeError};
use crate::context::{AssembledRequest, Context, RequestOptions};
use crate::domain::{Holder, TenantId};
use crate::llm::catalogue::Model;
use crate::llm::{self, ProviderKind, Refusal};
use crate::providers::Offer;

/// The most concurrent probes, over all tenants.
const SIDE_BY_SIDE: usize = 4;
/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// The time for which a result is reused: asking again within it costs nothing.
const KEPT: Duration = Duration::from_mins(1);

/// Probes models, a limited number at once.
pub(super) struct Prober {
    turns: Semaphore,
    /// Never held across an await.
    kept: Mutex<Vec<CachedProbe>>,
}

/// Pays for probes.
#[async_trait]
pub(super) trait Payer: Send + Sync {
    /// The tenant that pays.
    fn tenant(&self) -> &TenantId;

    /// Makes the request of a probe.
    async fn ask(&self, probe: Probe<'_>) -> Result<(), ProbeError>;
}

/// A person pays from their budgets.
#[async_trait]
impl Payer for (Budgets, Holder) {
    fn tenant(&self) -> &TenantId {
        &self.1.tenant
    }

    async fn ask(&self, probe: Probe<'_>) -> Result<(), ProbeError> {
        self.0.probe(&self.1, probe).await
    }
}

/// The cached result for one model of a provider and one tenant. A changed provider gets a new entry.
struct CachedProbe {
    tenant: TenantId,
    offer: Arc<Offer>,
    model: String,
    asked_at: Instant,
    slot: Arc<Slot>,
}

/// Locked while the model is asked, so that many concurrent requests ask it once.
type Slot = tokio::sync::Mutex<Option<(Instant, Verdict)>>;

/// The result of a probe.
#[derive(Debug, Clone)]
pub(super) struct Verdict {
    /// The time that the request took, without the wait for a permit.
    pub(super) latency: Duration,
    /// The reason why the model did not answer.
    pub(super) problem: Option<String>,
    /// True if the provider has no such model.
    is_unknown: bool,
}

impl Verdict {
    /// Returns the name of the status on the wire.
    pub(super) fn status(&self) -> &'static str {
        match self {
            Self { problem: None, .. } => "available",
            Self {
                is_unknown: true, ..
            } => "not_found",
            Self { .. } => "error",
        }
    }
}

impl Default for Prober {
    fn default() -> Self {
        Self {
            turns: Semaphore::new(SIDE_BY_SIDE),
            kept: Mutex::default(),
        }
    }
}

impl Prober {
    /// Asks a model for a minimal answer, unless it was asked for the same tenant within the last minute.
    pub(super) async fn probe(
        &self,
        payer: &dyn Payer,
        offer: &Arc<Offer>,
        model: Arc<Model>,
    ) -> Verdict {
        let slot = self.slot(payer.tenant(), offer, &model.id);
        let mut kept = slot.lock().await;
        if let Some((since, verdict)) = kept.as_ref()
            && since.elapsed() < KEPT
        {
            return verdict.clone();
        }
        // The semaphore is never closed.
        let _turn = self.turns.acquire().await.ok();
        let began = Instant::now();
        let probe = Probe {
            offer,
            request: request(offer.provider.kind(), &model.id),
            model,
            patience: PATIENCE,
        };
        let answered = payer.ask(probe).await;
        let is_unpaid = matches!(answered, Err(ProbeError::Unpaid(_)));
        let (problem, is_unknown) = match answered {
            Ok(()) => (None, false),
            Err(ProbeError::Unpaid(refusal)) => (Some(refusal.message), false),
            Err(ProbeError::Failed(error)) => {
                let is_unknown = matches!(
                    error,
                    llm::Error::Rejected {
                        refusal: Refusal::Address,
                        ..
                    }
                );
                (Some(error.to_string()), is_unknown)
            }
            Err(ProbeError::Late) => {
                let text = format!("it did not answer within {} s", PATIENCE.as_secs());
                (Some(text), false)
            }
        };
        let verdict = Verdict {
            latency: began.elapsed(),
            problem,
            is_unknown,
        };
        // A request that no budget covered was not made, so its result is not cached.
        *kept = (!is_unpaid).then(|| (Instant::now(), verdict.clone()));
        verdict
    }

    /// Returns the slot of a model, and drops unused slots that were last requested over two minutes ago.
    fn slot(&self, tenant: &TenantId, offer: &Arc<Offer>, model: &str) -> Arc<Slot> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|it| Arc::strong_count(&it.slot) > 1 || it.asked_at.elapsed() < 2 * KEPT);
        let known = kept
            .iter_mut()
            .find(|it| it.tenant == *tenant && it.model == model && Arc::ptr_eq(&it.offer, offer));
        if let Some(known) = known {
            known.asked_at = Instant::now();
            return Arc::clone(&known.slot);
        }
        let slot = Arc::<Slot>::default();
        kept.push(CachedProbe {
            tenant: tenant.clone(),
            offer: Arc::clone(offer),
            model: model.to_owned(),
            asked_at: Instant::now(),
            slot: Arc::clone(&slot),
        });
        slot
    }
}

fn request(kind: ProviderKind, model: &str) -> AssembledRequest {
    let options = RequestOptions {
        model: model.to_owned(),
        max_tokens: Some(match kind {
            // OpenAI's reasoning models refuse a lower limit.
            ProviderKind::OpenAi => 16,
            ProviderKind::Anthropic
            | ProviderKind::Gemini
            | ProviderKind::OpenAiCompatible
            | ProviderKind::Scripted => 1,
        }),
        ..RequestOptions::default()
    };
    AssembledRequest::of([Context::user("Say OK.")], options)
}
