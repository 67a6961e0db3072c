//! Which model is asked, which one answered, and what was paid for nothing.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::{Effort, MicroUsd, RequestParts, RequestPurpose, TokenUsage};

/// Which model answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelChoice {
    pub provider: String,
    /// The model's id at that provider.
    pub model: String,
    /// How much it may think; none = what the settings say of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
}

impl ModelChoice {
    /// With as much thinking as the settings say.
    pub fn new(provider: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            model: model.into(),
            effort: None,
        }
    }
}

/// Who answered in the place of the model that was asked: another model, or the same one with another
/// key of its provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnsweredBy {
    pub provider: String,
    /// The model's id at that provider.
    pub model: String,
    /// Why the one that was asked did not answer, in words for people.
    pub reason: String,
}

/// What is known of one attempt of a model request beside what it used: whoever pays asks for it later.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestFacts {
    /// Who was asked, which may be another than the session names.
    pub provider: String,
    /// The model's id at that provider.
    pub model: String,
    /// The price list that the cost is from; none = the price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_version: Option<String>,
    /// What budgets count, where the price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charged: Option<MicroUsd>,
    /// What the input tokens were for.
    pub parts: RequestParts,
    /// Why it was asked.
    #[serde(default, skip_serializing_if = "RequestPurpose::is_turn")]
    pub purpose: RequestPurpose,
}

/// What an attempt of a model request used that became no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    pub usage: TokenUsage,
    /// What it cost, if the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroUsd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Arc<RequestFacts>>,
}
