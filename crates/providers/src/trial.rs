//! Tests a provider: its model list, and one tiny real request.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::Offer;
use sepal_context::{self as context, AssembledRequest, Context, RequestOptions};
use sepal_core::domain::Code;
use sepal_llm::{self as llm, ModelListing, RetryConfig};

/// The time limit of the model list.
const LIST_PATIENCE: Duration = Duration::from_secs(10);
/// The time limit of the answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(30);
/// The token limit of the tiny request's answer; reasoning models refuse a lower one.
const ANSWER_TOKENS: u32 = 16;

/// The result of a test.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trial {
    /// The duration of the request, or of the list if no request was possible.
    pub latency: Duration,
    /// The models that it lists.
    pub models: Vec<String>,
    /// The entries of its list that could not be read.
    pub left_out: Vec<String>,
    /// The base URL at which it answered, if that is another than the configured one.
    pub found_address: Option<String>,
    /// The model that was asked.
    pub model: Option<String>,
    /// The reason it does not work, in the provider's own words if it gave any.
    pub problem: Option<(Code, String)>,
}

impl Offer {
    /// Asks for its models, and asks one of them (`model`, otherwise its default, otherwise the first listed)
    /// for one word. A missing list is not a fault as long as the model answers.
    pub async fn test(&self, model: Option<&str>) -> Trial {
        let began = Instant::now();
        if let Some(problem) = &self.problem {
            return Trial {
                problem: Some((problem.code, problem.message.clone())),
                ..Trial::default()
            };
        }
        let listed = self.list().await;
        let (listed, unlisted) = match listed {
            Ok(listed) => (listed, None),
            Err(problem) => (ModelListing::default(), Some(problem)),
        };
        let models = listed.models.into_iter().map(|model| model.id);
        let models: Vec<String> = models.collect();
        let left_out = listed.left_out;
        let model = model.or(self.default_model()).map(ToOwned::to_owned);
        let Some(model) = model.or_else(|| models.first().cloned()) else {
            let none = || {
                (
                    Code::ProviderRejected,
                    "it lists no models: name one".to_owned(),
                )
            };
            return Trial {
                latency: began.elapsed(),
                models,
                left_out,
                found_address: self.provider.found_address(),
                model: None,
                problem: Some(unlisted.unwrap_or_else(none)),
            };
        };
        let began = Instant::now();
        let problem = self.ask(&model).await.err();
        Trial {
            latency: began.elapsed(),
            models,
            left_out,
            found_address: self.provider.found_address(),
            model: Some(model),
            problem,
        }
    }

    async fn list(&self) -> Result<ModelListing, (Code, String)> {
        match timeout(LIST_PATIENCE, self.provider.models()).await {
            Ok(Ok(listed)) => Ok(listed),
            Ok(Err(error)) => Err(told(&error)),
            Err(_) => Err(too_slow(LIST_PATIENCE)),
        }
    }

    async fn ask(&self, model: &str) -> Result<(), (Code, String)> {
        if let Some(first) = self.keys().first() {
            first.hasten();
        }
        let options = RequestOptions {
            model: model.to_owned(),
            max_tokens: Some(ANSWER_TOKENS),
            ..RequestOptions::default()
        };
        let request = AssembledRequest::of([Context::user("Say OK.")], options);
        let once = RetryConfig {
            max_retries: 0,
            ..RetryConfig::default()
        };
        let asked = context::ask(Arc::clone(&self.provider), request, once, |_| {});
        match timeout(ANSWER_PATIENCE, asked).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(failed)) => Err(told(&failed.error)),
            Err(_) => Err(too_slow(ANSWER_PATIENCE)),
        }
    }
}

fn told(error: &llm::Error) -> (Code, String) {
    (error.code(), error.to_string())
}

fn too_slow(patience: Duration) -> (Code, String) {
    let text = format!("it did not answer within {} s", patience.as_secs());
    (Code::ProviderUnavailable, text)
}
