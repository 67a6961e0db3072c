//! Describes one model for the wire: its provider's listing, joined with the catalogue. Pure.

use jiff::civil::Date;
use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::MicroUsd;
use crate::llm::catalogue::Tier;
use crate::llm::{ListedModel, catalogue};
use crate::providers::Offer;

/// One model. What is not known is `null` or empty.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AvailableModel {
    /// Its name in requests.
    pub(super) id: String,
    /// Its name for people.
    pub(super) name: String,
    /// Who runs it.
    pub(super) provider: String,
    /// Tokens that it can read.
    pub(super) context_window: Option<u64>,
    /// Tokens of its longest answer.
    pub(super) max_output: Option<u64>,
    /// By size of the request, in the vendor's usual tier; empty = unknown, which is not free.
    pub(super) prices: Vec<ModelPrice>,
    /// `tools`, `images`, `pdf`, `reasoning`.
    #[schema(value_type = Vec<String>)]
    pub(super) abilities: Vec<catalogue::Ability>,
    /// What it refuses although others take it: `temperature`, `forced_tool_choice`, `no_thinking`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub(super) refuses: Vec<catalogue::Unwanted>,
    /// The day on which its vendor switches it off (`2027-01-14`); absent where none is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retires_at: Option<String>,
    /// That day in words, from 60 days before it on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retires: Option<String>,
    /// Whether a real request was made to it; absent where none was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) probed: Option<bool>,
    /// Why it did not answer that request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) problem: Option<String>,
}

/// US dollars per million tokens.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ModelPrice {
    /// Holds for requests of more input tokens than this.
    pub(super) above: u64,
    /// Input that was not cached.
    pub(super) input: f64,
    /// Input that was; `null` = unknown.
    pub(super) cached: Option<f64>,
    /// Input that the provider put into its cache; `null` = unknown.
    pub(super) cache_write: Option<f64>,
    /// The same, kept for longer; absent = unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cache_write_long: Option<f64>,
    /// Output, reasoning included unless that is priced apart.
    pub(super) output: f64,
    /// Reasoning; absent = like other output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning: Option<f64>,
}

/// Joins the provider's listing of a model with the catalogue.
pub(super) fn describe(today: Date, offer: &Offer, listed: &ListedModel) -> AvailableModel {
    let of = (listed.id.as_str(), Some(listed));
    let known = catalogue::describe_listed(offer.vendor(), of, offer.said());
    let retires = known.retirement(today).map(|end| end.to_string());
    let usual = |price: &&catalogue::Price| price.tier == Tier::Standard;
    AvailableModel {
        id: listed.id.clone(),
        provider: offer.id().to_owned(),
        // Assumed limits are left out.
        context_window: (!known.is_window_assumed).then_some(known.context_window),
        max_output: (!known.is_output_assumed).then_some(known.max_output),
        prices: known
            .prices
            .iter()
            .filter(usual)
            .map(ModelPrice::of)
            .collect(),
        retires_at: known.retires_at.map(|at| at.to_string()),
        retires,
        name: known.name,
        abilities: known.abilities,
        refuses: known.refuses,
        probed: None,
        problem: None,
    }
}

impl ModelPrice {
    fn of(price: &catalogue::Price) -> Self {
        let usd = |micro: u64| MicroUsd(micro).as_usd();
        Self {
            above: price.above,
            input: usd(price.input),
            cached: price.cached.map(usd),
            cache_write: price.cache_write.map(usd),
            cache_write_long: price.cache_write_long.map(usd),
            output: usd(price.output),
            reasoning: price.reasoning.map(usd),
        }
    }
}
