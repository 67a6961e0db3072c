//! Connects the model providers of the settings.

use std::time::Duration;

use anyhow::bail;
use tokio_util::sync::CancellationToken;

use crate::config;
use crate::domain::{Code, MicroUsd};
use crate::llm::catalogue::{Price, Tier};
use crate::llm::{
    self, Api, BreakerConfig, CacheTtl, CompactedBy, CompactionSetting, Overrides, ProviderKind,
    RetryConfig, Windows,
};
use crate::net::{self, Guard};
use crate::providers::Providers;
use crate::providers::{Fallback, Offer, ProviderSettings, Source, Ways};
use crate::session::{ModelChoice, Refusal};
use crate::store::{Sealer, Store};
use crate::tenancy::Clock;

/// The interval at which the records of providers are read again.
const REFRESH_EVERY: Duration = Duration::from_secs(30);

/// The operator's providers, and the default of new sessions.
pub(super) struct Models {
    pub(super) offers: Vec<Offer>,
    pub(super) choice: ModelChoice,
    ways: Ways,
}

impl Models {
    /// Makes the registry of these providers and those that people added.
    pub(super) async fn register(self, store: &Store, sealer: Sealer) -> anyhow::Result<Providers> {
        let providers =
            Providers::open(self.offers, self.choice, store.records(), sealer, self.ways);
        Ok(providers.await?)
    }

    /// The kind of the default provider.
    pub(super) fn default_kind(&self) -> ProviderKind {
        let offer = self.default_offer();
        offer.map_or(ProviderKind::Scripted, Offer::kind)
    }

    /// Logs the available providers, each with its default model (S3.15).
    pub(super) fn announced(self) -> Self {
        for offer in &self.offers {
            let is_default = offer.id() == self.choice.provider;
            offer.announce(is_default.then_some(self.choice.model.as_str()));
        }
        self
    }

    /// The reason the default provider cannot answer.
    pub(super) fn problem(&self) -> Option<&Refusal> {
        self.default_offer()?.problem.as_ref()
    }

    fn default_offer(&self) -> Option<&Offer> {
        let mut offers = self.offers.iter();
        offers.find(|offer| offer.id() == self.choice.provider)
    }
}

/// Connects the providers; refuses a default that can never work. A missing key is only reported to people
/// who connect.
pub(super) fn open(settings: &config::Llm, guard: Guard) -> anyhow::Result<Models> {
    net::install_tls();
    let reach = net::Settings {
        // The readers of answers have their own time limits.
        read_timeout: None,
        ..net::Settings::default()
    };
    let ways = Ways {
        operator: net::client(&reach)?,
        tenant: net::guarded_client(&reach, &guard)?,
        guard,
        breaker: BreakerConfig {
            faults: settings.breaker.faults,
            pause: settings.breaker.pause,
        },
        local_servers: settings.local_servers.clone(),
    };
    let mut offers = Vec::new();
    for (id, entry) in &settings.providers {
        let made_of = provider_settings(id, entry, settings);
        let offer = Offer::connect(made_of, Source::Settings, &ways.operator, ways.breaker);
        match &offer.problem {
            Some(problem) if *id == settings.provider && problem.code != Code::MissingApiKey => {
                bail!("{problem}")
            }
            Some(problem) => tracing::warn!("{problem}"),
            None => {}
        }
        offers.push(offer);
    }
    let choice = ModelChoice::new(settings.provider.clone(), settings.model.clone());
    if let Some(offer) = offers.iter().find(|offer| offer.id() == choice.provider) {
        offer.warn_of_end(&choice.model, Clock::system().now().date());
    }
    Ok(Models {
        offers,
        choice,
        ways,
    })
}

fn provider_settings(
    id: &str,
    entry: &config::ProviderEntry,
    settings: &config::Llm,
) -> ProviderSettings {
    let api = match entry.api {
        config::ApiFlavour::Auto => Api::Auto,
        config::ApiFlavour::Responses => Api::Responses,
        config::ApiFlavour::ChatCompletions => Api::ChatCompletions,
    };
    ProviderSettings {
        reach: llm::Settings {
            id: id.to_owned(),
            kind: entry.kind,
            api_key: entry.api_key.clone(),
            base_url: entry.base_url.as_ref().map(ToString::to_string),
            api,
            cache_ttl: match entry.cache_ttl {
                config::CacheTtl::FiveMinutes => CacheTtl::FiveMinutes,
                config::CacheTtl::Hour => CacheTtl::Hour,
            },
            compaction: CompactionSetting {
                by: match entry.compaction {
                    config::CompactedBy::Sepal => CompactedBy::Sepal,
                    config::CompactedBy::Vendor => CompactedBy::Vendor,
                },
                threshold: entry.compaction_threshold,
            },
            pace: settings.scripted_pace,
        },
        models: entry.models.clone(),
        said: said(entry),
        more_keys: entry.api_keys.clone(),
        fallback: entry
            .fallback
            .iter()
            .map(|entry| Fallback {
                provider: entry.provider.clone(),
                model: entry.model.clone(),
            })
            .collect(),
    }
}

/// Returns the overrides for the provider's models from the settings.
fn said(entry: &config::ProviderEntry) -> Overrides {
    let price = |price: &config::ModelPrice| {
        let micro = |usd: f64| MicroUsd::from_usd(usd).0;
        Price {
            tier: Tier::Standard,
            above: 0,
            input: micro(price.input),
            cached: price.cached.map(micro),
            cache_write: price.cache_write.map(micro),
            cache_write_long: price.cache_write_long.map(micro),
            output: micro(price.output),
            reasoning: None,
        }
    };
    let prices = entry.prices.iter();
    Overrides {
        windows: Windows {
            usual: entry.context_window,
            of_models: entry.context_windows.clone(),
        },
        max_outputs: entry.max_outputs.clone(),
        efforts: entry.efforts.clone(),
        prices: prices
            .map(|(model, said)| (model.clone(), price(said)))
            .collect(),
    }
}

/// Loads the changes of other gateways on the same records, and stores the token calibrations, until `stop`.
pub(super) async fn refresh(providers: Providers, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(REFRESH_EVERY);
    loop {
        tokio::select! {
            () = stop.cancelled() => return keep_calibrations(&providers).await,
            _ = ticks.tick() => {}
        }
        if let Err(error) = providers.reload().await {
            tracing::warn!(?error, "The providers were not read again");
        }
        keep_calibrations(&providers).await;
    }
}

async fn keep_calibrations(providers: &Providers) {
    if let Err(error) = providers.keep_calibrations().await {
        tracing::warn!(
            ?error,
            "What was learned about counting tokens was not kept"
        );
    }
}

/// Makes the retry settings, which models and MCP servers share (S0.47).
pub(super) fn retry(llm: &config::Llm) -> RetryConfig {
    RetryConfig {
        max_retries: llm.retry.max_retries,
        initial_backoff: llm.retry.initial_backoff,
        max_backoff: llm.retry.max_backoff,
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a factor of a few, no exact number"
        )]
        backoff_multiplier: llm.retry.backoff_multiplier as f32,
    }
}
