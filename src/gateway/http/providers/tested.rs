//! The wire form of the result of a provider's test.

use serde::Serialize;
use utoipa::ToSchema;

use crate::providers::Trial;

/// The result of a provider's test.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct ProviderTested {
    /// True if the provider answered.
    ok: bool,
    /// The duration of the request in milliseconds; if no request was possible, of listing the models.
    latency_ms: u64,
    /// The models that the provider lists.
    models: Vec<String>,
    /// The entries of the provider's list that could not be read, each with the reason; absent if there are
    /// none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
    /// The base URL at which the provider answered, if the configured one lacks `/v1`. A stored provider has
    /// it from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    base_url: Option<String>,
    /// The model that was asked; absent if none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// The reason the provider did not answer; absent if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ProviderFault>,
    /// True if the provider answers in new sessions of the caller. The first stored provider that passes its
    /// test becomes the default if nothing else could answer.
    is_default: bool,
}

/// The reason a provider did not answer.
#[derive(Debug, Serialize, ToSchema)]
struct ProviderFault {
    /// The stable error code.
    code: &'static str,
    /// The error in the provider's own words, if it gave any.
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
        left_out: trial.left_out,
        base_url: trial.found_address,
        model: trial.model,
        error,
        is_default,
    }
}
