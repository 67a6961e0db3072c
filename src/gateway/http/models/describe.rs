//! Describes one model for the wire: its provider's listing, joined with the catalogue. Pure.

use jiff::civil::Date;
use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::MicroUsd;
use crate::llm::catalogue::Tier;
use crate::llm::{ListedModel, catalogue};
use crate::providers::Offer;

/// A model that sessions may use. Unknown facts are `null`, empty or absent.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AvailableModel {
    /// The model's name in requests.
    pub(super) id: String,
    /// The model's name for people.
    pub(super) name: String,
    /// The name of the provider that serves the model.
    pub(super) provider: String,
    /// The context window in tokens; `null` if unknown.
    pub(super) context_window: Option<u64>,
    /// The limit of an answer in tokens; `null` if unknown.
    pub(super) max_output: Option<u64>,
    /// The prices in the vendor's standard tier, by size of the request; empty if unknown, which does not
    /// mean free.
    pub(super) prices: Vec<ModelPrice>,
    /// The model's abilities: `tools`, `images`, `pdf`, `reasoning`.
    #[schema(value_type = Vec<String>)]
    pub(super) abilities: Vec<catalogue::Ability>,
    /// True if nothing is known of the model's abilities: `abilities` holds what is assumed, and what it lacks
    /// may be there all the same. Absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) abilities_assumed: bool,
    /// The parameters that the model refuses although others take them: `temperature`, `forced_tool_choice`,
    /// `no_thinking`; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub(super) refuses: Vec<catalogue::Unwanted>,
    /// The day on which the vendor switches the model off, such as `2027-01-14`; absent if none is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retires_at: Option<String>,
    /// The same day in words, from 60 days before it on; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retires: Option<String>,
    /// True if a real request was made to the model; absent if the query did not ask for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) probed: Option<bool>,
    /// The reason the model did not answer that request; absent if it answered or was not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) problem: Option<String>,
}

/// The prices of a model's tokens, in US dollars per million tokens.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ModelPrice {
    /// The prices apply to requests with more input tokens than this.
    pub(super) above: u64,
    /// The price of input tokens that were not cached.
    pub(super) input: f64,
    /// The price of input tokens that were read from the cache; `null` if unknown.
    pub(super) cached: Option<f64>,
    /// The price of input tokens that the provider wrote to its cache; `null` if unknown.
    pub(super) cache_write: Option<f64>,
    /// The price of input tokens that the provider wrote to its cache for a longer time; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cache_write_long: Option<f64>,
    /// The price of output tokens, including reasoning unless `reasoning` prices it separately.
    pub(super) output: f64,
    /// The price of reasoning tokens; absent if it is the same as `output`.
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
        abilities_assumed: known.abilities_are == catalogue::Abilities::Assumed,
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
