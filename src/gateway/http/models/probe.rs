//! The small real request that shows whether a model answers (S2.54).

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use crate::context::{self, Assembled, Context, Manner};
use crate::llm::{self, Provider, ProviderKind, Refusal, RetryConfig};

/// Requests at the same time, of everybody together.
const SIDE_BY_SIDE: usize = 4;
/// How long a model may take to answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Makes such requests, never too many at once.
#[derive(Debug, Clone)]
pub(super) struct Prober(Arc<Semaphore>);

/// What came of one.
#[derive(Debug, Clone)]
pub(super) struct Verdict {
    /// How long it took, without waiting for its turn.
    pub(super) latency: Duration,
    /// Why the model did not answer.
    pub(super) problem: Option<String>,
    /// Whether that is because there is no such model.
    is_unknown: bool,
}

impl Verdict {
    /// Its name on the wire.
    pub(super) fn status(&self) -> &'static str {
        match self {
            Self { problem: None, .. } => "available",
            Self {
                is_unknown: true, ..
            } => "not_found",
            Self { .. } => "error",
        }
    }
}

impl Default for Prober {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(SIDE_BY_SIDE)))
    }
}

impl Prober {
    /// Asks a model for one token.
    pub(super) async fn probe(&self, provider: &Arc<dyn Provider>, model: &str) -> Verdict {
        // The semaphore is never closed.
        let _turn = self.0.acquire().await.ok();
        let began = Instant::now();
        let once = RetryConfig {
            max_retries: 0,
            ..RetryConfig::default()
        };
        let request = request(provider.kind(), model);
        let asked = context::ask(Arc::clone(provider), request, once, |_| {});
        let (problem, is_unknown) = match timeout(PATIENCE, asked).await {
            Ok(Ok(_)) => (None, false),
            Ok(Err(llm::Failed { error, .. })) => {
                let is_unknown = matches!(
                    error,
                    llm::Error::Rejected {
                        refusal: Refusal::Address,
                        ..
                    }
                );
                (Some(error.to_string()), is_unknown)
            }
            Err(_) => {
                let text = format!("it did not answer within {} s", PATIENCE.as_secs());
                (Some(text), false)
            }
        };
        Verdict {
            latency: began.elapsed(),
            problem,
            is_unknown,
        }
    }
}

fn request(kind: ProviderKind, model: &str) -> Assembled {
    let manner = Manner {
        model: model.to_owned(),
        max_tokens: Some(match kind {
            // Its reasoning models refuse less.
            ProviderKind::OpenAi => 16,
            ProviderKind::Anthropic
            | ProviderKind::Gemini
            | ProviderKind::OpenAiCompatible
            | ProviderKind::Scripted => 1,
        }),
        ..Manner::default()
    };
    Assembled::of([Context::user("Say OK.")], manner)
}
