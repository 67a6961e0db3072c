//! The models that can be asked for (`/api/models/available`).

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio::time::Instant;
use utoipa::{IntoParams, ToSchema};

use crate::domain::Caller;
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::Query;
use crate::llm::{Catalogue, ListedModel, Provider};

/// How long a provider's list is believed.
const KEPT: Duration = Duration::from_mins(5);
/// How long a provider may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a provider lists, joined with what the catalogue knows.
pub struct ModelList {
    provider: Arc<dyn Provider>,
    catalogue: Arc<Catalogue>,
    /// The model of new sessions; listed even if the provider does not answer.
    model: String,
    /// Held while the provider is asked, so that many pages ask once.
    kept: Mutex<Option<(Instant, Vec<ListedModel>)>>,
}

/// The models that can be asked for.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AvailableModels {
    /// The provider's name.
    provider: String,
    /// Its models.
    models: Vec<AvailableModel>,
    /// Why the list is not the provider's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// One model. What is not known is `null` or empty.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AvailableModel {
    /// Its name in requests.
    id: String,
    /// Its name for people.
    name: String,
    /// Who runs it.
    provider: String,
    /// Tokens that it can read.
    context_window: Option<u64>,
    /// Tokens of its longest answer.
    max_output: Option<u64>,
    /// By size of the request; empty = unknown, which is not free.
    prices: Vec<ModelPrice>,
    /// `tools`, `images`, `reasoning`.
    #[schema(value_type = Vec<String>)]
    abilities: Vec<crate::llm::catalogue::Ability>,
}

/// US dollars per million tokens.
#[derive(Debug, Serialize, ToSchema)]
struct ModelPrice {
    /// Holds for requests of more input tokens than this.
    above: u64,
    /// Input that was not cached.
    input: f64,
    /// Input that was.
    cached: Option<f64>,
    /// Output, reasoning included.
    output: f64,
}

/// How to ask.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ModelsQuery {
    /// Ask the provider anew.
    refresh: Option<bool>,
}

/// The models that can be asked for.
#[utoipa::path(get, path = "/api/models/available", tag = "models", params(ModelsQuery), responses(
    (status = 200, body = AvailableModels), (status = 401, body = Problem),
))]
pub(super) async fn list_models(
    State(state): State<GatewayState>,
    _caller: Caller,
    Query(query): Query<ModelsQuery>,
) -> Result<Json<AvailableModels>, ApiError> {
    Ok(Json(
        state.models.available(query.refresh.unwrap_or(false)).await,
    ))
}

impl ModelList {
    /// The models of one provider.
    pub fn new(provider: Arc<dyn Provider>, catalogue: Arc<Catalogue>, model: String) -> Self {
        Self {
            provider,
            catalogue,
            model,
            kept: Mutex::new(None),
        }
    }

    async fn available(&self, is_fresh: bool) -> AvailableModels {
        let (listed, problem) = match self.listed(is_fresh).await {
            Ok(listed) => (listed, None),
            Err(problem) => {
                let own = ListedModel {
                    id: self.model.clone(),
                    name: None,
                    context_window: None,
                };
                (vec![own], Some(problem))
            }
        };
        AvailableModels {
            provider: self.provider.id().to_owned(),
            models: listed
                .into_iter()
                .map(|model| self.describe(model))
                .collect(),
            problem,
        }
    }

    async fn listed(&self, is_fresh: bool) -> Result<Vec<ListedModel>, String> {
        let mut kept = self.kept.lock().await;
        match kept.as_ref() {
            Some((since, models)) if !is_fresh && since.elapsed() < KEPT => {
                return Ok(models.clone());
            }
            _ => {}
        }
        let models = tokio::time::timeout(PATIENCE, self.provider.models()).await;
        let models = match models {
            Ok(Ok(models)) => models,
            Ok(Err(error)) => {
                tracing::warn!(?error, "The provider does not list its models");
                return Err(error.to_string());
            }
            Err(_) => return Err("the provider did not list its models in time".to_owned()),
        };
        *kept = Some((Instant::now(), models.clone()));
        Ok(models)
    }

    fn describe(&self, listed: ListedModel) -> AvailableModel {
        let known = self.catalogue.find(&listed.id);
        let usd = |micro: u64| crate::domain::MicroUsd(micro).as_usd();
        let prices = known
            .map(|known| known.prices.as_slice())
            .unwrap_or_default();
        AvailableModel {
            name: listed
                .name
                .or_else(|| known.map(|known| known.name.clone()))
                .unwrap_or_else(|| listed.id.clone()),
            provider: self.provider.id().to_owned(),
            context_window: listed
                .context_window
                .or(known.map(|known| known.context_window)),
            max_output: known.map(|known| known.max_output),
            prices: prices
                .iter()
                .map(|price| ModelPrice {
                    above: price.above,
                    input: usd(price.input),
                    cached: price.cached.map(usd),
                    output: usd(price.output),
                })
                .collect(),
            abilities: self.catalogue.describe(&listed.id).abilities,
            id: listed.id,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use async_trait::async_trait;

    use super::ModelList;
    use crate::llm::{Catalogue, Error, ListedModel, ModelStream, Provider, ProviderKind, Request};

    /// Lists two models; every second time it does not answer.
    #[derive(Default)]
    struct Moody(AtomicUsize);

    #[async_trait]
    impl Provider for Moody {
        fn id(&self) -> &'static str {
            "moody"
        }

        fn kind(&self) -> ProviderKind {
            ProviderKind::OpenAiCompatible
        }

        async fn stream(&self, _: Request) -> Result<ModelStream, Error> {
            Ok(Box::pin(futures::stream::empty()))
        }

        async fn models(&self) -> Result<Vec<ListedModel>, Error> {
            if self.0.fetch_add(1, Ordering::Relaxed) % 2 == 1 {
                futures::future::pending::<()>().await;
            }
            let model = |id: &str, window| ListedModel {
                id: id.into(),
                name: None,
                context_window: window,
            };
            Ok(vec![model("gpt-4o", None), model("own:7b", Some(8_192))])
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_list_is_kept_for_a_while_and_never_empty() {
        let provider = Arc::new(Moody::default());
        let asked = || provider.0.load(Ordering::Relaxed);
        let catalogue = Arc::new(Catalogue::built_in());
        let list = ModelList::new(Arc::clone(&provider) as _, catalogue, "gpt-4o".into());

        let found = list.available(false).await;
        let [known, own] = &found.models[..] else {
            panic!("{found:?}")
        };
        assert_eq!(
            (known.context_window, known.prices.len()),
            (Some(128_000), 1)
        );
        assert!((known.prices[0].input - 2.5).abs() < 1e-9);
        assert_eq!(
            (own.name.as_str(), own.context_window, own.max_output),
            ("own:7b", Some(8_192), None)
        );
        assert!(own.prices.is_empty() && found.problem.is_none());

        list.available(false).await;
        assert_eq!(asked(), 1);
        let away = list.available(true).await;
        assert_eq!(
            (asked(), away.models.len(), away.models[0].id.as_str()),
            (2, 1, "gpt-4o")
        );
        assert!(away.problem.is_some());
        tokio::time::advance(Duration::from_secs(301)).await;
        list.available(false).await;
        assert_eq!(asked(), 3);
    }
}
