//! Holds the default models of new sessions: of a person, of a tenant, or of the whole installation.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLockReadGuard};

use tokio::sync::watch;

use super::{Error, Offer, Providers, Source};
use sepal_core::domain::{Caller, Code, Scope, TenantId, Timestamp, UserId};
use sepal_core::session::{ModelChoice, Refusal};
use sepal_llm::ProviderKind;
use sepal_store as store;
use sepal_store::records::ModelDefault;

/// The people that a default applies to: everybody in a scope, or one person of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DefaultFor {
    pub scope: Scope,
    /// The person; `None` = everybody in the scope.
    pub user: Option<UserId>,
}

impl DefaultFor {
    /// One person.
    pub fn person(tenant: &TenantId, user: &UserId) -> Self {
        Self {
            scope: Scope::Tenant(tenant.clone()),
            user: Some(user.clone()),
        }
    }

    /// Everybody in a scope.
    pub fn everybody(scope: Scope) -> Self {
        Self { scope, user: None }
    }
}

/// The default of a person's new sessions, and the settings of each level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultsInForce {
    pub choice: ModelChoice,
    pub own: Option<ModelChoice>,
    pub tenant: Option<ModelChoice>,
    pub installation: Option<ModelChoice>,
}

pub(crate) type Set = HashMap<DefaultFor, ModelChoice>;

impl Providers {
    /// Returns the settings for that person, the most specific first.
    pub fn said(&self, tenant: &TenantId, user: &UserId) -> [Option<ModelChoice>; 3] {
        let set = self.defaults();
        let whose = [
            DefaultFor::person(tenant, user),
            DefaultFor::everybody(Scope::Tenant(tenant.clone())),
            DefaultFor::everybody(Scope::Installation),
        ];
        whose.map(|whose| set.get(&whose).cloned())
    }

    /// Returns the default of that person's new sessions, and the settings of each level.
    pub fn defaults_of(&self, tenant: &TenantId, user: &UserId) -> DefaultsInForce {
        let [own, for_tenant, installation] = self.said(tenant, user);
        DefaultsInForce {
            choice: self.default_choice((tenant, user)),
            own,
            tenant: for_tenant,
            installation,
        }
    }

    /// Sets or removes a default. One for the whole installation needs a provider that everybody there can
    /// use.
    pub async fn set_default(
        &self,
        whose: DefaultFor,
        choice: Option<ModelChoice>,
    ) -> Result<(), Error> {
        let _order = self.0.changing.lock().await;
        let records = self.0.records.model_defaults();
        match &choice {
            Some(choice) => {
                self.serves_all_of(&whose.scope, &choice.provider)?;
                records.put(&row(&whose, choice)).await?;
            }
            None => records.delete(&whose.scope, whose.user.as_ref()).await?,
        }
        tracing::info!(scope = %whose.scope, is_own = whose.user.is_some(),
            llm.model = choice.as_ref().map(|choice| choice.model.as_str()),
            "The model of new sessions was set");
        self.change_defaults(whose, choice);
        self.publish();
        Ok(())
    }

    /// Makes a provider that has just answered the default of new sessions, if no usable default is set and
    /// the operator's choice cannot answer. Returns true if it did.
    pub async fn adopt(&self, caller: &Caller, offer: &Offer, model: &str) -> Result<bool, Error> {
        if offer.kind() == ProviderKind::Scripted || self.has_real_setting() {
            return Ok(false);
        }
        let tenant = Scope::Tenant(caller.tenant.id.clone());
        let scope = match &offer.source {
            Source::Added(Scope::Installation) if caller.user.installation_admin => {
                Scope::Installation
            }
            Source::Added(_) | Source::Settings => tenant,
        };
        let _order = self.0.changing.lock().await;
        let [_, for_tenant, installation] = self.said(&caller.tenant.id, &caller.user.id);
        let offers = self.unordered(&caller.tenant.id);
        // A default with a provider that is gone or unusable does not count.
        if first_usable(&offers, [None, for_tenant, installation]).is_some() {
            return Ok(false);
        }
        let choice = ModelChoice::new(offer.id(), model);
        let whose = DefaultFor::everybody(scope);
        let records = self.0.records.model_defaults();
        records.put(&row(&whose, &choice)).await?;
        tracing::info!(scope = %whose.scope, llm.model = model, llm.provider = offer.id(),
            "The first provider that answers serves new sessions");
        self.change_defaults(whose, Some(choice));
        self.publish();
        Ok(true)
    }

    /// Subscribes to a count of the changes made here, for telling the other gateways.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Counts a change made here.
    pub fn publish(&self) {
        self.0.changes.send_modify(|count| *count += 1);
    }

    /// Reads the records again.
    pub async fn reload_defaults(&self) -> Result<(), store::Error> {
        let rows = self.0.records.model_defaults().all().await?;
        let fresh = rows.into_iter().map(|row| {
            let whose = DefaultFor {
                scope: row.scope,
                user: row.user,
            };
            let choice = ModelChoice::new(row.provider, row.model);
            (whose, choice)
        });
        let mut set = self
            .0
            .defaults
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *set = fresh.collect();
        Ok(())
    }

    /// Returns true if the operator's own choice can answer.
    fn has_real_setting(&self) -> bool {
        let offer = self.0.settings.get(&self.0.default.provider);
        offer.is_some_and(|offer| offer.is_usable() && offer.kind() != ProviderKind::Scripted)
    }

    fn serves_all_of(&self, scope: &Scope, provider: &str) -> Result<(), Refusal> {
        if *scope != Scope::Installation {
            return Ok(());
        }
        let shared = (Scope::Installation, provider.to_owned());
        if self.added().contains_key(&shared) || self.0.settings.contains_key(provider) {
            return Ok(());
        }
        let text = format!("provider `{provider}` serves one tenant only, not everybody");
        Err(Refusal::of_field(Code::InvalidArguments, "provider", text))
    }

    fn change_defaults(&self, whose: DefaultFor, choice: Option<ModelChoice>) {
        let mut set = self
            .0
            .defaults
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        match choice {
            Some(choice) => set.insert(whose, choice),
            None => set.remove(&whose),
        };
    }

    fn defaults(&self) -> RwLockReadGuard<'_, Set> {
        self.0
            .defaults
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the first of the set defaults that can answer.
pub(crate) fn first_usable(
    offers: &[Arc<Offer>],
    said: [Option<ModelChoice>; 3],
) -> Option<ModelChoice> {
    said.into_iter().flatten().find(|choice| {
        let mut named = offers.iter().filter(|offer| offer.id() == choice.provider);
        named.any(|offer| offer.is_usable())
    })
}

fn row(whose: &DefaultFor, choice: &ModelChoice) -> ModelDefault {
    ModelDefault {
        scope: whose.scope.clone(),
        user: whose.user.clone(),
        provider: choice.provider.clone(),
        model: choice.model.clone(),
        updated_at: Timestamp(jiff::Timestamp::now().as_millisecond()),
    }
}
