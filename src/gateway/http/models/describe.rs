//! One model for the wire: what its provider says of it, joined with what the catalogue knows. Pure.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::MicroUsd;
use crate::llm::{Catalogue, ListedModel, Overrides, catalogue};

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
    /// By size of the request; empty = unknown, which is not free.
    pub(super) prices: Vec<ModelPrice>,
    /// `tools`, `images`, `reasoning`.
    #[schema(value_type = Vec<String>)]
    pub(super) abilities: Vec<catalogue::Ability>,
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
    /// Input that was.
    pub(super) cached: Option<f64>,
    /// Input that the provider put into its cache.
    pub(super) cache_write: Option<f64>,
    /// Output, reasoning included.
    pub(super) output: f64,
}

/// Joins what is known.
pub(super) fn describe(
    catalogue: &Catalogue,
    (provider, said): (&str, &Overrides),
    listed: ListedModel,
) -> AvailableModel {
    let known = catalogue.find(&listed.id);
    let described = catalogue.describe(&listed.id, said);
    let is_said = said.windows.of_models.contains_key(&listed.id);
    let usd = |micro: u64| MicroUsd(micro).as_usd();
    let is_longest_said = said.max_outputs.contains_key(&listed.id);
    AvailableModel {
        name: listed
            .name
            .or_else(|| known.map(|known| known.name.clone()))
            .unwrap_or_else(|| listed.id.clone()),
        provider: provider.to_owned(),
        context_window: listed.context_window.filter(|_| !is_said).or({
            // What is only assumed is not known.
            (!described.is_window_assumed).then_some(described.context_window)
        }),
        max_output: (known.is_some() || is_longest_said).then_some(described.max_output),
        prices: described
            .prices
            .iter()
            .map(|price| ModelPrice {
                above: price.above,
                input: usd(price.input),
                cached: price.cached.map(usd),
                cache_write: price.cache_write.map(usd),
                output: usd(price.output),
            })
            .collect(),
        abilities: described.abilities,
        probed: None,
        problem: None,
        id: listed.id,
    }
}
