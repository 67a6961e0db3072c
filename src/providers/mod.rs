//! The model providers that there are: the operator's, and those that people add, change and
//! remove while the server runs.
//!
//! A session names provider and model; both are looked up at each model request. What is in flight
//! keeps what it has, so a change never cuts an answer.

mod candidates;
mod cheapest;
mod checks;
mod choice;
mod compaction;
mod defaults;
mod further;
mod keeping;
mod offer;
mod trial;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use jiff::civil::Date;
use reqwest::Client;
use tokio::sync::watch;

pub use self::candidates::Candidate;
pub use self::checks::ThresholdChange;
pub use self::choice::{Wanted, WantedEffort};
pub use self::defaults::{DefaultFor, DefaultsInForce};
pub use self::keeping::{Draft, Error, KeyChange};
pub use self::offer::{Fallback, Offer, ProviderSettings, Source};
pub use self::trial::Trial;

use self::compaction::CompactionDefaults;
use crate::domain::{Code, CompactionStrategy, Scope, TenantId, UserId};
use crate::llm::{BreakerConfig, Catalogue};
use crate::net::Guard;
use crate::session::{ModelChoice, Refusal};
use crate::store::records::ProviderRow;
use crate::store::{Records, Sealer};

type Added = BTreeMap<(Scope, String), Registered>;

/// A provider that was added, with the record that it was made of.
#[derive(Clone)]
struct Registered {
    offer: Arc<Offer>,
    row: ProviderRow,
}

/// How providers are reached.
#[derive(Clone)]
pub struct Ways {
    /// For addresses of the operator and of installation admins: anywhere.
    pub operator: Client,
    /// For addresses that a tenant named: nothing private.
    pub tenant: Client,
    /// What the tenants' client allows.
    pub guard: Guard,
    /// When a provider counts as out.
    pub breaker: BreakerConfig,
}

/// The live registry. Cheap to clone.
#[derive(Clone)]
pub struct Providers(Arc<Inner>);

struct Inner {
    /// The operator's; another start changes them.
    settings: BTreeMap<String, Arc<Offer>>,
    /// The operator's choice for new sessions.
    default: ModelChoice,
    /// Never held across an await.
    added: RwLock<Added>,
    /// What people said new sessions begin with. Never held across an await.
    defaults: RwLock<defaults::Set>,
    compaction: CompactionDefaults,
    /// Counts what was changed here.
    changes: watch::Sender<u64>,
    /// Held over record and registry, so that both change in the same order.
    changing: tokio::sync::Mutex<()>,
    records: Records,
    sealer: Sealer,
    ways: Ways,
}

impl Providers {
    /// The operator's providers and those of the records.
    pub async fn open(
        settings: Vec<Offer>,
        default: ModelChoice,
        (records, sealer): (Records, Sealer),
        ways: Ways,
    ) -> Result<Self, crate::store::Error> {
        let settings = settings.into_iter().map(Arc::new);
        let opened = Self(Arc::new(Inner {
            settings: settings
                .map(|offer| (offer.id().to_owned(), offer))
                .collect(),
            default,
            added: RwLock::default(),
            defaults: RwLock::default(),
            compaction: CompactionDefaults::new(records.clone()),
            changes: watch::Sender::default(),
            changing: tokio::sync::Mutex::default(),
            records,
            sealer,
            ways,
        }));
        opened.reload().await?;
        opened.keep_calibrations().await?;
        Ok(opened)
    }

    /// All that a person may use, by id, their default first. A tenant's own stands before one of the
    /// installation of the same name, and that before one of the settings.
    pub fn visible(&self, (tenant, user): (&TenantId, &UserId)) -> Vec<Arc<Offer>> {
        let mut offers = self.unordered(tenant);
        let default = self.configured_default((tenant, user), &offers);
        offers.sort_by_key(|offer| offer.id() != default.provider);
        offers
    }

    fn unordered(&self, tenant: &TenantId) -> Vec<Arc<Offer>> {
        let mut by_id = self.0.settings.clone();
        let added = self.added();
        for scope in [Scope::Installation, Scope::Tenant(tenant.clone())] {
            let from = (scope.clone(), String::new());
            let own = added.range(from..).take_while(|((of, _), _)| *of == scope);
            by_id.extend(own.map(|((_, id), kept)| (id.clone(), Arc::clone(&kept.offer))));
        }
        by_id.into_values().collect()
    }

    /// The provider of that id, as this tenant sees it.
    pub fn find(&self, tenant: &TenantId, id: &str) -> Option<Arc<Offer>> {
        let added = self.added();
        [Scope::Tenant(tenant.clone()), Scope::Installation]
            .into_iter()
            .find_map(|scope| added.get(&(scope, id.to_owned())))
            .map(|kept| &kept.offer)
            .or_else(|| self.0.settings.get(id))
            .cloned()
    }

    /// What makes room in the contexts of a tenant's sessions, as its admins said; `None` = what the
    /// settings say.
    pub fn compaction(&self, tenant: &TenantId) -> Option<Arc<[CompactionStrategy]>> {
        self.0.compaction.of(tenant)
    }

    /// Sets it, or takes it back.
    pub async fn set_compaction(
        &self,
        tenant: &TenantId,
        strategies: Option<Vec<CompactionStrategy>>,
    ) -> Result<(), Error> {
        let _order = self.0.changing.lock().await;
        self.0.compaction.set(tenant, strategies).await?;
        self.tell();
        Ok(())
    }

    /// What answers in a person's new sessions. A model that its provider turned out not to list has
    /// been replaced by one that it does.
    pub fn default_choice(&self, whose: (&TenantId, &UserId)) -> ModelChoice {
        self.listed_default(whose, &self.unordered(whose.0))
    }

    /// The same before anything is replaced.
    pub fn configured_choice(&self, whose: (&TenantId, &UserId)) -> ModelChoice {
        self.configured_default(whose, &self.unordered(whose.0))
    }

    /// What people said, as far as it can answer; else what the operator set, or whatever can.
    fn configured_default(
        &self,
        (tenant, user): (&TenantId, &UserId),
        offers: &[Arc<Offer>],
    ) -> ModelChoice {
        let said = defaults::first_usable(offers, self.said(tenant, user));
        said.unwrap_or_else(|| choice::default_of(offers, &self.0.default))
    }

    fn listed_default(&self, whose: (&TenantId, &UserId), offers: &[Arc<Offer>]) -> ModelChoice {
        let mut choice = self.configured_default(whose, offers);
        let offer = offers.iter().find(|offer| offer.id() == choice.provider);
        if let Some(other) = offer.and_then(|offer| offer.stand_in(&choice.model)) {
            choice.model = other;
        }
        choice
    }

    /// The choice that serves what is wanted, in a session that has `current`; refuses a provider
    /// that there is not. A model that nobody lists is taken.
    pub fn choose(
        &self,
        whose: (&TenantId, &UserId),
        wanted: &Wanted,
        current: Option<&ModelChoice>,
    ) -> Result<ModelChoice, Refusal> {
        let offers = self.unordered(whose.0);
        let default;
        let is_there = |choice: &&ModelChoice| {
            let mut ids = offers.iter().map(|offer| offer.id());
            ids.any(|id| id == choice.provider)
        };
        let current = if let Some(current) = current.filter(is_there) {
            current
        } else {
            default = self.listed_default(whose, &offers);
            &default
        };
        choice::choose(&offers, wanted, current)
    }

    /// Who may answer a session's next request, in the order in which they are asked; or why nobody
    /// can.
    pub fn candidates(
        &self,
        tenant: &TenantId,
        choice: &ModelChoice,
    ) -> Result<Vec<Candidate>, Refusal> {
        candidates::candidates(self, tenant, choice)
    }

    /// Who may give a title to a session that `choice` answers, in the order in which they are asked: the
    /// cheapest model of the same provider, then the session's own. Never another provider: nobody has
    /// chosen it to read what is said here.
    pub fn title_choices(
        &self,
        tenant: &TenantId,
        choice: &ModelChoice,
        known: (Catalogue, Date),
    ) -> Vec<ModelChoice> {
        let offer = self.find(tenant, &choice.provider);
        let cheaper = offer.and_then(|offer| cheapest::cheaper_than(&offer, &choice.model, known));
        let cheaper = cheaper.map(|model| ModelChoice::new(choice.provider.as_str(), model));
        let own = ModelChoice::new(choice.provider.as_str(), choice.model.as_str());
        cheaper.into_iter().chain([own]).collect()
    }

    /// Why a session cannot be answered before somebody adds a key (S2.22). A provider that is gone
    /// or broken otherwise keeps nobody out: another one can be chosen inside.
    pub fn missing_key(&self, tenant: &TenantId, choice: &ModelChoice) -> Option<Refusal> {
        let problem = self.find(tenant, &choice.provider)?.problem.clone();
        problem.filter(|problem| problem.code == Code::MissingApiKey)
    }

    /// Takes up what this and other gateways learned of counting tokens, and keeps what is new here.
    pub async fn keep_calibrations(&self) -> Result<(), crate::store::Error> {
        let offers = self.every_offer();
        offer::calibrations::keep(&self.0.records, &offers).await
    }

    fn every_offer(&self) -> Vec<Arc<Offer>> {
        let added = self.added();
        let added = added.values().map(|kept| Arc::clone(&kept.offer));
        self.0.settings.values().cloned().chain(added).collect()
    }

    fn added(&self) -> RwLockReadGuard<'_, Added> {
        self.0.added.read().unwrap_or_else(PoisonError::into_inner)
    }
}
