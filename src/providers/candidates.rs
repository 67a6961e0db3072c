//! Who may answer a session's next request: what the session names, then the further keys of that
//! provider, then what an administrator set in its place.

use std::sync::Arc;

use super::Providers;
use super::offer::{Offer, removed};
use crate::domain::TenantId;
use crate::llm::Provider;
use crate::session::{AnsweredBy, ModelChoice, Refusal};

/// A provider and a model that may answer.
#[derive(Clone)]
pub struct Candidate {
    pub choice: ModelChoice,
    pub provider: Arc<dyn Provider>,
}

impl Candidate {
    /// That it answered in the place of another.
    pub fn instead(&self, reason: String) -> AnsweredBy {
        AnsweredBy {
            provider: self.choice.provider.clone(),
            model: self.choice.model.clone(),
            reason,
        }
    }

    /// Its name for people, where that one was asked for.
    pub fn shown(&self, asked: &ModelChoice) -> String {
        if self.choice == *asked {
            format!("another key of `{}`", asked.provider)
        } else {
            format!("`{}/{}`", self.choice.provider, self.choice.model)
        }
    }
}

/// Who may answer a session's next request, in the order in which they are asked; or why nobody
/// can. Only providers that this tenant sees: a name leads where it leads for the tenant.
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

/// The offer with each of its keys; none = it cannot work.
fn of(offer: &Offer, choice: &ModelChoice) -> impl Iterator<Item = Candidate> {
    offer.keys().iter().map(|key| Candidate {
        choice: choice.clone(),
        provider: Arc::clone(key) as Arc<dyn Provider>,
    })
}
