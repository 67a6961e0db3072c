//! The live registry of providers: which of them a person may use, and which model answers next.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use jiff::civil::Date;
use reqwest::Client;
use tokio::sync::watch;

use sepal_core::domain::{Code, Scope, StrategyName, TenantId, UserId};
use sepal_core::session::{ModelChoice, Refusal};
use sepal_llm::BreakerConfig;
use sepal_net::Guard;
use sepal_store::records::ProviderRow;
use sepal_store::{Records, Sealer};

use crate::access::{KnownAccess, used};
use crate::candidates::{self, Candidate};
use crate::choice::{self, WantedModel};
use crate::compaction::CompactionDefaults;
use crate::error::Error;
use crate::offer::{self, Offer};
use crate::{cheapest, defaults};

pub(crate) type AddedProviders = BTreeMap<(Scope, String), AddedProvider>;

/// A provider that was added, with its record.
#[derive(Clone)]
pub(crate) struct AddedProvider {
    pub(crate) offer: Arc<Offer>,
    pub(crate) row: ProviderRow,
}

/// The HTTP clients and settings for reaching providers.
#[derive(Clone)]
pub struct Ways {
    /// For addresses of the operator and of installation admins: unrestricted.
    pub operator: Client,
    /// For addresses that a tenant named: no private ones.
    pub tenant: Client,
    /// The addresses that the tenants' client allows.
    pub guard: Guard,
    /// The settings of the circuit breaker, which says when a provider counts as out.
    pub breaker: BreakerConfig,
    /// The addresses of the model servers that [`Providers::find_local`] looks for, by name.
    pub local_servers: BTreeMap<String, String>,
}

/// The live registry. Cheap to clone.
#[derive(Clone)]
pub struct Providers(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    /// The operator's providers; changing them needs a restart.
    pub(crate) settings: BTreeMap<String, Arc<Offer>>,
    /// The operator's choice for new sessions.
    pub(crate) default: ModelChoice,
    /// Never held across an await.
    pub(crate) added: RwLock<AddedProviders>,
    /// The default models that people set. The lock is never held across an await.
    pub(crate) defaults: RwLock<defaults::Set>,
    pub(crate) compaction: CompactionDefaults,
    /// For whom models are open. The lock is never held across an await.
    pub(crate) access: RwLock<KnownAccess>,
    /// Counts the changes made here.
    pub(crate) changes: watch::Sender<u64>,
    /// Held while record and registry change, so that both change in the same order.
    pub(crate) changing: tokio::sync::Mutex<()>,
    pub(crate) records: Records,
    pub(crate) sealer: Sealer,
    pub(crate) ways: Ways,
}

impl Providers {
    /// Opens the registry with the operator's providers and those of the records.
    pub async fn open(
        settings: Vec<Offer>,
        default: ModelChoice,
        records: Records,
        sealer: Sealer,
        ways: Ways,
    ) -> Result<Self, sepal_store::Error> {
        let settings = settings.into_iter().map(Arc::new);
        let opened = Self(Arc::new(Inner {
            settings: settings
                .map(|offer| (offer.id().to_owned(), offer))
                .collect(),
            default,
            added: RwLock::default(),
            defaults: RwLock::default(),
            compaction: CompactionDefaults::new(records.clone()),
            access: RwLock::default(),
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

    /// Returns all providers that a person may use, by id, their default first. A tenant's own provider hides
    /// one of the installation with the same id, which hides one of the settings. Some models of a provider may
    /// be closed to the person ([`Self::may_use`]).
    pub fn visible(&self, tenant: &TenantId, user: &UserId) -> Vec<Arc<Offer>> {
        let access = self.access_of(tenant);
        let mut offers = self.all(tenant, user);
        offers.retain(|offer| access.may_see_provider(user, offer.id()));
        offers
    }

    /// Returns all providers of a tenant, by id, the person's default first: for those who manage them.
    pub fn all(&self, tenant: &TenantId, user: &UserId) -> Vec<Arc<Offer>> {
        let mut offers = self.unordered(tenant);
        let default = self.configured_default((tenant, user), &offers);
        offers.sort_by_key(|offer| offer.id() != default.provider);
        offers
    }

    pub(crate) fn unordered(&self, tenant: &TenantId) -> Vec<Arc<Offer>> {
        let mut by_id = self.0.settings.clone();
        let added = self.added();
        for scope in [Scope::Installation, Scope::Tenant(tenant.clone())] {
            let from = (scope.clone(), String::new());
            let own = added.range(from..).take_while(|((of, _), _)| *of == scope);
            by_id.extend(own.map(|((_, id), kept)| (id.clone(), Arc::clone(&kept.offer))));
        }
        by_id.into_values().collect()
    }

    /// Finds the provider of that id, as this tenant sees it.
    pub fn find(&self, tenant: &TenantId, id: &str) -> Option<Arc<Offer>> {
        let added = self.added();
        [Scope::Tenant(tenant.clone()), Scope::Installation]
            .into_iter()
            .find_map(|scope| added.get(&(scope, id.to_owned())))
            .map(|kept| &kept.offer)
            .or_else(|| self.0.settings.get(id))
            .cloned()
    }

    /// Returns the compaction strategies that a tenant's admins set; `None` = those of the settings.
    pub fn compaction(&self, tenant: &TenantId) -> Option<Arc<[StrategyName]>> {
        self.0.compaction.of(tenant)
    }

    /// Sets the strategies, or removes the setting.
    pub async fn set_compaction(
        &self,
        tenant: &TenantId,
        strategies: Option<Vec<StrategyName>>,
    ) -> Result<(), Error> {
        let _order = self.0.changing.lock().await;
        self.0.compaction.set(tenant, strategies).await?;
        self.publish();
        Ok(())
    }

    /// Returns the model of a person's new sessions. A model that its provider turned out not to list is
    /// replaced by one that it does.
    pub fn default_choice(&self, whose: (&TenantId, &UserId)) -> ModelChoice {
        self.listed_default(whose, &self.unordered(whose.0))
    }

    /// Returns that model before any replacement.
    pub fn configured_choice(&self, whose: (&TenantId, &UserId)) -> ModelChoice {
        self.configured_default(whose, &self.unordered(whose.0))
    }

    /// Returns the most specific set default that can answer and is open to the person, otherwise the operator's
    /// choice, or any that can and is. If nothing is open to the person, the operator's choice, which is refused
    /// when it is used.
    pub(crate) fn configured_default(
        &self,
        (tenant, user): (&TenantId, &UserId),
        offers: &[Arc<Offer>],
    ) -> ModelChoice {
        let access = self.access_of(tenant);
        let is_open = |choice: &ModelChoice| access.may_use(user, used(choice));
        let said = self.said(tenant, user);
        let said = said.map(|choice| choice.filter(|choice| is_open(choice)));
        let said = defaults::first_usable(offers, said);
        said.unwrap_or_else(|| choice::default_of(offers, &self.0.default, is_open))
    }

    pub(crate) fn listed_default(
        &self,
        whose: (&TenantId, &UserId),
        offers: &[Arc<Offer>],
    ) -> ModelChoice {
        let mut choice = self.configured_default(whose, offers);
        let offer = offers.iter().find(|offer| offer.id() == choice.provider);
        if let Some(other) = offer.and_then(|offer| offer.stand_in(&choice.model)) {
            let access = self.access_of(whose.0);
            let other = ModelChoice {
                model: other,
                ..choice.clone()
            };
            if access.may_use(whose.1, used(&other)) {
                choice = other;
            }
        }
        choice
    }

    /// Returns the choice for a request in a session that has `current`; refuses an unknown provider, and a
    /// model that is not open to the person. A model on no list is accepted.
    pub fn choose(
        &self,
        whose: (&TenantId, &UserId),
        wanted: &WantedModel,
        current: Option<&ModelChoice>,
    ) -> Result<ModelChoice, Refusal> {
        let choice = self.resolve(whose, wanted, current)?;
        self.check_open(whose, &choice)?;
        Ok(choice)
    }

    /// Returns the choice whether or not the model is open to the person: to choose for others.
    pub fn resolve(
        &self,
        whose: (&TenantId, &UserId),
        wanted: &WantedModel,
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

    /// Returns the candidates for a session's next request, in order; or the reason nobody can answer.
    ///
    /// With a person, nothing is asked that is not open to them; without one, an operator chose the model.
    pub fn candidates(
        &self,
        tenant: &TenantId,
        user: Option<&UserId>,
        choice: &ModelChoice,
    ) -> Result<Vec<Candidate>, Refusal> {
        let Some(user) = user else {
            return candidates::candidates(self, tenant, choice);
        };
        self.check_open((tenant, user), choice)?;
        let mut all = candidates::candidates(self, tenant, choice)?;
        let access = self.access_of(tenant);
        all.retain(|candidate| access.may_use(user, used(&candidate.choice)));
        Ok(all)
    }

    /// Returns the choices for writing the title of a session with `choice`, in order: the cheapest model of
    /// the same provider, then the session's own. Never another provider, because nobody has chosen it to
    /// read this conversation.
    pub fn title_choices(
        &self,
        (tenant, user): (&TenantId, &UserId),
        choice: &ModelChoice,
        today: Date,
    ) -> Vec<ModelChoice> {
        let offer = self.find(tenant, &choice.provider);
        let cheaper = offer.and_then(|offer| cheapest::cheaper_than(&offer, &choice.model, today));
        let cheaper = cheaper.map(|model| ModelChoice::new(choice.provider.as_str(), model));
        let cheaper = cheaper.filter(|choice| self.may_use((tenant, user), choice));
        let own = ModelChoice::new(choice.provider.as_str(), choice.model.as_str());
        cheaper.into_iter().chain([own]).collect()
    }

    /// Returns the refusal if a session cannot be answered before somebody adds a key (S2.22). A provider
    /// that is gone or unusable for another reason locks nobody out: another one can be chosen in the
    /// session.
    pub fn missing_key(&self, tenant: &TenantId, choice: &ModelChoice) -> Option<Refusal> {
        let problem = self.find(tenant, &choice.provider)?.problem.clone();
        problem.filter(|problem| problem.code == Code::MissingApiKey)
    }

    /// Loads the token calibrations of this and other gateways, and stores what is new here.
    pub async fn keep_calibrations(&self) -> Result<(), sepal_store::Error> {
        let offers = self.every_offer();
        offer::calibrations::keep(&self.0.records, &offers).await
    }

    pub(crate) fn every_offer(&self) -> Vec<Arc<Offer>> {
        let added = self.added();
        let added = added.values().map(|kept| Arc::clone(&kept.offer));
        self.0.settings.values().cloned().chain(added).collect()
    }

    pub(crate) fn added(&self) -> RwLockReadGuard<'_, AddedProviders> {
        self.0.added.read().unwrap_or_else(PoisonError::into_inner)
    }
}
