//! Lists the models of all providers side by side, caches the lists, and probes models.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use jiff::civil::Date;
use tokio::time::Instant;

use super::describe::describe;
use super::kind::is_chat;
use super::probe::{Payer, Prober, Verdict};
use super::{AvailableModels, CheckedModel, CheckedModels, CheckedProvider, ProviderProblem};
use crate::llm::catalogue::Ability;
use crate::llm::{ListedModel, ModelListing, catalogue};
use crate::providers::Offer;
use crate::session::ModelChoice;
use crate::tenancy::Clock;

/// The lifetime of a cached list.
const KEPT: Duration = Duration::from_mins(5);
/// The lifetime of a cached failure to list.
const FAILURE_KEPT: Duration = Duration::from_secs(30);
/// The longest wait for a provider's list.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most models that are probed per provider.
const MAX_PROBED: usize = 12;

/// A request for the models of all providers.
pub(super) struct ModelListRequest {
    /// The providers that the caller may use, the provider of new sessions first.
    pub(super) offers: Vec<Arc<Offer>>,
    /// The configured model of new sessions.
    pub(super) choice: ModelChoice,
    /// True if cached lists are ignored.
    pub(super) is_fresh: bool,
    /// The payer of probes.
    pub(super) payer: Box<dyn Payer>,
}

/// The model lists of providers, cached and joined with the catalogue.
pub struct ModelList {
    clock: Clock,
    prober: Prober,
    /// Never held across an await.
    kept: Mutex<Vec<CachedList>>,
}

/// The cached list of one provider. A provider that was changed gets a new entry.
struct CachedList {
    offer: Arc<Offer>,
    slot: Arc<Slot>,
}

/// Locked while the provider is asked, so that many concurrent requests ask it once.
type Slot = tokio::sync::Mutex<Option<(Instant, Result<ModelListing, String>)>>;

impl ModelList {
    /// Creates an empty cache.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            prober: Prober::default(),
            kept: Mutex::default(),
        }
    }

    /// Returns the models of all providers, in the order of the providers; probes them if `is_probed`.
    pub(super) async fn available(
        &self,
        asked: &ModelListRequest,
        is_probed: bool,
    ) -> AvailableModels {
        let lists = self.lists(asked).await;
        let today = self.clock.now().date();
        let (mut choice, mut models) = (asked.choice.clone(), Vec::new());
        let mut problems: Vec<ProviderProblem> = Vec::new();
        for (offer, list) in asked.offers.iter().zip(&lists) {
            let replaced = self.replace(offer, list, &mut choice);
            let outage = offer.outage().map(|outage| outage.to_string());
            let found = [list.problem.clone(), outage, replaced];
            let found = found.into_iter().flatten();
            let found = found.chain(list.left_out.iter().cloned());
            problems.extend(found.map(|problem| ProviderProblem {
                provider: offer.id().to_owned(),
                problem,
            }));
            let listed = list.models.iter().cloned();
            models.extend(listed.map(|model| describe(today, offer, &model)));
        }
        if is_probed {
            let verdicts = self.probe(asked, &lists).await;
            for model in &mut models {
                let is_it = |probed: &&ProbeResult| {
                    probed.provider == model.provider && probed.model == model.id
                };
                let verdict = verdicts.iter().find(is_it);
                model.probed = Some(verdict.is_some());
                model.problem = verdict.and_then(|probed| probed.verdict.problem.clone());
            }
        }
        AvailableModels {
            provider: choice.provider,
            model: choice.model,
            models,
            problems,
        }
    }

    /// Probes the models of all providers, and returns the result of each.
    pub(super) async fn check(&self, asked: &ModelListRequest) -> CheckedModels {
        let lists = self.lists(asked).await;
        let mut verdicts = self.probe(asked, &lists).await;
        let providers = asked.offers.iter().zip(lists).map(|(offer, list)| {
            let is_own = |probed: &mut ProbeResult| probed.provider == offer.id();
            let models: Vec<CheckedModel> = verdicts
                .extract_if(.., is_own)
                .map(|probed| CheckedModel::new(probed.model, probed.verdict))
                .collect();
            let was_asked = |id: &str| models.iter().any(|checked| checked.model == id);
            let skipped = list.models.iter().filter(|model| !was_asked(&model.id));
            CheckedProvider {
                provider: offer.id().to_owned(),
                kind: offer.kind().as_str(),
                skipped: skipped.count(),
                models,
                error: list.problem,
            }
        });
        CheckedModels {
            providers: providers.collect(),
        }
    }

    async fn lists(&self, asked: &ModelListRequest) -> Vec<List> {
        let lists = asked.offers.iter().map(|offer| async move {
            let list = self.list(offer, asked.is_fresh).await;
            let is_default = offer.id() == asked.choice.provider;
            let default = is_default.then_some(&asked.choice.model);
            List::new(offer, list, default)
        });
        join_all(lists).await
    }

    async fn list(&self, offer: &Arc<Offer>, is_fresh: bool) -> Result<ModelListing, String> {
        if let Some(problem) = &offer.problem {
            return Err(problem.message.clone());
        }
        let slot = self.slot(offer);
        let mut kept = slot.lock().await;
        if let Some((since, list)) = kept.as_ref() {
            let believed = if list.is_ok() { KEPT } else { FAILURE_KEPT };
            if !is_fresh && since.elapsed() < believed {
                return list.clone();
            }
        }
        let listed = tokio::time::timeout(PATIENCE, offer.provider.models()).await;
        let listed = match listed {
            Ok(Ok(models)) => {
                offer.learn(&models.models);
                Ok(models)
            }
            Ok(Err(error)) => {
                tracing::warn!(?error, "The provider does not list its models");
                Err(error.to_string())
            }
            Err(_) => Err(format!(
                "it did not list its models within {} s",
                PATIENCE.as_secs()
            )),
        };
        *kept = Some((Instant::now(), listed.clone()));
        listed
    }

    /// Returns the slot of a provider, and drops the slots of providers that nothing else uses any more.
    fn slot(&self, offer: &Arc<Offer>) -> Arc<Slot> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|kept| Arc::strong_count(&kept.offer) > 1);
        let known = kept.iter().find(|kept| Arc::ptr_eq(&kept.offer, offer));
        if let Some(known) = known {
            return Arc::clone(&known.slot);
        }
        let slot = Arc::new(Slot::default());
        kept.push(CachedList {
            offer: Arc::clone(offer),
            slot: Arc::clone(&slot),
        });
        slot
    }

    /// Replaces the default model in `choice` by a listed one, if its provider does not list it or its vendor
    /// has retired it; new sessions get the same replacement. Returns the message that says so.
    fn replace(&self, offer: &Offer, list: &List, choice: &mut ModelChoice) -> Option<String> {
        if offer.id() != choice.provider {
            return None;
        }
        let today = self.clock.now().date();
        // A list that failed does not change the replacement.
        if list.problem.is_none() {
            let other = Self::replacement(offer, list, &choice.model, today);
            offer.replace_default(&choice.model, other.as_deref());
        }
        let other = offer.stand_in(&choice.model)?;
        let end = offer.describe(&choice.model).retirement(today);
        let missing = std::mem::replace(&mut choice.model, other);
        let other = &choice.model;
        Some(match end.filter(|end| end.is_over()) {
            Some(end) => format!("the default model `{missing}`: {end}; `{other}` takes its place"),
            None => {
                format!("it does not list the default model `{missing}`; `{other}` takes its place")
            }
        })
    }

    /// Returns the replacement of a default model: the successor that its vendor names, else the newest
    /// living model of its family, else the first listed living model with tools that the catalogue knows,
    /// else the first listed one. `None` if the settings name the default, if it is listed and lives, if it
    /// is listed without a successor, or if nothing is listed.
    fn replacement(offer: &Offer, list: &List, default: &str, today: Date) -> Option<String> {
        let find = |id: &str| catalogue::find(offer.vendor(), id);
        let id_of = |id: &str| find(id).map(|model| model.id);
        let own = id_of(default);
        // An undated name or `…-latest` is the same model as the dated name in the list.
        let is_same = |id: &str| id == default || own.is_some() && id_of(id) == own;
        let is_named = offer.models().iter().any(|id| id == default);
        let is_listed = is_named || list.models.iter().any(|model| is_same(&model.id));
        let lives = offer.describe(default).is_living(today);
        // A model that the settings name is never replaced.
        if is_named || is_listed && lives {
            return None;
        }
        let listed: Vec<&str> = list.models.iter().map(|model| model.id.as_str()).collect();
        let heir = catalogue::successor(offer.vendor(), default, &listed, today);
        if let Some(heir) = heir {
            return Some(heir.to_owned());
        }
        if is_listed {
            return None;
        }
        let with_tools = listed.iter().find(|id| {
            let known = find(id);
            known.is_some_and(|known| known.can(Ability::Tools) && known.is_living(today))
        });
        with_tools.or(listed.first()).map(|id| (*id).to_owned())
    }

    async fn probe(&self, asked: &ModelListRequest, lists: &[List]) -> Vec<ProbeResult> {
        let probes = asked.offers.iter().zip(lists).flat_map(|(offer, list)| {
            let is_known = |id: &str| catalogue::find(offer.vendor(), id).is_some();
            let probed = list.to_probe(is_known);
            probed.into_iter().map(move |model| async move {
                let described = offer.describe(&model);
                let payer = &*asked.payer;
                let verdict = self.prober.probe(payer, offer, described).await;
                ProbeResult {
                    provider: offer.id().to_owned(),
                    model,
                    verdict,
                }
            })
        });
        join_all(probes).await
    }
}

/// The result of probing one model.
struct ProbeResult {
    provider: String,
    model: String,
    verdict: Verdict,
}

/// The models of one provider.
struct List {
    /// Its chat models; those named in the settings come first.
    models: Vec<ListedModel>,
    /// The default model, if it belongs to this provider: it is probed first, listed or not.
    default: Option<String>,
    problem: Option<String>,
    /// The entries of its list that could not be read.
    left_out: Vec<String>,
    is_usable: bool,
}

impl List {
    fn new(offer: &Offer, list: Result<ModelListing, String>, default: Option<&String>) -> Self {
        let (listed, problem) = match list {
            Ok(listed) => (listed, None),
            Err(problem) => (ModelListing::default(), Some(problem)),
        };
        let ModelListing {
            models: listed,
            left_out,
        } = listed;
        let is_usable = offer.is_usable();
        let named = |id: &String| ListedModel {
            id: id.clone(),
            ..ListedModel::default()
        };
        let mut models: Vec<ListedModel> = offer.models().iter().map(named).collect();
        for model in listed.into_iter().filter(|model| is_chat(&model.id)) {
            match models.iter_mut().find(|known| known.id == model.id) {
                Some(known) => *known = model,
                None => models.push(model),
            }
        }
        // An empty list would leave nothing to choose.
        if models.is_empty() && is_usable {
            models.extend(default.map(named));
        }
        Self {
            models,
            default: default.cloned(),
            problem,
            left_out,
            is_usable,
        }
    }

    /// Returns the models to probe, at most [`MAX_PROBED`]: the default first, then those that the catalogue
    /// knows.
    fn to_probe(&self, is_known: impl Fn(&str) -> bool) -> Vec<String> {
        if !self.is_usable {
            return Vec::new();
        }
        let mut ids: Vec<&String> = self.models.iter().map(|model| &model.id).collect();
        if let Some(default) = &self.default
            && !ids.contains(&default)
        {
            ids.push(default);
        }
        ids.sort_by_key(|id| (Some(*id) != self.default.as_ref(), !is_known(id)));
        ids.truncate(MAX_PROBED);
        ids.into_iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests;
