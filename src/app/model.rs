//! Connects the model providers of the settings.

use anyhow::bail;
use std::sync::Arc;

use crate::agent::Providers;
use crate::agent::providers::{Offer, ProviderSettings, Source, Ways};
use crate::config;
use crate::domain::Code;
use crate::gateway::ModelList;
use crate::llm::{self, Catalogue, ProviderKind};
use crate::net::{self, Guard};
use crate::session::{ModelChoice, Refusal};
use crate::store::{Sealer, Store};

/// The operator's providers, and what answers in new sessions.
pub(super) struct Models {
    pub(super) offers: Vec<Offer>,
    pub(super) choice: ModelChoice,
    ways: Ways,
}

impl Models {
    /// The registry of these and of what people added.
    pub(super) async fn register(self, store: &Store, sealer: Sealer) -> anyhow::Result<Providers> {
        let keeper = (store.records(), sealer);
        Ok(Providers::open(self.offers, self.choice, keeper, self.ways).await?)
    }

    /// The provider of new sessions.
    pub(super) fn default_kind(&self) -> ProviderKind {
        let offer = self.default_offer();
        offer.map_or(ProviderKind::Scripted, Offer::kind)
    }

    /// Why it cannot answer.
    pub(super) fn problem(&self) -> Option<&Refusal> {
        self.default_offer()?.problem.as_ref()
    }

    /// What the page may choose from.
    pub(super) fn list(&self) -> Option<ModelList> {
        let provider = Arc::clone(&self.default_offer()?.provider);
        let catalogue = Arc::new(Catalogue::built_in());
        let model = self.choice.model.clone();
        Some(ModelList::new(provider, catalogue, model))
    }

    fn default_offer(&self) -> Option<&Offer> {
        let mut offers = self.offers.iter();
        offers.find(|offer| offer.id() == self.choice.provider)
    }
}

/// Connects them; refuses settings that can never work. A missing key is told to whoever connects.
pub(super) fn open(settings: &config::Llm) -> anyhow::Result<Models> {
    net::install_tls();
    let (reach, guard) = (net::Settings::default(), Guard::default());
    let ways = Ways {
        operator: net::client(&reach)?,
        tenant: net::guarded_client(&reach, &guard)?,
        guard,
    };
    let kind = match settings.provider {
        config::ProviderKind::OpenAi => ProviderKind::OpenAi,
        config::ProviderKind::OpenAiCompatible => ProviderKind::OpenAiCompatible,
        config::ProviderKind::Scripted => ProviderKind::Scripted,
    };
    let own = ProviderSettings {
        reach: llm::Settings {
            id: kind.as_str().to_owned(),
            kind,
            api_key: settings.api_key.clone(),
            base_url: settings.base_url.as_ref().map(ToString::to_string),
            pace: settings.scripted_pace,
        },
        models: Vec::new(),
        api: None,
    };
    let offer = Offer::connect(own, Source::Settings, ways.operator.clone());
    match &offer.problem {
        Some(problem) if problem.code == Code::MissingApiKey => tracing::warn!("{problem}"),
        Some(problem) => bail!("{problem}"),
        None => {}
    }
    Ok(Models {
        choice: ModelChoice {
            provider: offer.id().to_owned(),
            model: settings.model.clone(),
        },
        offers: vec![offer],
        ways,
    })
}
