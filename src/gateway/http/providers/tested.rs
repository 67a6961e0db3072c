//! The wire form of the result of a provider's test.

use serde::Serialize;
use utoipa::ToSchema;

use crate::providers::Trial;

/// What a trial gave.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct ProviderTested {
    /// Whether it answered.
    ok: bool,
    /// How long the answer took.
    latency_ms: u64,
    /// The models that it lists.
    models: Vec<String>,
    /// The model that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// Why not, in its own words where it had some.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ProviderFault>,
    /// Whether it answers in new sessions, which the first stored provider that answers does from then on
    /// where nothing else could.
    is_default: bool,
}

/// Why a provider did not answer.
#[derive(Debug, Serialize, ToSchema)]
struct ProviderFault {
    /// The stable code.
    code: &'static str,
    /// In words.
    message: String,
}

pub(super) fn tested(trial: Trial, is_default: bool) -> ProviderTested {
    let error = trial.problem.map(|(code, message)| ProviderFault {
        code: code.as_str(),
        message,
    });
    ProviderTested {
        ok: error.is_none(),
        latency_ms: u64::try_from(trial.latency.as_millis()).unwrap_or(u64::MAX),
        models: trial.models,
        model: trial.model,
        error,
        is_default,
    }
}
