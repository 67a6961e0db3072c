//! Which model is asked, which one answered, and what was paid for nothing.

use serde::{Deserialize, Serialize};

use crate::domain::{Effort, MicroUsd, TokenUsage};

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

/// What an attempt of a model request used that became no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spent {
    pub usage: TokenUsage,
    /// What it cost, if the price is known.
    pub cost: Option<MicroUsd>,
}
