//! Describes the model of a request, the model that answered, and the cost of failed attempts.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::{Effort, MicroUsd, RequestParts, RequestPurpose, TokenUsage};

/// The provider, model and effort of a session's requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelChoice {
    pub provider: String,
    /// The model's id at that provider.
    pub model: String,
    /// The effort that the model may spend on thinking; `None` = the model's configured default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
}

impl ModelChoice {
    /// A choice with the configured default effort.
    pub fn new(provider: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            model: model.into(),
            effort: None,
        }
    }
}

/// The model that answered instead of the requested one: a fallback model, or the same model under another
/// key of its provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnsweredBy {
    pub provider: String,
    /// The model's id at that provider.
    pub model: String,
    /// The reason the requested model did not answer, as text for people.
    pub reason: String,
}

/// Facts about one attempt of a model request, beside its token usage, for billing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestFacts {
    /// The provider that was asked; it may differ from the session's provider.
    pub provider: String,
    /// The model's id at that provider.
    pub model: String,
    /// The price list behind the cost; `None` = the price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_version: Option<String>,
    /// The amount that budgets count if the price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charged: Option<MicroUsd>,
    /// The input tokens by purpose.
    pub parts: RequestParts,
    /// The purpose of the request.
    #[serde(default, skip_serializing_if = "RequestPurpose::is_turn")]
    pub purpose: RequestPurpose,
}

/// The usage of a model request attempt that gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptUsage {
    pub usage: TokenUsage,
    /// The cost, if the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroUsd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Arc<RequestFacts>>,
}
