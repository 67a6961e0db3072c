//! Lists the candidates for a session's next request: the session's own choice, then further keys of that
//! provider, then the fallbacks that an administrator set.

use std::sync::Arc;

use super::Providers;
use super::offer::{Offer, removed};
use sepal_core::domain::TenantId;
use sepal_core::session::{AnsweredBy, ModelChoice, Refusal};
use sepal_llm::Provider;

/// A provider and a model that may answer.
#[derive(Clone)]
pub struct Candidate {
    pub choice: ModelChoice,
    pub provider: Arc<dyn Provider>,
}

impl Candidate {
    /// Describes an answer of this candidate in place of another.
    pub fn instead(&self, reason: String) -> AnsweredBy {
        AnsweredBy {
            provider: self.choice.provider.clone(),
            model: self.choice.model.clone(),
            reason,
        }
    }

    /// Returns its name for people, given the choice that was asked for.
    pub fn shown(&self, asked: &ModelChoice) -> String {
        if self.choice == *asked {
            format!("another key of `{}`", asked.provider)
        } else {
            format!("`{}/{}`", self.choice.provider, self.choice.model)
        }
    }
}

/// Returns the candidates for a session's next request, in order; or the reason nobody can answer. Only
/// providers that this tenant sees are included, so an id refers to the tenant's own provider.
pub(super) fn candidates(
    providers: &Providers,
    tenant: &TenantId,
    choice: &ModelChoice,
) -> Result<Vec<Candidate>, Refusal> {
    let offer = providers.find(tenant, &choice.provider);
    let offer = offer.ok_or_else(|| removed(&choice.provider))?;
    if let Some(problem) = &offer.problem {
        return Err(problem.clone());
    }
    let mut candidates: Vec<_> = of(&offer, choice).collect();
    for fallback in offer.fallback() {
        let Some(other) = providers.find(tenant, &fallback.provider) else {
            tracing::debug!(%fallback, "A fallback names a provider that there is not");
            continue;
        };
        let instead = ModelChoice {
            effort: choice.effort,
            ..ModelChoice::new(other.id(), fallback.model.as_str())
        };
        if other.is_usable() && instead != *choice {
            candidates.extend(of(&other, &instead));
        }
    }
    Ok(candidates)
}

/// Returns the offer with each of its keys; empty if it is unusable.
fn of(offer: &Offer, choice: &ModelChoice) -> impl Iterator<Item = Candidate> {
    offer.keys().iter().map(|key| Candidate {
        choice: choice.clone(),
        provider: Arc::clone(key) as Arc<dyn Provider>,
    })
}
